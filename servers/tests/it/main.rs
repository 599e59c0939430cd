//! The shipped servers against real files, real databases and HTTP servers on this machine.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "`UPDATE_EXPECT=1` writes them"
)]

mod api_gateway;
mod database;
mod file_utils;
mod linked;
mod loopback;
mod weather_service;

use expect_test::Expect;
use tool_runtime::ToolError;

/// Checks what a model reads of an error.
#[track_caller]
fn check_error(error: impl Into<ToolError>, expected: &Expect) {
    expected.assert_eq(&error.into().to_string());
}
