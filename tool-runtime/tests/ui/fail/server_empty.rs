use tool_runtime::tool_server;

#[tool_server(name = "weather", version = "1.0.0")]
mod weather {
    pub fn add() {}
}

fn main() {
    weather::add();
}
