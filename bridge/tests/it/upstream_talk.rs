//! What servers say while a request is under way, and what they are told.

use crate::endpoint::{Answer, Endpoint, connector, legacy, limits};
use clopen_mcp::upstream::{
    Address, Client, Limits, Listener, News, Opening, Refusal, Talk, UpstreamError,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{sync::Notify, time::timeout};
use tool_runtime::{BoxFuture, Level};

/// Writes down what it hears, and answers with what it was asked.
#[derive(Default)]
pub(crate) struct Scribe {
    heard: Mutex<Vec<String>>,
    told: Notify,
    /// What it says to every question, if that is anything.
    answer: Option<Value>,
    /// Whether questions stay open.
    is_silent: bool,
}

impl Scribe {
    pub(crate) fn answering(answer: Value) -> Self {
        Self {
            answer: Some(answer),
            ..Self::default()
        }
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("it is free").clone()
    }

    fn note(&self, text: String) {
        self.heard.lock().expect("it is free").push(text);
        self.told.notify_one();
    }

    async fn has_heard(&self, text: &str) {
        let heard = async {
            loop {
                let told = self.told.notified();
                if self.heard().iter().any(|it| it.contains(text)) {
                    return;
                }
                told.await;
            }
        };
        let heard = timeout(Duration::from_secs(10), heard).await;
        heard.unwrap_or_else(|_| panic!("it only heard {:#?}", self.heard()));
    }
}

impl Listener for Scribe {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        self.note(format!("{done} of {total:?}: {message:?}"));
    }

    fn log(&self, level: Level, logger: Option<String>, data: Value) {
        self.note(format!("{level:?} of {logger:?}: {data}"));
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, Refusal>> {
        self.note(format!("asked {method} {params}"));
        let refused = method == "refuse/me";
        Box::pin(async move {
            if self.is_silent {
                pending::<()>().await;
            }
            if refused {
                return Err(Refusal {
                    code: -7,
                    message: "no\nway".to_owned(),
                });
            }
            Ok(self.answer.clone().unwrap_or(params))
        })
    }
}

pub(crate) fn talk(scribe: &Arc<Scribe>) -> Talk {
    Talk {
        log: Some(Level::Notice),
        progress: true,
        listener: Some(scribe.clone()),
        ..Talk::default()
    }
}

const WELCOME: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}"#;

fn shell(script: &str) -> Address {
    let script = format!("read -r l\nprintf '%s\\n' '{WELCOME}'\nread -r l\n{script}");
    Address::Command {
        program: "/bin/sh".to_owned(),
        arguments: vec!["-c".to_owned(), script],
        environment: BTreeMap::new(),
        folder: None,
    }
}

async fn open(script: &str) -> Client {
    open_with(script, limits()).await
}

async fn open_with(script: &str, limits: Limits) -> Client {
    let client = connector(limits)
        .connect("fake", &shell(script), &legacy())
        .await;
    client.expect("it connects")
}

/// What a server says before it answers, as lines of `printf`.
const SAID: &str = r#"
say '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1,"total":4,"message":"a\nb"}}'
say '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"2","progress":2.5}}'
say '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":3}}'
say '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"too low"}}'
say '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"db","data":{"n":1}}}'
"#;

#[tokio::test]
async fn progress_and_log_of_a_program_are_heard() {
    let script = format!(
        r#"say() {{ printf '%s\n' "$1"; }}; read -r line; {SAID}
say "{{\"id\":2,\"result\":$line}}"; cat >/dev/null"#
    );
    let client = open(&script).await;
    let scribe = Arc::new(Scribe::default());
    let call = json!({ "name": "a" });
    let answer = client.converse("tools/call", &call, talk(&scribe));
    let sent = answer.await.expect("it answers");
    assert_eq!(
        sent.get(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"a"}}"#
    );
    assert_eq!(
        scribe.heard(),
        [
            r#"1 of Some(4.0): Some("a / b")"#,
            "2.5 of None: None",
            r#"Error of Some("db"): {"n":1}"#
        ]
    );
}

#[tokio::test]
async fn questions_of_a_program_are_answered_by_the_one_who_can() {
    let script = r#"read -r call
printf '%s\n' '{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"who?"}}'; read -r a
printf '%s\n' '{"jsonrpc":"2.0","id":"x","method":"refuse/me"}'; read -r b
printf '%s\n' "{\"id\":2,\"result\":[$a,$b]}"; cat >/dev/null"#;
    let client = open(script).await;
    let scribe = Arc::new(Scribe::default());
    let answers = client
        .converse("tools/call", &json!({}), talk(&scribe))
        .await;
    assert_eq!(
        answers.expect("it answers").get(),
        r#"[{"jsonrpc":"2.0","id":2,"result":{"message":"who?"}},{"jsonrpc":"2.0","id":"x","error":{"code":-7,"message":"no\nway"}}]"#
    );
}

#[tokio::test]
async fn nothing_is_guessed_between_two_callers() {
    let script = r#"read -r a; read -r b
printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}'
printf '%s\n' '{"jsonrpc":"2.0","id":9,"method":"elicitation/create"}'; read -r answer
printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":5}}'
printf '%s\n' "{\"id\":2,\"result\":$answer}" '{"id":3,"result":1}'; cat >/dev/null"#;
    let client = open(script).await;
    let [one, two] = [(); 2].map(|()| Arc::new(Scribe::default()));
    let (nothing, other) = (json!({}), json!({}));
    let (answer, _) = tokio::join!(
        client.converse("tools/call", &nothing, talk(&one)),
        client.converse("tools/call", &other, talk(&two)),
    );
    assert_eq!(
        answer.expect("it answers").get(),
        r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"no call is under way that could answer this"}}"#
    );
    assert!(one.heard().is_empty());
    assert_eq!(two.heard(), ["5 of None: None"]);
}

#[tokio::test]
async fn a_question_may_be_taken_back() {
    let script = r#"read -r call
printf '%s\n' '{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}' '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}'
printf '%s\n' '{"jsonrpc":"2.0","id":"p","method":"ping"}'; read -r answer
printf '%s\n' "{\"id\":2,\"result\":$answer}"; cat >/dev/null"#;
    let client = open(script).await;
    let scribe = Arc::new(Scribe {
        is_silent: true,
        ..Scribe::default()
    });
    let answer = client
        .converse("tools/call", &json!({}), talk(&scribe))
        .await;
    assert_eq!(
        answer.expect("it answers").get(),
        r#"{"jsonrpc":"2.0","id":"p","result":{}}"#
    );
}

#[tokio::test]
async fn questions_have_limits() {
    // 16 stay open; the others are refused, and so is a large one.
    let script = r#"read -r call
for n in $(seq 40); do printf '{"jsonrpc":"2.0","id":%s,"method":"elicitation/create"}\n' $n; done
refused=0; for n in $(seq 24); do read -r answer; case $answer in *'too many questions'*) refused=$((refused + 1)) ;; esac; done
printf '{"jsonrpc":"2.0","id":"large","method":"a","params":{"a":"%s"}}\n' "$(head -c 1048600 /dev/zero | tr '\0' x)"; read -r answer
printf '{"id":2,"result":[%s,%s]}\n' $refused "$answer"; cat >/dev/null"#;
    let limits = Limits {
        message: 4 * 1024 * 1024,
        ..limits()
    };
    let client = open_with(script, limits).await;
    let scribe = Arc::new(Scribe {
        is_silent: true,
        ..Scribe::default()
    });
    let answer = client
        .converse("tools/call", &json!({}), talk(&scribe))
        .await;
    assert_eq!(
        answer.expect("it answers").get(),
        r#"[24,{"jsonrpc":"2.0","id":"large","error":{"code":-32602,"message":"the question has more than 1048576 bytes"}}]"#
    );
    assert_eq!(scribe.heard().len(), 16);
}

#[tokio::test]
async fn tim_241_progress_holds_the_limit_off() {
    let script = r#"read -r call
for n in 1 2 3 4 5 6; do sleep 0.2; printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":%s}}\n' $n; done
printf '{"id":2,"result":1}\n'; read -r call
while :; do sleep 0.1; printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}\n'; done"#;
    let limits = Limits {
        call: Duration::from_millis(900),
        longest: Duration::from_secs(3),
        ..limits()
    };
    let client = open_with(script, limits).await;
    let scribe = Arc::new(Scribe::default());
    let answer = client
        .converse("tools/call", &json!({}), talk(&scribe))
        .await;
    answer.expect("it goes on");
    let answer = client
        .converse("tools/call", &json!({}), talk(&scribe))
        .await;
    let error = answer.expect_err("there is an end");
    let UpstreamError::TimedOut { after, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(after, limits.longest);
}

#[tokio::test]
async fn limits_may_be_very_long() {
    let script = r#"read -r call; printf '{"id":2,"result":1}\n'; cat >/dev/null"#;
    let limits = Limits {
        connect: Duration::MAX,
        call: Duration::MAX,
        longest: Duration::MAX,
        ..limits()
    };
    let client = open_with(script, limits).await;
    let said = Talk {
        limit: Some(Duration::MAX),
        ..talk(&Arc::new(Scribe::default()))
    };
    let answer = client.converse("tools/call", &json!({}), said).await;
    answer.expect("it answers");
}

#[tokio::test]
async fn tim_234_a_call_may_have_a_limit_of_its_own() {
    let client = open("cat >/dev/null").await;
    let scribe = Arc::new(Scribe::default());
    for said in [Talk::default(), talk(&scribe)] {
        let limit = Duration::from_millis(200);
        let said = Talk {
            limit: Some(limit),
            ..said
        };
        let answer = client.converse("tools/call", &json!({}), said).await;
        let error = answer.expect_err("nobody answers");
        let UpstreamError::TimedOut { after, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(after, limit);
    }
}

#[tokio::test]
async fn tim_241_an_open_question_stops_the_clock() {
    let script = r#"read -r call; printf '%s\n' '{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}'; cat >/dev/null"#;
    let limits = Limits {
        call: Duration::from_millis(200),
        longest: Duration::from_secs(1),
        ..limits()
    };
    let client = open_with(script, limits).await;
    let scribe = Arc::new(Scribe {
        is_silent: true,
        ..Scribe::default()
    });
    let answer = client
        .converse("tools/call", &json!({}), talk(&scribe))
        .await;
    let error = answer.expect_err("there is an end");
    let UpstreamError::TimedOut { after, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(after, limits.longest);
}

#[tokio::test]
async fn a_stream_belongs_to_its_request() {
    let endpoint = Endpoint::serve(|asked| {
        if asked.is("initialize") {
            return Answer::new("200 OK", &["mcp-session-id: s-1"], WELCOME);
        }
        let said = |result: &str| {
            let said = [
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":7}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"alert","data":"hot"}}"#,
                r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#,
                result,
            ];
            let events = said.map(|it| format!("data: {it}\n\n"));
            Answer::stream(&events.concat())
        };
        if asked.is("loud") {
            said(r#"{"jsonrpc":"2.0","id":"hang","method":"elicitation/create"}"#).hanging()
        } else if asked.is("plain") {
            said(r#"{"id":3,"result":1}"#)
        } else {
            Answer::accepted()
        }
    });
    let endpoint = endpoint.await;
    let address = Address::Http {
        url: endpoint.url.clone(),
        headers: BTreeMap::new(),
    };
    let client = connector(limits())
        .connect("fake", &address, &legacy())
        .await;
    let client = client.expect("it connects");
    let scribe = Arc::new(Scribe::default());
    let nothing = json!({});
    let loud = client.converse("loud", &nothing, talk(&scribe));
    let plain = async {
        scribe.has_heard("elicitation/create").await;
        client.request("plain", &()).await
    };
    tokio::select! {
        _ = loud => panic!("nobody answers"),
        answer = plain => { answer.expect("it answers"); }
    }
    assert_eq!(
        scribe.heard(),
        [
            "7 of None: None",
            r#"Alert of None: "hot""#,
            "asked roots/list {}",
            "asked elicitation/create {}"
        ]
    );
    let answered = |outcome: &str| {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":"q",{outcome}}}"#);
        let endpoint = &endpoint;
        async move { endpoint.was_asked(|it| it.body == answer).await }
    };
    answered(r#""result":{}"#).await;
    answered(r#""error":{"code":-32601,"message":"no call is under way that could answer this"}"#)
        .await;
    endpoint
        .was_asked(|it| it.is("notifications/cancelled"))
        .await;
}

#[tokio::test]
async fn who_can_be_asked_listens_before_it_calls() {
    let endpoint = Endpoint::serve(|asked| {
        if asked.is("initialize") {
            return Answer::new("200 OK", &["mcp-session-id: s-1"], WELCOME);
        }
        match asked.method.as_str() {
            "GET" => Answer::stream(": hi\n\n").hanging(),
            _ if asked.is("tools/call") => Answer::json(r#"{"id":2,"result":1}"#),
            _ => Answer::accepted(),
        }
    });
    let endpoint = endpoint.await;
    let address = Address::Http {
        url: endpoint.url.clone(),
        headers: BTreeMap::new(),
    };
    let elicitation = json!({ "elicitation": {} });
    let opening = Opening {
        capabilities: elicitation.as_object().cloned().unwrap_or_default(),
        ..legacy()
    };
    let client = connector(limits())
        .connect("fake", &address, &opening)
        .await;
    let client = client.expect("it connects");
    client.request("tools/call", &()).await.expect("it answers");
    let asked = endpoint.asked();
    assert!(
        asked[0]
            .body
            .contains(r#""capabilities":{"elicitation":{}}"#),
        "{asked:#?}"
    );
    assert_eq!(asked[2].method, "GET");
    assert!(asked[3].is("tools/call"));
}

#[tokio::test]
async fn a_server_is_told_from_which_level_on_it_logs() {
    let script = r#"read -r a; printf '{"id":2,"result":{}}\n'; read -r b; printf '{"id":3,"result":%s}\n' "[$a,$b]"
read -r a; printf '{"id":4,"result":%s}\n' "$a"; cat >/dev/null"#;
    let script = format!(
        "read -r l\nprintf '%s\\n' '{}'\nread -r l\n{script}",
        WELCOME.replace(r#""tools":{}"#, r#""logging":{}"#)
    );
    let address = Address::Command {
        program: "/bin/sh".to_owned(),
        arguments: vec!["-c".to_owned(), script],
        environment: BTreeMap::new(),
        folder: None,
    };
    let client = connector(limits())
        .connect("fake", &address, &legacy())
        .await;
    let client = client.expect("it connects");
    let scribe = Arc::new(Scribe::default());
    let sent = client.converse("x", &(), talk(&scribe)).await;
    let sent = sent.expect("it answers");
    assert!(
        sent.get().starts_with(
            r#"[{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"notice"}},"#
        ),
        "{sent}"
    );
    // Not again.
    let sent = client.converse("x", &(), talk(&scribe)).await;
    assert!(sent.expect("it answers").get().contains(r#""method":"x""#));
}

#[tokio::test]
async fn news_count_once_each() {
    let script = r#"read -r a
for what in tools prompts tools resources; do printf '{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}\n' $what; done
for n in 1 2 1; do printf '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:%s"}}\n' $n; done
printf '{"id":2,"result":{}}\n'; read -r a; printf '{"id":3,"result":{}}\n'; cat >/dev/null"#;
    let client = open(script).await;
    client.subscribe("a:1").await.expect("it can");
    let expected = [
        News::Tools,
        News::Prompts,
        News::Resources,
        News::Updated("a:1".to_owned()),
        News::Updated("a:2".to_owned()),
    ];
    for news in expected {
        assert_eq!(client.news().await, news);
    }
    let more = timeout(Duration::from_millis(50), client.news()).await;
    more.expect_err("that was all");
    client.unsubscribe("a:1").await.expect("it can");
    client.unsubscribe("a:1").await.expect("it is not asked");
}

#[tokio::test]
async fn an_error_keeps_its_data() {
    let script = r#"read -r a; printf '%s\n' '{"id":2,"error":{"code":-32042,"message":"log in","data":{"url":"https://a.example","n":1}}}'
read -r a; printf '{"id":3,"error":{"code":-1,"message":"long","data":"%s"}}\n' "$(head -c 20000 /dev/zero | tr '\0' x)"; cat >/dev/null"#;
    let client = open(script).await;
    let check = async |expected: Option<Value>| {
        let error = client.request("x", &()).await.expect_err("it refuses");
        let UpstreamError::Refused { data, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(data.map(|it| *it), expected);
    };
    check(Some(json!({ "url": "https://a.example", "n": 1 }))).await;
    check(None).await;
}
