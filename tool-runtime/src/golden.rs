//! A golden file of published tools, so that a changed schema is a change somebody sees.

use crate::{context::Caller, export::mcp, registry::Registry, selection::Selection, view::View};
use serde_json::Value;
use std::sync::Arc;

/// Asserts that the tools of this program are published exactly as a file says.
///
/// The path is relative to the crate's folder. Where they differ the test fails with the lines that changed; with
/// `UPDATE_TOOLS=1` in the environment the file is written instead.
///
/// ```ignore
/// #[tokio::test]
/// async fn tools_stay_as_published() {
///     tool_runtime::assert_tools!("tests/tools.json");
/// }
/// ```
///
/// A second argument names the registry, for servers that are added by hand:
/// `assert_tools!("tests/tools.json", Registry::empty().with(Notes::default())?)`.
#[macro_export]
macro_rules! assert_tools {
    ($path:literal) => {
        $crate::assert_tools!(
            $path,
            $crate::Registry::linked(&$crate::Environment::default())
                .await
                .expect("the servers can be put together")
        )
    };
    ($path:literal, $registry:expr) => {{
        let path = ::std::path::Path::new(::std::env!("CARGO_MANIFEST_DIR")).join($path);
        let golden = ::std::fs::read_to_string(&path).ok();
        if let ::std::result::Result::Err((published, difference)) =
            $crate::__compare_tools($registry, golden.as_deref())
        {
            if ::std::env::var_os("UPDATE_TOOLS").is_some() {
                ::std::fs::write(&path, published).expect("the golden file can be written");
            } else {
                ::std::panic!(
                    "the published tools differ from `{}`; if that is meant, run the test again with UPDATE_TOOLS=1\n{difference}",
                    $path
                );
            }
        }
    }};
}

/// Compares what is published with a golden text: gives the new text and the difference, if there is one.
pub fn compare(registry: Registry, golden: Option<&str>) -> Result<(), (String, String)> {
    let view = View::new(&[Arc::new(registry)], Selection::all());
    let tools: Value = mcp::tools(&view, &Caller::default()).into();
    let mut published = format!("{tools:#}");
    published.push('\n');
    match golden {
        Some(golden) if golden == published => Ok(()),
        golden => {
            let difference = difference(golden.unwrap_or_default(), &published);
            Err((published, difference))
        }
    }
}

/// The lines that differ, with three lines around each place.
fn difference(old: &str, new: &str) -> String {
    let difference = similar::TextDiff::from_lines(old, new);
    let header = ("golden file", "published now");
    difference
        .unified_diff()
        .context_radius(3)
        .header(header.0, header.1)
        .to_string()
}
