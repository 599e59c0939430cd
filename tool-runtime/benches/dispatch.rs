//! What the dispatcher costs above the least that any dispatcher must do: `cargo bench -p tool-runtime --bench dispatch`.
//!
//! The floor takes the same bytes apart with the same borrowed envelope, looks the tool up in a map, deserializes the
//! arguments into a struct and awaits a boxed future; it knows no names but one, no selection, no defaults, no limits,
//! no panics and no records. Rounds are interleaved, so that a busy machine is busy for both.
#![expect(clippy::print_stdout, reason = "the benchmark prints a table")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use futures_util::{FutureExt as _, future::BoxFuture};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, hint::black_box, time::Instant};
use tool_runtime::{Context, Dispatcher, Environment, Observer, Output, Record, Registry};

const ARGUMENTS: &str = r#"{"lat":48.85,"lon":2.35}"#;
const REQUEST: &str = r#"{"jsonrpc":"2.0","id":100000001,"method":"tools/call","params":{"name":"get_temperature","arguments":{"lat":48.85,"lon":2.35}}}"#;

/// How often each case runs in a round, and how many rounds there are.
const CALLS: u32 = 2_000;
const ROUNDS: usize = 101;

#[tool_runtime::tool_server(name = "weather", version = "1.0.0")]
mod weather {
    /// Get the temperature at a place.
    #[tool(read_only)]
    pub(crate) async fn get_temperature(
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

#[derive(Deserialize)]
struct Place {
    lat: f64,
    lon: f64,
}

type Tool = fn(&RawValue) -> BoxFuture<'static, Result<Output, String>>;

fn floor_tool(arguments: &RawValue) -> BoxFuture<'static, Result<Output, String>> {
    let place = serde_json::from_str::<Place>(arguments.get());
    Box::pin(async move {
        let Place { lat, lon } = place.map_err(|error| error.to_string())?;
        Ok(Output::text(weather::get_temperature(lat, lon).await))
    })
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

fn envelope(bytes: &[u8]) -> (Cow<'_, str>, &RawValue) {
    let Envelope { id, method, params } =
        serde_json::from_slice(bytes).expect("the request is good");
    black_box((id, method));
    let Params {
        name,
        arguments,
        meta,
    } = params.expect("the request has parameters");
    black_box(meta);
    (
        name.expect("it names a tool"),
        arguments.expect("it has arguments"),
    )
}

/// Hears of every call, as an audit does.
#[derive(Debug)]
struct Listener;

impl Observer for Listener {
    fn observe(&self, record: &Record<'_>) {
        black_box(record);
    }
}

/// What is measured, and its name.
type Case<'a> = (&'static str, Box<dyn Fn() + 'a>);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.expect("the runtime starts");
    let _entered = runtime.enter();
    let registry = runtime.block_on(Registry::linked(&Environment::default()));
    let registry = registry.expect("the servers go together");
    let limits = tool_runtime::Limits::default();
    let observers: Vec<std::sync::Arc<dyn Observer>> = vec![std::sync::Arc::new(Listener)];
    let dispatcher = Dispatcher::with(registry, Vec::new(), limits, observers);
    let dispatcher = dispatcher.expect("the servers go together");
    let context = Context::default();
    let tools: HashMap<&str, Tool> = HashMap::from([("get_temperature", floor_tool as Tool)]);
    let raw: &RawValue = serde_json::from_str(ARGUMENTS).expect("the arguments are JSON");

    let floor_of = |name: &str, arguments: &RawValue| {
        let output = tools[name](arguments)
            .now_or_never()
            .expect("it is ready at once");
        black_box(output.expect("it works"));
    };
    let dispatch = |name: &str, arguments: &str| {
        let call = dispatcher.call(name, arguments, &context);
        let output = call.now_or_never().expect("it is ready at once");
        black_box(output.expect("it works"));
    };
    let cases: [Case<'_>; 4] = [
        (
            "floor, request bytes → output",
            Box::new(|| {
                let (name, arguments) = envelope(black_box(REQUEST.as_bytes()));
                floor_of(&name, arguments);
            }),
        ),
        (
            "dispatcher, request bytes → output",
            Box::new(|| {
                let (name, arguments) = envelope(black_box(REQUEST.as_bytes()));
                dispatch(&name, arguments.get());
            }),
        ),
        (
            "floor, argument bytes → output",
            Box::new(|| floor_of(black_box("get_temperature"), black_box(raw))),
        ),
        (
            "dispatcher, argument bytes → output",
            Box::new(|| dispatch(black_box("get_temperature"), black_box(ARGUMENTS))),
        ),
    ];

    let mut nanos = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for ((_, run), nanos) in cases.iter().zip(&mut nanos) {
            let started = Instant::now();
            for _ in 0..CALLS {
                run();
            }
            nanos.push(started.elapsed().as_nanos() / u128::from(CALLS));
        }
    }
    println!("| case | ns, least | ns, median | of the floor | allocations |");
    println!("|---|---:|---:|---:|---:|");
    let mut floor = 0;
    for (index, ((name, run), nanos)) in cases.iter().zip(&mut nanos).enumerate() {
        nanos.sort_unstable();
        let median = nanos[ROUNDS / 2];
        if index % 2 == 0 {
            floor = median;
        }
        let percent = median * 100 / floor;
        let allocations = allocation_counter::measure(run).count_total;
        println!(
            "| {name} | {} | {median} | {percent} % | {allocations} |",
            nanos[0]
        );
    }
}
