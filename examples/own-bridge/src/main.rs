//! The bridge with your own tools in your own binary: write the tools, and call `clopen_mcp::main`.

mod greeter;

fn main() -> std::process::ExitCode {
    clopen_mcp::main()
}
