//! Compile errors, and code that must compile. `TRYBUILD=overwrite` renews what is expected.

#[test]
fn these_compile_and_run() {
    trybuild::TestCases::new().pass("tests/ui/pass/*.rs");
}

#[test]
fn these_are_refused() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
