use tool_runtime::tool_server;

#[tool_server(name = "weather", version = "1.0.0")]
mod weather {
    /// Spelled otherwise.
    #[tool]
    pub fn getWeather() {}

    /// A private habit.
    #[tool]
    pub fn _hidden() {}

    /// Two separators.
    #[tool]
    pub fn get__weather() {}

    /// Ends with one.
    #[tool(name = "get_weather_")]
    pub fn get_weather() {}

    /// A digit first.
    #[prompt(name = "3_days")]
    pub fn three_days() -> String {
        String::new()
    }

    /// Too long.
    #[tool]
    pub fn get_the_weather_of_the_day_after_tomorrow_at_noon() {}

    /// No name at all.
    #[tool(name = "")]
    pub fn nameless() {}

    /// No name at all.
    #[resource(uri = "weather://now", name = " ")]
    pub fn nameless_too() {}
}

fn main() {}
