//! Lifetimes, named and elided, and `Self`.
#![deny(warnings)]

use std::borrow::Cow;
use tool_runtime::{Caller, IntoOutput, Output, ToolError, definition::ToolServer, tool_server};

#[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Desk {
    name: String,
}

pub struct Borrowed<'a>(&'a str);

impl IntoOutput for Borrowed<'_> {
    fn into_output(self) -> Result<Output, ToolError> {
        self.0.into_output()
    }
}

#[tool_server(name = "desk", version = "1.0.0")]
impl Desk {
    const LIMIT: u32 = 7;

    /// Borrows from itself.
    #[tool]
    pub async fn name(&self) -> &str {
        &self.name
    }

    /// Borrows from itself, by name.
    #[tool]
    pub async fn named<'a>(&'a self, caller: &'a Caller) -> Result<Cow<'a, str>, ToolError> {
        Ok(Cow::Borrowed(if caller.engine.is_empty() { &self.name } else { &caller.engine }))
    }

    /// Borrows from one of two.
    #[tool]
    pub fn chosen<'a, 'b>(&'a self, caller: &'b Caller, text: Cow<'a, str>) -> Borrowed<'b>
    where
        'a: 'b,
    {
        drop(text);
        Borrowed(&caller.engine)
    }

    /// Hides a lifetime.
    #[tool]
    pub async fn hidden(&self) -> Option2<Borrowed<'_>> {
        Ok(Borrowed(&self.name))
    }

    /// Takes and gives its own type.
    #[tool]
    pub async fn copy(
        #[arg(default = Self::default())] it: Self,
        #[arg(default = Self::LIMIT, range = 1..=Self::LIMIT)] count: u32,
        all: Option<Vec<Self>>,
    ) -> tool_runtime::Json<Self> {
        let _ = (count, all);
        tool_runtime::Json(it)
    }

    /// Borrows in a prompt.
    #[prompt]
    pub fn ask(&self) -> &str {
        &self.name
    }
}

type Option2<T> = Result<T, ToolError>;

fn main() {
    assert_eq!(Desk::DEFINITION.tools.len(), 5);
    assert!((Desk::DEFINITION.tools[4].output_schema)().is_some());
}
