//! Many bad external servers beside some good ones, under load: every call is answered, those of the good ones in time,
//! and nothing is left over.

mod ways;

use crate::{
    bridge::{config, keep, profile},
    client::{Client, Era, soon},
};
use clopen_mcp::{Bridge, StartError, upstream::Address};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, net::SocketAddr, time::Duration};
use tempfile::TempDir;
use tokio::{
    runtime::Handle,
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use ways::{Served, Way};

/// How many callers there are, half of each era.
const CALLERS: usize = 64;

/// How long a caller thinks between two calls.
const THINKS: Duration = Duration::from_millis(50);

/// How long an external server may take for a call.
const LIMIT: Duration = Duration::from_secs(2);

/// Far more than a call can take that is made again after it has failed, on a machine that does other things too.
const LONGEST: Duration = Duration::from_secs(10);

/// The servers of a run, and the folder of their programs.
struct World {
    folder: TempDir,
    names: Vec<String>,
    served: Vec<Served>,
    addresses: Vec<(Address, Option<Value>)>,
}

impl World {
    fn new() -> Self {
        Self {
            folder: TempDir::new().expect("the temporary folder can be written"),
            names: Vec::new(),
            served: Vec::new(),
            addresses: Vec::new(),
        }
    }

    fn add(&mut self, name: &str, address: Address, listed: Option<Value>) {
        self.names.push(name.to_owned());
        self.addresses.push((address, listed));
    }

    async fn serve(&mut self, name: &str, way: Way) {
        let served = ways::serve(way).await;
        let listed = (way == Way::HangsAtOnce).then(ways::kept);
        self.add(name, served.address.clone(), listed);
        self.served.push(served);
    }

    fn run(&mut self, name: &str, way: Way) {
        let program = ways::program(self.folder.path(), name, way);
        self.add(name, program, None);
    }

    async fn with_good_ones(mut self) -> Self {
        self.serve("good-1", Way::Works).await;
        self.serve("good-2", Way::WorksModern).await;
        self.serve("good-3", Way::Works).await;
        let own = ways::own(self.folder.path());
        self.add("good-own", own, None);
        self
    }

    async fn with_bad_ones(mut self) -> Self {
        for (name, way) in [
            ("hangs-1", Way::Hangs),
            ("hangs-2", Way::HangsInStream),
            ("hangs-3", Way::HangsAtOnce),
            ("dies-1", Way::Dies),
            ("dies-2", Way::Dies),
            ("dies-3", Way::Dies),
            ("restarts-1", Way::Restarts),
            ("restarts-2", Way::Restarts),
            ("restarts-3", Way::Restarts),
            ("restarts-4", Way::Restarts),
            ("restarts-5", Way::Restarts),
            ("floods-1", Way::Floods),
            ("floods-2", Way::Floods),
            ("floods-3", Way::Floods),
            ("floods-4", Way::Floods),
        ] {
            self.serve(name, way).await;
        }
        for (name, way) in [
            ("hangs-4", Way::Hangs),
            ("hangs-5", Way::Hangs),
            ("dies-4", Way::Dies),
            ("dies-5", Way::Dies),
            ("floods-5", Way::Floods),
        ] {
            self.run(name, way);
        }
        self
    }

    async fn bridge(&self) -> Running {
        let mut config = config(self.folder.path(), "");
        config.limits.call_timeout = LIMIT;
        config.limits.drain = Duration::from_secs(2);
        let names = self.names.iter().map(String::as_str);
        let external = names.zip(self.addresses.iter().cloned());
        let external: Vec<_> = external
            .map(|(name, (address, listed))| (name, address, listed))
            .collect();
        keep(&config.data, &external).await;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = path.to_string_lossy().into_owned();
        let variables = BTreeMap::from([("PATH".to_owned(), path)]);
        let bridge = Bridge::start(&config, &variables).await;
        let bridge = bridge.expect("it starts");
        let (address, stop) = (bridge.address, CancellationToken::new());
        Running {
            address,
            served: tokio::spawn(bridge.serve(stop.clone())),
            stop,
        }
    }

    /// Programs that run.
    fn programs(&self) -> usize {
        let folder = self.folder.path().display().to_string();
        let processes = fs::read_dir("/proc").expect("Linux has it").flatten();
        let lines = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
        let ours = lines.filter(|it| String::from_utf8_lossy(it).contains(&folder));
        ours.count()
    }
}

/// A bridge.
struct Running {
    address: SocketAddr,
    served: JoinHandle<Result<(), StartError>>,
    stop: CancellationToken,
}

impl Running {
    /// Has all callers call for a time; returns how long the calls took of each server.
    async fn load(&self, names: &[String], time: Duration) -> BTreeMap<String, Vec<Duration>> {
        let url = format!("http://{}/mcp", self.address);
        soon(self.until_listed(&url, names)).await;
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let era = [Era::Legacy("2025-11-25"), Era::Modern][caller % 2];
            let client = Client::http(&url, profile(era)).await;
            let names = names.to_vec();
            callers.spawn(async move {
                let (mut took, end) = (Vec::new(), Instant::now() + time);
                for round in caller.. {
                    if Instant::now() >= end {
                        break;
                    }
                    let name = &names[round % names.len()];
                    took.push((name.clone(), call(&client, name).await));
                    sleep(THINKS).await;
                }
                took
            });
        }
        let mut times: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
        for (name, took) in callers.join_all().await.into_iter().flatten() {
            times.entry(name).or_default().push(took);
        }
        times
    }

    /// Waits until all servers have listed their tools.
    async fn until_listed(&self, url: &str, names: &[String]) {
        let client = Client::http(url, profile(Era::Modern)).await;
        loop {
            let listed = client.names("tools").await;
            let is_there = |name: &String| listed.iter().any(|it| it.starts_with(name.as_str()));
            if names.iter().all(is_there) {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        let served = soon(self.served).await.expect("it doesn't panic");
        served.expect("it ends well");
    }
}

/// Makes a call, and checks that there is an answer in words; returns how long it took.
async fn call(client: &Client, name: &str) -> Duration {
    let (tool, arguments) = match name {
        "good-own" => ("list_services", json!({})),
        _ => ("a", Value::Null),
    };
    let started = Instant::now();
    let running = client.start_call(&format!("mcp__{name}__{tool}"), arguments);
    let reply = running.reply().await;
    let time = started.elapsed();
    let text = reply.text();
    assert!(time < LONGEST, "{name} took {time:?}: {text}");
    if name.starts_with("good") {
        assert_eq!(reply.result()["isError"], Value::Null, "{name}: {text}");
    }
    // It is told which server fails, and how.
    if let Some(error) = text.strip_prefix("error: ") {
        assert!(error.contains(name), "{name}: {text}");
    }
    time
}

fn p99(times: &BTreeMap<String, Vec<Duration>>) -> Duration {
    let good = times.iter().filter(|it| it.0.starts_with("good"));
    let mut good: Vec<Duration> = good.flat_map(|it| it.1.clone()).collect();
    good.sort();
    good[good.len() * 99 / 100]
}

/// What this process holds: file handles and sockets, and tasks.
fn held() -> (usize, usize) {
    let files = fs::read_dir("/proc/self/fd").expect("Linux has it").count();
    (files, Handle::current().metrics().num_alive_tasks())
}

/// Waits until nothing is left over of a run.
async fn nothing_is_left(world: &World, before: (usize, usize)) {
    // Other tests that run beside this one in the same process open files of their own.
    let is_alone = std::env::var_os("NEXTEST").is_some();
    let end = Instant::now() + LONGEST;
    loop {
        let (files, tasks) = held();
        let programs = world.programs();
        let is_over = tasks <= before.1 && programs == 0 && (files <= before.0 || !is_alone);
        if is_over {
            return;
        }
        assert!(
            Instant::now() < end,
            "{files} files, {tasks} tasks and {programs} programs are left; before there were {before:?}"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

#[expect(clippy::print_stdout, reason = "for whoever runs it by hand")]
async fn run(time: Duration) {
    let nothing = held();
    let mut calm = World::new().with_good_ones().await;
    let bridge = calm.bridge().await;
    let calm_times = bridge.load(&calm.names, time / 3).await;
    bridge.stop().await;
    calm.served.clear();
    nothing_is_left(&calm, (usize::MAX, nothing.1)).await;

    let before = held();
    let mut wild = World::new().with_good_ones().await.with_bad_ones().await;
    let bridge = wild.bridge().await;
    let times = bridge.load(&wild.names, time).await;
    for (name, times) in &times {
        let longest = times.iter().max();
        println!("{name:<12} {:>5} calls, at most {longest:?}", times.len());
    }
    let (calm_p99, p99) = (p99(&calm_times), p99(&times));
    let ratio = p99.as_secs_f64() / calm_p99.as_secs_f64();
    println!("p99 of good ones: {calm_p99:?} alone, {p99:?} beside bad ones: {ratio:.1} times");
    bridge.stop().await;
    wild.served.clear();
    nothing_is_left(&wild, before).await;
    assert!(p99 < LIMIT / 2, "the good ones wait for the bad ones");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_servers_harm_no_good_ones() {
    run(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a minute"]
async fn bad_servers_harm_no_good_ones_for_a_minute() {
    run(Duration::from_mins(1)).await;
}
