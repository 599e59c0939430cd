//! Tasks in the store, on each database.

use crate::store::{Database, on_each_database};
use clopen_mcp::store::{Answers, NewTask, Outcome, Renewed, Store, StoredTask, TaskStatus};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

on_each_database! {
    a_task_is_made_found_and_completed
    a_task_is_only_its_principals
    a_task_ends_once
    a_task_fails_with_an_error_of_the_protocol
    a_task_asks_and_is_answered
    only_what_was_asked_is_answered
    an_answer_is_taken_once
    a_question_stays_as_it_was
    answers_that_come_too_late
    a_task_is_cancelled
    leases_are_renewed
    a_task_whose_owner_died_is_adopted
    an_adopted_task_starts_over
    two_bridges_never_adopt_one_task
    tasks_expire
    many_answers_come_at_once
    odd_ids_are_no_tasks
}

const MINE: &str = "service";
const BRIDGE: &str = "bridge-1";

fn new() -> NewTask {
    NewTask {
        principal: MINE.to_owned(),
        tool: "mcp__lab__wait".to_owned(),
        arguments: r#"{"name":"größe"}"#.to_owned(),
        caller: r#"{"engine":"codex","project":"p","session":"s"}"#.to_owned(),
        idempotent: true,
        ttl_ms: Some(60_000),
        poll_interval_ms: Some(500),
        owner: BRIDGE.to_owned(),
        lease_until: 2000,
    }
}

async fn made(store: &Store) -> String {
    store.create_task(new(), 1000).await.unwrap().id
}

async fn find(store: &Store, id: &str) -> StoredTask {
    store
        .find_task(id, MINE)
        .await
        .unwrap()
        .expect("it is there")
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => panic!("{value} is no object"),
    }
}

fn question(key: &str) -> Map<String, Value> {
    map(json!({ key: { "method": "elicitation/create", "params": { "message": key } } }))
}

fn open(task: &StoredTask) -> Vec<&str> {
    task.open_requests().map(|(key, _)| key).collect()
}

async fn a_task_is_made_found_and_completed(database: Database) {
    let store = database.open().await;
    let task = store.create_task(new(), 1000).await.unwrap();
    assert_eq!(task.id.len(), 32);
    assert_eq!(task.status, TaskStatus::Working);
    assert_eq!((task.created_at, task.updated_at), (1000, 1000));
    assert_eq!(
        (task.ttl_ms, task.poll_interval_ms),
        (Some(60_000), Some(500))
    );
    assert_eq!(task.arguments, new().arguments);
    assert_eq!(task.caller, new().caller);
    assert!(task.idempotent && !task.cancel_requested);
    assert_eq!(find(&store, &task.id).await, task);

    let outcome = Outcome::Completed(r#"{"content":[]}"#.to_owned());
    let finished = store
        .finish_task(&task.id, BRIDGE, outcome, Some("a\0b"), 3000)
        .await;
    assert!(finished.unwrap());
    store.close().await;
    let task = find(&database.open().await, &task.id).await;
    assert_eq!(task.status, TaskStatus::Completed);
    assert!(task.status.is_final());
    assert_eq!(task.status_message.as_deref(), Some("a\u{fffd}b"));
    assert_eq!(task.result.as_deref(), Some(r#"{"content":[]}"#));
    assert_eq!(task.error, None);
    assert_eq!((task.created_at, task.updated_at), (1000, 3000));
    assert_eq!(task.lease_until, None);
}

async fn a_task_is_only_its_principals(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    store
        .ask_task(&id, BRIDGE, &question("name"), 1001)
        .await
        .unwrap();
    let before = find(&store, &id).await;
    for other in ["anonymous", "", "Service"] {
        assert_eq!(store.find_task(&id, other).await.unwrap(), None);
        let answers = map(json!({ "name": "Eve" }));
        let answered = store.answer_task(&id, other, &answers, 1002).await;
        assert_eq!(answered.unwrap(), None);
        assert_eq!(store.request_cancel(&id, other, 1002).await.unwrap(), None);
    }
    assert_eq!(find(&store, &id).await, before);
}

async fn a_task_ends_once(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    let completed = || Outcome::Completed("{}".to_owned());
    let finish = async |owner, outcome, now| {
        let finished = store.finish_task(&id, owner, outcome, None, now).await;
        finished.unwrap()
    };
    assert!(!finish("bridge-2", completed(), 1001).await);
    assert!(finish(BRIDGE, Outcome::Cancelled, 1002).await);
    assert!(!finish(BRIDGE, completed(), 1003).await);
    assert!(!finish(BRIDGE, Outcome::Cancelled, 1004).await);
    let task = find(&store, &id).await;
    assert_eq!(task.status, TaskStatus::Cancelled);
    assert_eq!((task.updated_at, task.result), (1002, None));
}

async fn a_task_fails_with_an_error_of_the_protocol(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    let outcome = Outcome::Failed(r#"{"code":-32603}"#.to_owned());
    let message = Some("the tool took longer than 60 s");
    store
        .finish_task(&id, BRIDGE, outcome, message, 1001)
        .await
        .unwrap();
    let task = find(&store, &id).await;
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(task.error.as_deref(), Some(r#"{"code":-32603}"#));
    assert_eq!(task.status_message.as_deref(), message);
}

async fn a_task_asks_and_is_answered(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    let mut questions = question("name");
    questions.extend(question("colour"));
    let asked = store.ask_task(&id, BRIDGE, &questions, 1001).await.unwrap();
    let asked = asked.expect("it is open");
    assert_eq!(asked.status, TaskStatus::InputRequired);
    assert_eq!(open(&asked), ["name", "colour"]);
    assert_eq!(find(&store, &id).await, asked);
    assert_eq!(
        store
            .ask_task(&id, "bridge-2", &questions, 1002)
            .await
            .unwrap(),
        None
    );

    let answer = map(json!({ "colour": { "action": "accept", "content": { "a": [1.5, "\0"] } } }));
    let answered = store.answer_task(&id, MINE, &answer, 1003).await.unwrap();
    let answered = answered.expect("it is there");
    assert_eq!(answered.status, TaskStatus::InputRequired);
    assert_eq!(open(&answered), ["name"]);

    let rest = map(json!({ "name": { "action": "decline" } }));
    let answered = store.answer_task(&id, MINE, &rest, 1004).await.unwrap();
    let answered = answered.expect("it is there");
    assert_eq!(answered.status, TaskStatus::Working);
    assert_eq!(answered.updated_at, 1004);
    assert!(open(&answered).is_empty());

    let mut all = answer;
    all.extend(rest);
    let taken = store.take_answers(&id, BRIDGE).await.unwrap();
    assert_eq!(taken.expect("it is open").answers, all);
}

async fn only_what_was_asked_is_answered(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    let early = map(json!({ "name": "Ada" }));
    let task = store.answer_task(&id, MINE, &early, 1001).await.unwrap();
    assert!(task.expect("it is there").input_responses.is_empty());
    store
        .ask_task(&id, BRIDGE, &question("name"), 1002)
        .await
        .unwrap();
    let other = map(json!({ "surname": "Lovelace" }));
    let task = store.answer_task(&id, MINE, &other, 1003).await.unwrap();
    let task = task.expect("it is there");
    assert_eq!(task.status, TaskStatus::InputRequired);
    assert_eq!(task.updated_at, 1002);

    store.answer_task(&id, MINE, &early, 1004).await.unwrap();
    let again = map(json!({ "name": "Grace" }));
    let task = store.answer_task(&id, MINE, &again, 1005).await.unwrap();
    assert_eq!(task.expect("it is there").input_responses, early);
}

async fn an_answer_is_taken_once(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    let nothing = Some(Answers::default());
    assert_eq!(store.take_answers(&id, BRIDGE).await.unwrap(), nothing);
    store
        .ask_task(&id, BRIDGE, &question("name"), 1001)
        .await
        .unwrap();
    let answer = map(json!({ "name": null }));
    store.answer_task(&id, MINE, &answer, 1002).await.unwrap();
    assert_eq!(store.take_answers(&id, "bridge-2").await.unwrap(), None);
    let taken = store.take_answers(&id, BRIDGE).await.unwrap();
    assert_eq!(taken.expect("it is open").answers, answer);
    assert_eq!(store.take_answers(&id, BRIDGE).await.unwrap(), nothing);
    let task = find(&store, &id).await;
    assert_eq!(task.input_taken, BTreeSet::from(["name".to_owned()]));
    assert_eq!(task.input_responses, answer);
    assert_eq!(task.updated_at, 1002);
}

async fn a_question_stays_as_it_was(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    store
        .ask_task(&id, BRIDGE, &question("name"), 1001)
        .await
        .unwrap();
    let other = map(json!({ "name": { "method": "roots/list" } }));
    let task = store.ask_task(&id, BRIDGE, &other, 1002).await.unwrap();
    assert_eq!(task.expect("it is open").input_requests, question("name"));
    let answer = map(json!({ "name": "Ada" }));
    store.answer_task(&id, MINE, &answer, 1003).await.unwrap();
    let task = store.ask_task(&id, BRIDGE, &other, 1004).await.unwrap();
    let task = task.expect("it is open");
    assert_eq!(task.status, TaskStatus::Working);
    assert_eq!(task.input_responses, answer);
}

async fn answers_that_come_too_late(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    store
        .ask_task(&id, BRIDGE, &question("name"), 1001)
        .await
        .unwrap();
    store
        .finish_task(&id, BRIDGE, Outcome::Cancelled, None, 1002)
        .await
        .unwrap();
    let before = find(&store, &id).await;
    assert!(open(&before).is_empty());
    let answer = map(json!({ "name": "Ada" }));
    let task = store.answer_task(&id, MINE, &answer, 1003).await.unwrap();
    assert_eq!(task, Some(before));
    assert_eq!(store.take_answers(&id, BRIDGE).await.unwrap(), None);
    let asked = store.ask_task(&id, BRIDGE, &question("more"), 1004).await;
    assert_eq!(asked.unwrap(), None);
}

async fn a_task_is_cancelled(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    let task = store.request_cancel(&id, MINE, 1001).await.unwrap();
    let task = task.expect("it is there");
    assert!(task.cancel_requested);
    assert_eq!((task.status, task.updated_at), (TaskStatus::Working, 1001));
    let again = store.request_cancel(&id, MINE, 1002).await.unwrap();
    assert_eq!(again, Some(task));
    let taken = store.take_answers(&id, BRIDGE).await.unwrap();
    assert!(taken.expect("it is open").cancel_requested);

    store
        .finish_task(&id, BRIDGE, Outcome::Completed("{}".to_owned()), None, 1003)
        .await
        .unwrap();
    let finished = find(&store, &id).await;
    assert_eq!(finished.status, TaskStatus::Completed);
    assert_eq!(
        store.request_cancel(&id, MINE, 1004).await.unwrap(),
        Some(finished)
    );
}

async fn leases_are_renewed(database: Database) {
    let store = database.open().await;
    let (one, other, done) = (made(&store).await, made(&store).await, made(&store).await);
    store
        .finish_task(&done, BRIDGE, Outcome::Cancelled, None, 1001)
        .await
        .unwrap();
    store.request_cancel(&other, MINE, 1001).await.unwrap();
    let mut renewed = [(one, false), (other, true)].map(|(id, cancel_requested)| Renewed {
        id,
        cancel_requested,
    });
    renewed.sort();
    assert_eq!(store.renew_leases(BRIDGE, 5000).await.unwrap(), renewed);
    assert!(
        store
            .renew_leases("bridge-2", 5000)
            .await
            .unwrap()
            .is_empty()
    );
    for task in &renewed {
        let task = find(&store, &task.id).await;
        assert_eq!(task.lease_until, Some(5000));
        assert!(task.updated_at <= 1001);
    }
    assert!(
        store
            .adopt_tasks("bridge-2", 5000, 9000)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        store
            .adopt_tasks("bridge-2", 5001, 9000)
            .await
            .unwrap()
            .len(),
        2
    );
    assert!(store.renew_leases(BRIDGE, 9000).await.unwrap().is_empty());
}

async fn a_task_whose_owner_died_is_adopted(database: Database) {
    let store = database.open().await;
    let (id, done) = (made(&store).await, made(&store).await);
    store
        .finish_task(&done, BRIDGE, Outcome::Cancelled, None, 1001)
        .await
        .unwrap();
    // Whoever stalled renews, and runs nothing twice.
    assert!(
        store
            .adopt_tasks(BRIDGE, 3000, 4000)
            .await
            .unwrap()
            .is_empty()
    );
    let adopted = store.adopt_tasks("bridge-2", 3000, 4000).await.unwrap();
    let ids: Vec<&str> = adopted.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, [id.as_str()]);
    assert_eq!(adopted[0].owner.as_deref(), Some("bridge-2"));
    assert_eq!(adopted[0].lease_until, Some(4000));
    assert_eq!(adopted[0].arguments, new().arguments);
    let late = Outcome::Completed("{}".to_owned());
    assert!(
        !store
            .finish_task(&id, BRIDGE, late, None, 3001)
            .await
            .unwrap()
    );
    assert_eq!(store.take_answers(&id, BRIDGE).await.unwrap(), None);
    // A task that is about to be deleted isn't worth the work.
    assert!(
        store
            .adopt_tasks("bridge-3", 61_000, 70_000)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn an_adopted_task_starts_over(database: Database) {
    let store = database.open().await;
    let id = made(&store).await;
    store
        .ask_task(&id, BRIDGE, &question("name"), 1001)
        .await
        .unwrap();
    let answer = map(json!({ "name": "Ada" }));
    store.answer_task(&id, MINE, &answer, 1002).await.unwrap();
    store.take_answers(&id, BRIDGE).await.unwrap();
    store
        .ask_task(&id, BRIDGE, &question("colour"), 1003)
        .await
        .unwrap();

    let adopted = store.adopt_tasks("bridge-2", 3000, 4000).await.unwrap();
    assert_eq!(adopted[0].status, TaskStatus::InputRequired);
    assert_eq!(open(&adopted[0]), ["colour"]);
    store
        .ask_task(&id, "bridge-2", &question("name"), 3001)
        .await
        .unwrap();
    let taken = store.take_answers(&id, "bridge-2").await.unwrap();
    assert_eq!(taken.expect("it is open").answers, answer);
}

async fn two_bridges_never_adopt_one_task(database: Database) {
    let stores = futures_util::future::join_all((0..4).map(|_| database.open())).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(made(&stores[0]).await);
    }
    let adopted = futures_util::future::join_all((0..12).map(|number| {
        let store = &stores[number % 4];
        async move {
            store
                .adopt_tasks(&format!("bridge-{}", number + 2), 3000, 4000)
                .await
                .unwrap()
        }
    }));
    let mut adopted: Vec<String> = adopted
        .await
        .into_iter()
        .flatten()
        .map(|it| it.id)
        .collect();
    adopted.sort();
    ids.sort();
    assert_eq!(adopted, ids);
}

async fn tasks_expire(database: Database) {
    let store = database.open().await;
    for ttl_ms in [None, Some(0), Some(999), Some(1000), Some(i64::MAX)] {
        let new = NewTask { ttl_ms, ..new() };
        store.create_task(new, 1000).await.unwrap();
    }
    assert_eq!(store.expire_tasks(999).await.unwrap(), 0);
    assert_eq!(store.expire_tasks(1999).await.unwrap(), 2);
    assert_eq!(store.expire_tasks(2000).await.unwrap(), 1);
    assert_eq!(store.renew_leases(BRIDGE, 9000).await.unwrap().len(), 2);
}

async fn many_answers_come_at_once(database: Database) {
    let (one, other) = tokio::join!(database.open(), database.open());
    let id = made(&one).await;
    let keys: Vec<String> = (0..10).map(|it| format!("k{it}")).collect();
    for key in &keys {
        one.ask_task(&id, BRIDGE, &question(key), 1001)
            .await
            .unwrap();
    }
    let answered = futures_util::future::join_all(keys.iter().enumerate().map(|(at, key)| {
        let store = if at % 2 == 0 { &one } else { &other };
        let (id, answer) = (id.as_str(), map(json!({ key: at })));
        async move { store.answer_task(id, MINE, &answer, 1002).await }
    }));
    let taken = futures_util::future::join_all((0..10).map(|_| one.take_answers(&id, BRIDGE)));
    let (answered, taken) = tokio::join!(answered, taken);
    assert!(answered.into_iter().all(|it| it.unwrap().is_some()));
    let mut taken: Vec<String> = taken
        .into_iter()
        .chain([one.take_answers(&id, BRIDGE).await])
        .flat_map(|it| it.unwrap().expect("it is open").answers)
        .map(|(key, _)| key)
        .collect();
    taken.sort();
    assert_eq!(taken, keys);
    let task = find(&one, &id).await;
    assert_eq!(task.status, TaskStatus::Working);
    assert_eq!(task.input_responses.len(), 10);
}

async fn odd_ids_are_no_tasks(database: Database) {
    let store = database.open().await;
    made(&store).await;
    for id in ["", "a\0", "\0", "' OR 1 = 1 --", "%"] {
        assert_eq!(store.find_task(id, MINE).await.unwrap(), None, "{id:?}");
        let answered = store.answer_task(id, MINE, &Map::new(), 1001).await;
        assert_eq!(answered.unwrap(), None, "{id:?}");
        assert_eq!(
            store.request_cancel(id, MINE, 1001).await.unwrap(),
            None,
            "{id:?}"
        );
    }
}
