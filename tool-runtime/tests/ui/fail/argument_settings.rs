#![allow(unused_variables)]

use tool_runtime::tool_server;

#[tool_server(name = "settings", version = "1.0.0")]
mod settings {
    /// Makes all mistakes.
    #[tool]
    pub fn all(
        #[arg] no_parentheses: u8,
        #[arg = "x"] no_list: u8,
        #[arg(required)] unknown: u8,
        #[arg(default)] no_value: u8,
        #[arg(default = 1, default = 2)] twice: u8,
        #[arg(default = 1)]
        #[arg(range = 1.., default = 2)]
        twice_in_two: u8,
        #[arg(range = 5)] no_range: u8,
        #[arg(range = ..)] endless: u8,
        #[arg(range = 5..=1)] empty: u8,
        #[arg(range = 1.5..1.5)] empty_too: f64,
        #[arg(length = 3..3)] empty_length: String,
        #[arg(format = "ipv7")] unknown_format: String,
        #[arg(pattern = 5)] no_pattern: String,
        #[arg(range = 1..=3 default = 2)] no_comma: u8,
    ) {
    }
}

fn main() {}
