//! The binary `clopen-mcp`: the bridge with the servers that we ship.

use servers as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    clopen_mcp::main()
}
