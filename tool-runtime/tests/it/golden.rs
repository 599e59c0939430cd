//! Golden files of published tools.

use expect_test::expect;
use tool_runtime::{__compare_tools as compare, Registry, assert_tools, tool_server};

struct Clock;

#[tool_server(name = "clock", version = "1.0.0", manual)]
impl Clock {
    /// Tell the time.
    #[tool(read_only)]
    fn tell_time(
        /// Hours from UTC.
        #[arg(default = 0, range = -12..=14)]
        offset: i8,
    ) -> String {
        offset.to_string()
    }
}

fn clock() -> Registry {
    Registry::empty().with(Clock).unwrap()
}

#[test]
fn a_golden_file_that_fits_passes() {
    let (published, _) = compare(clock(), None).unwrap_err();
    assert_eq!(compare(clock(), Some(&published)), Ok(()));
    assert!(published.ends_with("]\n"));
}

#[test]
fn a_golden_file_that_does_not_fit_shows_the_lines() {
    let (published, _) = compare(clock(), None).unwrap_err();
    let golden = published.replace("\"maximum\": 14", "\"maximum\": 12");
    let (again, difference) = compare(clock(), Some(&golden)).unwrap_err();
    assert_eq!(again, published);
    expect![[r#"
        --- golden file
        +++ published now
        @@ -7,7 +7,7 @@
               "properties": {
                 "offset": {
                   "type": "integer",
        -          "maximum": 12,
        +          "maximum": 14,
                   "minimum": -12,
                   "description": "Hours from UTC.",
                   "default": 0
    "#]]
    .assert_eq(&difference);
}

#[test]
fn a_missing_golden_file_shows_everything() {
    let (_, difference) = compare(Registry::empty(), None).unwrap_err();
    expect![[r#"
        --- golden file
        +++ published now
        @@ -0,0 +1 @@
        +[]
    "#]]
    .assert_eq(&difference);
}

#[test]
fn the_macro_compares_with_a_file() {
    assert_tools!("tests/data/clock.json", clock());
}

#[test]
#[should_panic(
    expected = "the published tools differ from `tests/data/clock.json`; if that is meant, run the test again with UPDATE_TOOLS=1\n--- golden file\n+++ published now\n"
)]
fn the_macro_fails_with_what_to_do() {
    assert_tools!("tests/data/clock.json", Registry::empty());
}
