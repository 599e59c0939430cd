//! Calls that outlast the time of who makes them.

use expect_test::expect;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use tool_runtime::{
    CallError, Caller, Context, Dispatcher, Limits, Output, Progress, Registry, tool_server,
};

struct Kitchen;

#[tool_server(name = "kitchen", version = "1.0.0", manual)]
impl Kitchen {
    /// Cook for so many seconds.
    #[tool]
    async fn cook(seconds: u64, progress: &Progress) -> String {
        for second in 0..seconds {
            progress.report_with(second, seconds, "stirring");
            sleep(Duration::from_secs(1)).await;
        }
        format!("cooked for {seconds} s")
    }
}

fn dispatcher() -> Arc<Dispatcher> {
    let registry = Registry::empty().with(Kitchen).expect("it goes together");
    let limits = Limits {
        time: Duration::from_mins(1),
        ..Limits::default()
    };
    let dispatcher = Dispatcher::with(registry, Vec::new(), limits, Vec::new());
    Arc::new(dispatcher.expect("it goes together"))
}

async fn cook(
    dispatcher: &Arc<Dispatcher>,
    seconds: u64,
    context: &Context,
    within: u64,
) -> Result<Output, CallError> {
    let deadline = Instant::now() + Duration::from_secs(within);
    let arguments = format!("{{\"seconds\":{seconds}}}");
    dispatcher
        .call_until("cook", &arguments, context, deadline)
        .await
}

async fn read(dispatcher: &Dispatcher, handle: &str, context: &Context) -> String {
    let arguments = format!("{{\"handle\":\"{handle}\"}}");
    let read = dispatcher.call("read_result", &arguments, context).await;
    read.expect("it is called").to_text()
}

fn by(principal: &str) -> Context {
    Context::new(Caller {
        principal: principal.to_owned(),
        ..Caller::default()
    })
}

fn handle_in(text: &str) -> String {
    let (_, after) = text.split_once("\"handle\":\"").expect("it names one");
    let (handle, _) = after.split_once('"').expect("it ends");
    handle.to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_call_in_time_gives_its_result() {
    let dispatcher = dispatcher();
    let cooked = cook(&dispatcher, 2, &Context::default(), 5).await;
    assert_eq!(cooked.expect("it is cooked").to_text(), "cooked for 2 s");
}

#[tokio::test(start_paused = true)]
async fn a_longer_one_goes_on_and_its_result_is_read_later() {
    let dispatcher = dispatcher();
    let context = by("alice");
    let cooked = cook(&dispatcher, 40, &context, 5).await;
    let said = cooked.expect("it goes on").to_text();
    let handle = handle_in(&said);
    let shown = said.replace(&handle, "HANDLE");
    expect![[r#"`cook` is still running, 4 of 40 done: stirring; read its result with `read_result`, called with {"handle":"HANDLE"}"#]]
        .assert_eq(&shown);
    let other = read(&dispatcher, &handle, &by("bob")).await;
    assert!(other.contains("this result is gone"), "{other}");
    let later = read(&dispatcher, &handle, &context).await;
    assert!(
        later.starts_with("`cook` is still running, 24 of 40 done"),
        "{later}"
    );
    assert_eq!(
        read(&dispatcher, &handle, &context).await,
        "cooked for 40 s"
    );
    assert_eq!(
        read(&dispatcher, &handle, &context).await,
        "cooked for 40 s"
    );
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_a_turn_share_a_deadline() {
    let dispatcher = dispatcher();
    let context = Context::default();
    let started = Instant::now();
    let deadline = started + Duration::from_secs(10);
    for (seconds, is_done) in [(8, true), (8, false), (1, false)] {
        let arguments = format!("{{\"seconds\":{seconds}}}");
        let call = dispatcher.call_until("cook", &arguments, &context, deadline);
        let said = call.await.expect("it is called").to_text();
        assert_eq!(said.starts_with("cooked"), is_done, "{said}");
    }
    assert_eq!(started.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_keeps_to_its_own_limit() {
    let dispatcher = dispatcher();
    let context = Context::default();
    let cooked = cook(&dispatcher, 100, &context, 1).await;
    let handle = handle_in(&cooked.expect("it goes on").to_text());
    sleep(Duration::from_mins(1)).await;
    let ended = read(&dispatcher, &handle, &context).await;
    expect!["`cook` was stopped after 60 s: that is the limit for one call"].assert_eq(&ended);
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_fit_are_refused_at_once() {
    let dispatcher = dispatcher();
    let deadline = Instant::now() + Duration::from_secs(1);
    let context = Context::default();
    let call = dispatcher.call_until("cook", "{}", &context, deadline);
    let refused = call.await.expect_err("it is refused");
    assert_eq!(refused.code(), "invalid_arguments");
}
