//! What a call costs in allocations: a number that no busy machine changes.

use futures_util::FutureExt as _;
use tool_runtime::{Context, Dispatcher, Registry, tool_server};

struct Weather;

/// Weather, as cheap as it gets.
#[tool_server(name = "weather", version = "1.0.0", manual)]
impl Weather {
    /// Get the temperature at a place.
    #[tool(read_only)]
    async fn get_temperature(
        /// Latitude.
        #[arg(range = -90.0..=90.0)]
        lat: f64,
        /// Longitude.
        #[arg(range = -180.0..=180.0)]
        lon: f64,
    ) -> String {
        std::hint::black_box((lat, lon));
        String::from("ok")
    }
}

/// The future, the text, and the list of content that holds it.
#[test]
fn a_small_call_takes_three_allocations() {
    let registry = Registry::empty().with(Weather).expect("the name is free");
    let dispatcher = Dispatcher::new(registry).expect("the names are free");
    let context = Context::default();
    let call = || {
        let arguments = r#"{"lat":48.85,"lon":2.35}"#;
        let call = dispatcher.call("get_temperature", arguments, &context);
        let output = call.now_or_never().expect("it is ready at once");
        assert_eq!(output.expect("it works").content.len(), 1);
    };
    // The first call may set something up.
    call();
    let counted = allocation_counter::measure(call);
    assert_eq!(counted.count_total, 3, "{counted:?}");
}
