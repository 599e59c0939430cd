#![allow(unused_variables)]

use tool_runtime::tool_server;

#[tool_server(name = "settings", version = "1.0.0")]
mod settings {
    /// Has bad names.
    #[tool]
    pub fn all(
        #[arg(name = "")] empty: u8,
        #[arg(name = "the city")] with_space: u8,
        #[arg(name = "1st")] with_digit: u8,
        #[arg(name = "a_name_of_an_argument_that_is_so_long_that_no_model_would_spell_it")]
        too_long: u8,
    ) {
    }

    /// Has a name twice.
    #[tool]
    pub fn twice(city: u8, #[arg(name = "city")] town: u8) {}
}

fn main() {}
