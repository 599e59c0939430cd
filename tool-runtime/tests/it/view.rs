//! What a host sees of all that can be called.

use crate::{
    external::{External, external, external_tool},
    host::{caller, reaching},
};
use expect_test::expect;
use serde_json::{Map, json};
use std::{collections::BTreeMap, sync::Arc};
use tool_runtime::{
    Caller, Context, Dispatcher, Limits, Prompt, Provider, Registry, Resource, Selection, Server,
    ServerSelection, Unavailable, View, tool_server,
};

fn broken(name: &str, tool: &str) -> Arc<Server> {
    let mut server = Arc::into_inner(external(name, &[(tool, "Break.")])).unwrap();
    server.unavailable = Some(Unavailable {
        reason: "the connection was refused".to_owned(),
        variable: None,
    });
    Arc::new(server)
}

struct Git;

/// Git of this project.
#[tool_server(name = "git", version = "2.0.0", manual)]
impl Git {
    /// Show what changed.
    #[tool(read_only)]
    fn status() {}

    /// Write a commit.
    #[tool]
    fn commit() {}

    /// The log.
    #[resource(uri = "git://log")]
    fn log() -> String {
        "log".to_owned()
    }

    /// Ask for a message.
    #[prompt]
    fn message() -> String {
        "Write a commit message.".to_owned()
    }
}

struct Hub;

#[tool_server(name = "hub", version = "1.0.0", manual)]
impl Hub {
    /// Show how the hub is.
    #[tool]
    fn status() {}

    /// Open an issue.
    #[tool]
    fn open_issue() {}
}

fn providers() -> Vec<Arc<dyn Provider>> {
    let registry = Registry::empty().with(Hub).and_then(|it| it.with(Git));
    let external = External(vec![
        external("zoo", &[("feed", "Feed.")]),
        broken("attic", "rummage"),
    ]);
    vec![Arc::new(external), Arc::new(registry.unwrap())]
}

fn view(selection: Selection) -> View {
    View::new(&providers(), selection)
}

fn lines(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

#[test]
fn tools_are_listed_by_server_and_then_as_in_the_source() {
    let view = view(Selection::all());
    let caller = caller();
    let shown = view
        .tools(&caller)
        .map(|it| format!("{} of {}", it.name, it.item.server));
    expect![[r#"
        git_status of git
        commit of git
        hub_status of hub
        open_issue of hub
        feed of zoo"#]]
    .assert_eq(&lines(shown));
}

#[test]
fn the_listed_names_do_not_depend_on_what_is_on() {
    let view = view(Selection::all().without_server("hub"));
    let caller = caller();
    let shown = view.tools(&caller).map(|it| it.name.to_owned());
    expect![[r#"
        git_status
        commit
        feed"#]]
    .assert_eq(&lines(shown));
}

#[test]
fn enabled_servers_are_on_and_available() {
    let names = |view: &View| {
        let names = view.enabled_servers().map(|it| it.name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&view(Selection::all())), ["git", "hub", "zoo"]);
    let selection = Selection::all().without_server("hub");
    assert_eq!(names(&view(selection)), ["git", "zoo"]);
    let all = view(Selection::all());
    let all: Vec<&str> = all.servers().map(|it| it.name.as_str()).collect();
    assert_eq!(all, ["attic", "git", "hub", "zoo"]);
}

#[test]
fn allowed_tools_are_full_names_of_what_is_on() {
    let selection = Selection::all().without(Git::COMMIT).only(Hub::OPEN_ISSUE);
    let view = view(selection);
    expect![[r#"
        mcp__git__status
        mcp__hub__open_issue
        mcp__zoo__feed"#]]
    .assert_eq(&lines(view.allowed_tools()));
    let of_hub = view.enabled_tools("hub").map(|it| it.name.clone());
    assert_eq!(of_hub.collect::<Vec<_>>(), ["open_issue"]);
    assert_eq!(view.enabled_tools("attic").count(), 0);
    assert_eq!(view.enabled_tools("nowhere").count(), 0);
}

#[test]
fn any_spelling_resolves_to_the_full_name() {
    let view = view(Selection::all().without(Git::COMMIT));
    let resolve = |it: &str| view.resolve(it).unwrap();
    assert_eq!(
        resolve("mcp__clopen_mcp__open_issue").as_deref(),
        Some("mcp__hub__open_issue")
    );
    assert_eq!(resolve("commit").as_deref(), Some("mcp__git__commit"));
    assert_eq!(resolve("git_status").as_deref(), Some("mcp__git__status"));
    assert_eq!(resolve("rummage").as_deref(), Some("mcp__attic__rummage"));
    assert_eq!(resolve("Bash"), None);
    let error = view.resolve("status").unwrap_err();
    expect!["`status` could mean several: call `mcp__git__status` or `mcp__hub__status`"]
        .assert_eq(&error.to_string());
}

#[test]
fn ours_is_whatever_could_mean_one_of_these_tools() {
    let view = view(Selection::all());
    for ours in ["clopen-mcp_feed", "feed", "status", "mcp__git__status"] {
        assert!(view.is_ours(ours), "{ours}");
    }
    for other in ["Bash", "mcp__other__feed", "feeds", ""] {
        assert!(!view.is_ours(other), "{other}");
    }
}

#[test]
fn a_server_comes_with_what_is_selected_of_it() {
    let view = view(Selection::all().without(Git::COMMIT));
    let (server, selection) = view.server("git").unwrap();
    assert_eq!(server.version, "2.0.0");
    assert_eq!(server.description, "Git of this project.");
    assert!(selection.enabled && selection.without.contains("commit"));
    assert!(view.server("nowhere").is_none());
    let (attic, _) = view.server("attic").unwrap();
    let reason = attic.unavailable.as_ref().map(|it| it.reason.as_str());
    assert_eq!(reason, Some("the connection was refused"));
}

#[test]
fn statistics_count_what_is_there_and_what_is_on() {
    let view = view(Selection::all().without_server("hub"));
    expect![[r#"
        {
          "servers": 4,
          "enabled_servers": 2,
          "tools": 6,
          "enabled_tools": 3,
          "names": [
            "mcp__git__status",
            "mcp__git__commit",
            "mcp__zoo__feed"
          ]
        }"#]]
    .assert_eq(&format!("{:#}", json!(view.statistics())));
}

#[test]
fn resources_and_prompts_follow_their_server() {
    let uris = |view: &View, caller: &Caller| {
        let uris = view.resources(caller).map(|it| it.uri.clone());
        let prompts = view.prompts(caller).map(|it| it.name.to_owned());
        uris.chain(prompts).collect::<Vec<_>>()
    };
    let on = view(Selection::all());
    assert_eq!(uris(&on, &caller()), ["git://log", "message"]);
    assert!(uris(&on, &reaching(&["hub"], false)).is_empty());
    let off = view(Selection::all().without_server("git"));
    assert!(uris(&off, &caller()).is_empty());
}

#[test]
fn a_caller_sees_only_what_it_reaches() {
    let view = view(Selection::all());
    let tools = |caller: &Caller| {
        let tools = view.tools(caller).map(|it| it.name.to_owned());
        tools.collect::<Vec<_>>()
    };
    assert_eq!(tools(&reaching(&["zoo"], false)), ["feed"]);
    assert_eq!(tools(&reaching(&["git", "hub"], true)), ["git_status"]);
    assert!(tools(&reaching(&[], false)).is_empty());
}

#[test]
fn nam_057_the_first_of_two_tools_of_one_name_stays_and_a_note_says_so() {
    let twice = External(vec![external("a", &[("a", "1"), ("a", "2"), ("b", "3")])]);
    let view = View::new(&[Arc::new(twice)], Selection::all());
    let caller = caller();
    let shown = view
        .tools(&caller)
        .map(|it| format!("{}: {}", it.name, it.item.description));
    assert_eq!(lines(shown), "a: 1\nb: 3");
    expect!["a second tool `a` of `a` was left out"].assert_eq(&lines(view.notes().to_vec()));
}

#[test]
fn nam_060_a_tool_without_a_name_is_left_out_with_a_note() {
    let nameless = External(vec![external("a", &[("  ", "1"), ("", "2"), ("b", "3")])]);
    let view = View::new(&[Arc::new(nameless)], Selection::all());
    let caller = caller();
    let shown = view.tools(&caller).map(|it| it.name.to_owned());
    assert_eq!(lines(shown), "b");
    expect![[r#"
        a tool of `a` has no name and was left out
        a tool of `a` has no name and was left out"#]]
    .assert_eq(&lines(view.notes().to_vec()));
}

fn external_prompt(server: &str, name: &str, description: &str) -> Arc<Prompt> {
    Arc::new(Prompt {
        server: server.into(),
        name: name.to_owned(),
        title: None,
        description: description.to_owned(),
        arguments: Vec::new(),
        further: Map::new(),
        index: 0,
    })
}

fn external_resource(uri: &str, description: &str) -> Arc<Resource> {
    Arc::new(Resource {
        server: "a".into(),
        uri: uri.to_owned(),
        name: "one of many".to_owned(),
        title: None,
        description: description.to_owned(),
        mime_type: None,
        variables: Vec::new(),
        further: Map::new(),
        index: 0,
    })
}

#[test]
fn nam_057_060_prompts_and_resources_are_told_apart_like_tools() {
    let mut server = Arc::into_inner(external("a", &[("b", "1"), ("b", "2")])).unwrap();
    server.prompts = ["b", "", "b"]
        .map(|it| external_prompt("a", it, "3"))
        .into();
    server.resources = [("b://b", "4"), ("b://b", "5"), (" ", "6")]
        .map(|(uri, description)| external_resource(uri, description))
        .into();
    let view = View::new(&[Arc::new(External(vec![server.into()]))], Selection::all());
    let caller = caller();
    let prompts = view.prompts(&caller).map(|it| it.name.to_owned());
    assert_eq!(lines(prompts), "b");
    let resources = view.resources(&caller).map(|it| it.description.clone());
    assert_eq!(lines(resources), "4");
    expect![[r#"
        a second tool `b` of `a` was left out
        a second resource `b://b` of `a` was left out
        a resource of `a` has no URI and was left out
        a prompt of `a` has no name and was left out
        a second prompt `b` of `a` was left out"#]]
    .assert_eq(&lines(view.notes().to_vec()));
}

#[test]
fn nam_056_the_first_of_two_servers_of_one_name_stays_and_a_note_says_so() {
    let registry: Arc<dyn Provider> = Arc::new(Registry::empty().with(Hub).unwrap());
    let other: Arc<dyn Provider> =
        Arc::new(External(vec![external("hub", &[("steal", "Steal.")])]));
    let view = View::new(&[registry, other], Selection::all());
    let caller = caller();
    let shown = view.tools(&caller).map(|it| it.name.to_owned());
    assert_eq!(lines(shown), "status\nopen_issue");
    expect!["a second server `hub` was left out"].assert_eq(&lines(view.notes().to_vec()));
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_may_not_know_of_hides_nothing_that_is_similar() {
    let hidden = external("a", &[("feed_1", "1"), ("feed_2", "2"), ("feed_3", "3")]);
    let known = external("b", &[("feeding", "4")]);
    let prompts = |server: Arc<Server>, names: &[&str]| {
        let mut server = Arc::into_inner(server).unwrap();
        server.prompts = names
            .iter()
            .map(|it| external_prompt(&server.name, it, "5"))
            .collect();
        Arc::new(server)
    };
    let servers = vec![
        prompts(hidden, &["feed_1", "feed_2", "feed_3"]),
        prompts(known, &["feeding"]),
    ];
    let external: Vec<Arc<dyn Provider>> = vec![Arc::new(External(servers))];
    let dispatcher =
        Dispatcher::with(Registry::empty(), external, Limits::default(), Vec::new()).unwrap();
    let context = Context::new(reaching(&["b"], false));
    let error = dispatcher.call("feed", "", &context).await.unwrap_err();
    expect!["there is no tool `feed`; did you mean `feeding`?"].assert_eq(&error.to_string());
    let error = dispatcher.prompt("feed", BTreeMap::new(), &context).await;
    expect!["there is no prompt `feed`; did you mean `feeding`?"]
        .assert_eq(&error.unwrap_err().to_string());
}

#[tokio::test(start_paused = true)]
async fn external_tools_are_called_like_ours() {
    let schema = json!({
        "type": "object",
        "properties": { "count": { "type": "integer", "minimum": 1 }, "names": { "type": "array" } },
        "required": ["count"],
        "x-vendor": true,
    });
    let mut zoo = Arc::into_inner(external("zoo", &[])).unwrap();
    zoo.tools = vec![external_tool("zoo", "feed.all", "Feed all.", schema)];
    let external: Vec<Arc<dyn Provider>> = vec![Arc::new(External(vec![Arc::new(zoo)]))];
    let dispatcher =
        Dispatcher::with(Registry::empty(), external, Limits::default(), Vec::new()).unwrap();
    let context = Context::new(caller());
    let mut shown = Vec::new();
    for arguments in [
        r#"{"count":1,"other":[1.50]}"#,
        r#"{"count":"2","names":"[\"Leo\"]"}"#,
        r#"{"count":0}"#,
        "",
    ] {
        let answer = dispatcher.call("feed_all", arguments, &context).await;
        shown.push(match answer {
            Ok(output) => output.to_text(),
            Err(error) => error.to_string(),
        });
    }
    expect![[r#"
        feed.all of zoo: {"count":1,"other":[1.50]}
        feed.all of zoo: {"count":2,"names":["Leo"]}
        the arguments of `feed.all` are not valid, nothing was done:
        - /count: 0 is less than the minimum of 1
        the arguments of `feed.all` are not valid, nothing was done:
        - `count` is required"#]]
    .assert_eq(&lines(shown));
}

#[test]
fn a_server_by_itself_is_listed_by_its_own_names() {
    let tools = [("search", ""), ("open", "")];
    let both = External(vec![external("a", &tools), external("b", &tools)]);
    let both: Arc<dyn Provider> = Arc::new(both);
    let view = View::new(&[both], Selection::all());
    let listed = |caller: &Caller| lines(view.tools(caller).map(|it| it.name.to_owned()));
    let all = Caller::default();
    expect![[r#"
        a_search
        a_open
        b_search
        b_open"#]]
    .assert_eq(&listed(&all));
    let only_b = reaching(&["b"], false);
    expect![[r#"
        search
        open"#]]
    .assert_eq(&listed(&only_b));
    for spelled in ["search", "b_search", "mcp__b__search", "clopen-mcp_search"] {
        let meant = view.reached_tool(spelled, &only_b);
        let meant = meant.map(|it| (&*it.server, it.name.as_str()));
        assert_eq!(meant, Some(("b", "search")), "{spelled}");
    }
    assert!(view.reached_tool("a_search", &only_b).is_none());
}

#[test]
fn who_wants_prefixes_has_them_before_all_names() {
    let tools = [("search", ""), ("open", "")];
    let both = External(vec![
        external("a", &tools),
        external("long-name", &[("open", "")]),
    ]);
    let both: Arc<dyn Provider> = Arc::new(both);
    let own = ServerSelection {
        prefix: Some("ln".to_owned()),
        ..ServerSelection::default()
    };
    let view = View::new(&[both], Selection::all().server("long-name", own));
    let listed = |caller: &Caller| lines(view.tools(caller).map(|it| it.name.to_owned()));
    expect![[r#"
        search
        a_open
        ln_open"#]]
    .assert_eq(&listed(&Caller::default()));
    let prefixed = Caller {
        prefixed: true,
        ..Caller::default()
    };
    expect![[r#"
        a_search
        a_open
        ln_open"#]]
    .assert_eq(&listed(&prefixed));
    for spelled in [
        "ln_open",
        "long-name_open",
        "mcp__long-name__open",
        "mcp__clopen-mcp__ln_open",
    ] {
        for caller in [&Caller::default(), &prefixed] {
            let meant = view.reached_tool(spelled, caller);
            assert_eq!(meant.map(|it| &*it.server), Some("long-name"), "{spelled}");
        }
    }
}
