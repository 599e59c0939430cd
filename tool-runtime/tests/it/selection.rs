//! What is on.

use expect_test::{Expect, expect};
use std::collections::BTreeSet;
use tool_runtime::{Provider as _, Registry, Selection, ServerSelection, tool_server};

struct Weather;

#[tool_server(name = "weather-service", version = "1.0.0", manual)]
impl Weather {
    /// Tell the temperature.
    #[tool(read_only)]
    fn get_temperature() {}

    /// Tell what comes.
    #[tool(read_only)]
    fn get_forecast() {}

    /// Make it rain.
    #[tool]
    fn make_rain() {}
}

struct Notes;

#[tool_server(name = "notes", version = "1.0.0", manual)]
impl Notes {
    /// Save a note.
    #[tool]
    fn save() {}
}

fn registry() -> Registry {
    let registry = Registry::empty().with(Weather);
    registry.and_then(|it| it.with(Notes)).unwrap()
}

/// Shows which tools a selection turns on, and what it names wrongly.
#[track_caller]
fn check(selection: &Selection, expect: Expect) {
    let servers = registry().servers();
    let mut lines = Vec::new();
    for server in &servers {
        let tools = server.tools.iter().map(|it| it.name.as_str());
        let on: Vec<&str> = tools
            .filter(|it| selection.includes(&server.name, it))
            .collect();
        let state = if selection.includes_server(&server.name) {
            on.join(" ")
        } else {
            "off".to_owned()
        };
        lines.push(format!("{}: {state}", server.name));
    }
    if let Err(error) = selection.check(&servers) {
        lines.push(error.to_string());
    }
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn everything_is_on() {
    check(
        &Selection::all(),
        expect![[r#"
            notes: save
            weather-service: get_temperature get_forecast make_rain"#]],
    );
}

#[test]
fn a_server_can_be_off() {
    check(
        &Selection::all().without_server("notes"),
        expect![[r#"
            notes: off
            weather-service: get_temperature get_forecast make_rain"#]],
    );
}

#[test]
fn a_tool_can_be_off() {
    let selection = Selection::all().without(Weather::MAKE_RAIN);
    check(
        &selection,
        expect![[r#"
            notes: save
            weather-service: get_temperature get_forecast"#]],
    );
    check(
        &selection.without(Weather::GET_FORECAST),
        expect![[r#"
            notes: save
            weather-service: get_temperature"#]],
    );
}

#[test]
fn only_some_tools_can_be_on() {
    let selection = Selection::all().only(Weather::GET_TEMPERATURE);
    check(
        &selection,
        expect![[r#"
            notes: save
            weather-service: get_temperature"#]],
    );
    let selection = selection.only(Weather::GET_FORECAST);
    check(
        &selection,
        expect![[r#"
            notes: save
            weather-service: get_temperature get_forecast"#]],
    );
    check(
        &selection.without(Weather::GET_FORECAST),
        expect![[r#"
            notes: save
            weather-service: get_temperature"#]],
    );
}

#[test]
fn a_server_that_is_off_has_no_tool_that_is_on() {
    let selection = Selection::all()
        .only(Weather::MAKE_RAIN)
        .without_server("weather-service");
    check(
        &selection,
        expect![[r#"
            notes: save
            weather-service: off"#]],
    );
    assert_eq!(
        selection.of("weather-service"),
        ServerSelection {
            enabled: false,
            only: Some(BTreeSet::from(["make_rain".to_owned()])),
            without: BTreeSet::new(),
            prefix: None,
        }
    );
    assert_eq!(selection.of("notes"), ServerSelection::default());
}

#[test]
fn a_selection_can_come_from_settings() {
    let named = ServerSelection {
        enabled: true,
        only: None,
        without: ["get_forecast", "make_rain"].map(str::to_owned).into(),
        prefix: None,
    };
    check(
        &Selection::all().server("weather-service", named),
        expect![[r#"
            notes: save
            weather-service: get_temperature"#]],
    );
}

#[test]
fn what_does_not_exist_is_named_with_what_may_be_meant() {
    let misspelled = |tool: &str| ServerSelection {
        without: BTreeSet::from([tool.to_owned()]),
        ..ServerSelection::default()
    };
    check(
        &Selection::all().without_server("note"),
        expect![[r#"
            notes: save
            weather-service: get_temperature get_forecast make_rain
            there is no server `note`; did you mean `notes`?"#]],
    );
    check(
        &Selection::all().without_server("browser"),
        expect![[r#"
            notes: save
            weather-service: get_temperature get_forecast make_rain
            there is no server `browser`"#]],
    );
    check(
        &Selection::all()
            .server("weather-service", misspelled("get_temprature"))
            .server("weather", misspelled("get_forecast"))
            .server("notes", misspelled("delete")),
        expect![[r#"
            notes: save
            weather-service: get_temperature get_forecast make_rain
            the server `notes` has no tool `delete`
            there is no server `weather`; did you mean `weather-service`?
            the server `weather-service` has no tool `get_temprature`; did you mean `get_temperature` or `get_forecast`?"#]],
    );
}

#[test]
fn names_are_constants_that_the_compiler_checks() {
    assert_eq!(Weather::MAKE_RAIN.server, "weather-service");
    assert_eq!(Weather::MAKE_RAIN.tool, "make_rain");
    assert_eq!(Notes::SAVE.to_string(), "mcp__notes__save");
}
