use tool_runtime::tool_server;

#[tool_server(name = "weather", version = "1.0.0")]
pub fn function() {}

#[tool_server(name = "weather", version = "1.0.0")]
pub struct Weather;

#[tool_server(name = "weather", version = "1.0.0")]
impl Clone for Weather {
    /// Clones.
    #[tool]
    fn clone(&self) -> Self {
        Self
    }
}

pub struct Store<T>(T);

#[tool_server(name = "store", version = "1.0.0")]
impl<T: Send + Sync + 'static> Store<T> {
    /// Counts.
    #[tool]
    pub fn count(&self) {}
}

fn main() {
    function();
    let _ = Weather.clone();
    Store(1).count();
}
