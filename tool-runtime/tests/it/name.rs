//! Names of tools: listed, spelled by an engine, and read back.

use crate::{
    host::{caller, view},
    name_strategies::{Owned, entries, legal_server, legal_tool, named, wild_name},
};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::collections::HashSet;
use tool_runtime::{
    LONGEST_TOOL_NAME, Names, Registry, ToolName, full_name, parse_full_name, tool_server,
};

type Entries<'n> = &'n [(&'n str, &'n str)];

/// Shows the names that a list has.
#[track_caller]
fn check_listed(entries: Entries<'_>, expect: Expect) {
    let names = Names::new(entries.iter().copied());
    let listed = (0..entries.len()).map(|it| names.listed(it));
    let listed: Vec<&str> = listed.collect();
    for name in &listed {
        assert!(is_legal(name), "`{name}` is refused by some engine");
    }
    expect.assert_eq(&listed.join("\n"));
}

/// Shows what spellings mean.
#[track_caller]
fn check_resolved(entries: Entries<'_>, spellings: &[&str], expect: Expect) {
    let names = Names::new(entries.iter().copied());
    let lines = spellings.iter().map(|it| match names.resolve(it) {
        Ok(Some(index)) => format!("{it}: {} of {}", entries[index].1, entries[index].0),
        Ok(None) => format!("{it}: nothing"),
        Err(error) => format!("{it}: {error}"),
    });
    let lines: Vec<String> = lines.collect();
    expect.assert_eq(&lines.join("\n"));
}

/// Whether no engine changes anything of a name but `-` to `_`.
fn is_legal(name: &str) -> bool {
    let is_word = |it: &str| !it.is_empty() && it.chars().all(|it| it.is_ascii_alphanumeric());
    name.len() <= LONGEST_TOOL_NAME && name.split(['_', '-']).all(is_word)
}

const WEATHER: Entries<'_> = &[
    ("notes", "save"),
    ("weather-service", "get_forecast"),
    ("weather-service", "get_temperature"),
];

#[test]
fn names_are_bare_while_they_are_unique() {
    check_listed(
        WEATHER,
        expect![[r#"
            save
            get_forecast
            get_temperature"#]],
    );
}

#[test]
fn every_spelling_of_every_engine_is_known() {
    check_resolved(
        WEATHER,
        &[
            "clopen-mcp_get_temperature",
            "clopen-mcp-get_temperature",
            "get_temperature",
            "mcp__clopen-mcp__get_temperature",
            "mcp__clopen_mcp__get_temperature",
            "mcp_clopen-mcp_get_temperature",
            "clopen-mcp__get_temperature",
            "mcp__weather-service__get_temperature",
            "mcp__weather_service__get_temperature",
            "weather-service_get_temperature",
            "clopen-mcp_weather-service_get_temperature",
        ],
        expect![[r#"
            clopen-mcp_get_temperature: get_temperature of weather-service
            clopen-mcp-get_temperature: get_temperature of weather-service
            get_temperature: get_temperature of weather-service
            mcp__clopen-mcp__get_temperature: get_temperature of weather-service
            mcp__clopen_mcp__get_temperature: get_temperature of weather-service
            mcp_clopen-mcp_get_temperature: get_temperature of weather-service
            clopen-mcp__get_temperature: get_temperature of weather-service
            mcp__weather-service__get_temperature: get_temperature of weather-service
            mcp__weather_service__get_temperature: get_temperature of weather-service
            weather-service_get_temperature: get_temperature of weather-service
            clopen-mcp_weather-service_get_temperature: get_temperature of weather-service"#]],
    );
}

#[test]
fn what_means_nothing_is_nothing() {
    check_resolved(
        WEATHER,
        &[
            "",
            "_",
            "mcp__clopen-mcp__",
            "clopen-mcp",
            "get",
            "get_temperatures",
            "Get_Temperature",
            "GET_TEMPERATURE",
            "weather-service",
            "mcp__notes__get_temperature",
            "notes_get_temperature",
            "mcp__other__get_temperature",
        ],
        expect![[r#"
            : nothing
            _: nothing
            mcp__clopen-mcp__: nothing
            clopen-mcp: nothing
            get: nothing
            get_temperatures: nothing
            Get_Temperature: nothing
            GET_TEMPERATURE: nothing
            weather-service: nothing
            mcp__notes__get_temperature: nothing
            notes_get_temperature: nothing
            mcp__other__get_temperature: nothing"#]],
    );
}

#[test]
fn nam_046_a_name_that_is_too_long_is_cut_and_carries_a_hash() {
    const LONG: Entries<'_> = &[
        (
            "billing-cost-management-mcp-server",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ),
        (
            "billing-cost-management-mcp-server",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy",
        ),
        ("other", "exactly_forty_six_characters_are_still_allowed"),
    ];
    check_listed(
        LONG,
        expect![[r#"
            xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_8ff0d72d
            xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_8ef0d59a
            exactly_forty_six_characters_are_still_allowed"#]],
    );
    check_resolved(
        LONG,
        &[
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "mcp__clopen-mcp__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "mcp__billing-cost-management-mcp-server__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ],
        expect![[r#"
            xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx of billing-cost-management-mcp-server
            mcp__clopen-mcp__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx of billing-cost-management-mcp-server
            mcp__billing-cost-management-mcp-server__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx of billing-cost-management-mcp-server"#]],
    );
}

#[test]
fn nam_048_the_limit_is_that_of_the_whole_name() {
    check_listed(
        &[
            ("nested-verbose-server-one", "a_tool_with_a_very_long_name"),
            ("nested-verbose-server-two", "a_tool_with_a_very_long_name"),
        ],
        expect![[r#"
            nested-verbose-server-one_a_tool_with_5d3fd518
            nested-verbose-server-two_a_tool_with_70c9ce4a"#]],
    );
}

#[test]
fn nam_049_the_hash_has_its_room_within_the_limit() {
    let long = "a".repeat(63);
    check_listed(
        &[("one", &long), ("two", &long)],
        expect![[r#"
            one_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_13ad0191
            two_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_288beed7"#]],
    );
}

#[test]
fn nam_050_dots_are_replaced_and_both_forms_are_known() {
    const CALENDAR: Entries<'_> = &[("calendar", "calendar.read")];
    check_listed(CALENDAR, expect!["calendar_read_a0084d97"]);
    check_resolved(
        CALENDAR,
        &["calendar.read", "calendar_read", "clopen-mcp-calendar-read"],
        expect![[r#"
            calendar.read: calendar.read of calendar
            calendar_read: calendar.read of calendar
            clopen-mcp-calendar-read: calendar.read of calendar"#]],
    );
}

#[test]
fn nam_051_the_whole_name_is_cleaned() {
    const SHEETS: Entries<'_> = &[
        ("Google Sheets", "files/read (v2)"),
        ("Google Docs", "files/read (v2)"),
        ("Google Docs", "löschen: alles"),
    ];
    check_listed(
        SHEETS,
        expect![[r#"
            Google_Sheets_files_read_v2_a6e1e216
            Google_Docs_files_read_v2_e1a7bc49
            l_schen_alles_a0cee2dc"#]],
    );
    check_resolved(
        SHEETS,
        &[
            "files/read (v2)",
            "Google Sheets_files/read (v2)",
            "mcp__Google_Sheets__files_read__v2_",
            "mcp__Google Sheets__files/read (v2)",
            "löschen: alles",
        ],
        expect![[r#"
            files/read (v2): `files/read (v2)` could mean several: call `mcp__Google Docs__files/read (v2)` or `mcp__Google Sheets__files/read (v2)`
            Google Sheets_files/read (v2): files/read (v2) of Google Sheets
            mcp__Google_Sheets__files_read__v2_: files/read (v2) of Google Sheets
            mcp__Google Sheets__files/read (v2): files/read (v2) of Google Sheets
            löschen: alles: löschen: alles of Google Docs"#]],
    );
}

#[test]
fn nam_051_a_name_of_separators_only_gets_a_name() {
    const DASHES: Entries<'_> = &[("a", "-"), ("a", "..."), ("b", "-")];
    check_listed(
        DASHES,
        expect![[r#"
            a_d4a3f8ac
            0ac31c19
            b_9e3d8659"#]],
    );
    check_resolved(
        DASHES,
        &["-", "...", "mcp__b__-"],
        expect![[r#"
            -: `-` could mean several: call `mcp__a__-` or `mcp__b__-`
            ...: ... of a
            mcp__b__-: - of b"#]],
    );
}

#[test]
fn nam_053_hyphens_and_capitals_stay() {
    const LINEAR: Entries<'_> = &[
        ("linear", "mcp__Linear__search_documentation"),
        ("context7", "resolve-library-id"),
        ("context7", "Resolve-Library-Id"),
    ];
    check_listed(
        LINEAR,
        expect![[r#"
            mcp_Linear_search_documentation_e4555a83
            resolve-library-id
            Resolve-Library-Id"#]],
    );
    check_resolved(
        LINEAR,
        &[
            "mcp__Linear__search_documentation",
            "mcp__clopen-mcp__resolve-library-id",
            "mcp__clopen_mcp__resolve_library_id",
            "clopen-mcp-Resolve-Library-Id",
        ],
        expect![[r#"
            mcp__Linear__search_documentation: mcp__Linear__search_documentation of linear
            mcp__clopen-mcp__resolve-library-id: resolve-library-id of context7
            mcp__clopen_mcp__resolve_library_id: resolve-library-id of context7
            clopen-mcp-Resolve-Library-Id: Resolve-Library-Id of context7"#]],
    );
}

#[test]
fn nam_054_a_server_that_ends_in_a_separator_keeps_its_tools() {
    const FOO: Entries<'_> = &[
        ("com.foo_", "browser_click"),
        ("com.bar", "browser_click"),
        ("com.foo_", "__browser__open__"),
    ];
    check_listed(
        FOO,
        expect![[r#"
            com_foo_browser_click_75407a19
            com_bar_browser_click_f32d7089
            browser_open_4e93cbb9"#]],
    );
    check_resolved(
        FOO,
        &[
            "mcp__com.foo___browser_click",
            "mcp__com_foo___browser_click",
            "mcp__com_foo__browser_click",
            "com.foo__browser_click",
            "browser_open",
        ],
        expect![[r#"
            mcp__com.foo___browser_click: browser_click of com.foo_
            mcp__com_foo___browser_click: browser_click of com.foo_
            mcp__com_foo__browser_click: browser_click of com.foo_
            com.foo__browser_click: browser_click of com.foo_
            browser_open: __browser__open__ of com.foo_"#]],
    );
}

#[test]
fn nam_056_one_name_on_two_servers_is_listed_twice_and_reached_under_both() {
    const MAIL: Entries<'_> = &[("mcp_1", "send_email"), ("mcp_2", "send_email")];
    check_listed(
        MAIL,
        expect![[r#"
            mcp_1_send_email
            mcp_2_send_email"#]],
    );
    check_resolved(
        MAIL,
        &[
            "mcp_1_send_email",
            "mcp__clopen-mcp__mcp_2_send_email",
            "mcp__mcp_2__send_email",
            "send_email",
            "mcp__clopen-mcp__send_email",
        ],
        expect![[r#"
            mcp_1_send_email: send_email of mcp_1
            mcp__clopen-mcp__mcp_2_send_email: send_email of mcp_2
            mcp__mcp_2__send_email: send_email of mcp_2
            send_email: `send_email` could mean several: call `mcp__mcp_1__send_email` or `mcp__mcp_2__send_email`
            mcp__clopen-mcp__send_email: `mcp__clopen-mcp__send_email` could mean several: call `mcp__mcp_1__send_email` or `mcp__mcp_2__send_email`"#]],
    );
}

#[test]
fn nam_058_names_that_look_alike_to_an_engine_are_told_apart() {
    const ITEMS: Entries<'_> = &[
        ("items", "get.item"),
        ("items", "get_item"),
        ("items", "get/item"),
        ("items", "get-item"),
    ];
    check_listed(
        ITEMS,
        expect![[r#"
            get_item_dee914dc
            get_item
            get_item_e8861857
            get-item_4bcc7369"#]],
    );
    check_resolved(
        ITEMS,
        &[
            "get.item",
            "get_item",
            "get/item",
            "get-item",
            "clopen-mcp_get_item",
        ],
        expect![[r#"
            get.item: get.item of items
            get_item: get_item of items
            get/item: get/item of items
            get-item: get-item of items
            clopen-mcp_get_item: get_item of items"#]],
    );
}

#[test]
fn nam_058_an_engine_that_folds_hyphens_still_tells_servers_apart() {
    const FOLDED: Entries<'_> = &[
        ("a-c", "b"),
        ("d", "b"),
        ("one", "a-c-b"),
        ("two", "a_c_b"),
        ("three", "a-c.b"),
    ];
    check_listed(
        FOLDED,
        expect![[r#"
        a-c_b
        d_b
        one_a-c-b
        two_a_c_b
        a-c_b_0b52e3a8"#]],
    );
    check_resolved(
        FOLDED,
        &[
            "a-c_b",
            "a_c_b",
            "mcp__clopen_mcp__a_c_b",
            "two_a_c_b",
            "mcp__two__a_c_b",
            "a-c-b",
            "a-c.b",
            "mcp_clopen-mcp_a-c.b",
            "a.c.b",
        ],
        expect![[r#"
            a-c_b: b of a-c
            a_c_b: b of a-c
            mcp__clopen_mcp__a_c_b: b of a-c
            two_a_c_b: a_c_b of two
            mcp__two__a_c_b: a_c_b of two
            a-c-b: a-c-b of one
            a-c.b: a-c.b of three
            mcp_clopen-mcp_a-c.b: a-c.b of three
            a.c.b: b of a-c"#]],
    );
}

#[test]
fn nam_063_a_full_name_never_means_a_tool_of_another_server() {
    check_resolved(
        &[
            ("hub", "git_status"),
            ("clopen-mcp", "hub_git"),
            ("hub", "git"),
        ],
        &[
            "mcp__git__status",
            "mcp__clopen-mcp__git_status",
            "mcp__clopen-mcp__hub_git",
            "git_status",
        ],
        expect![[r#"
            mcp__git__status: nothing
            mcp__clopen-mcp__git_status: git_status of hub
            mcp__clopen-mcp__hub_git: hub_git of clopen-mcp
            git_status: git_status of hub"#]],
    );
}

#[test]
fn a_prefixed_name_meets_a_bare_one() {
    const MET: Entries<'_> = &[("a", "x"), ("b", "x"), ("c", "a_x")];
    check_listed(
        MET,
        expect![[r#"
            a_x_17bbde5a
            b_x
            a_x_f4200750"#]],
    );
    check_resolved(
        MET,
        &["a_x", "b_x", "mcp__c__a_x", "x"],
        expect![[r#"
            a_x: a_x of c
            b_x: x of b
            mcp__c__a_x: a_x of c
            x: `x` could mean several: call `mcp__a__x` or `mcp__b__x`"#]],
    );
}

#[test]
fn nam_062_flat_and_namespaced_spellings_mean_one_tool() {
    check_resolved(
        &[("lanes", "register_lane"), ("roads", "register_road")],
        &[
            "mcp__lanes__register_lane",
            "lanes_register_lane",
            "lanes.register_lane",
            "register_lane",
            "lanes-register_lane",
        ],
        expect![[r#"
            mcp__lanes__register_lane: register_lane of lanes
            lanes_register_lane: register_lane of lanes
            lanes.register_lane: register_lane of lanes
            register_lane: register_lane of lanes
            lanes-register_lane: register_lane of lanes"#]],
    );
}

#[test]
fn listed_names_are_known_behind_the_server_that_is_served_alone() {
    check_resolved(
        &[
            ("git-tools", "show"),
            ("notes", "show"),
            ("notes", "git-tools__git-tools_show"),
            ("b-a", "b"),
            ("a", "b_a_b"),
        ],
        &[
            "mcp__git-tools__git-tools_show",
            "git-tools__git-tools_show",
            "git-tools-git-tools_show",
            "mcp__git_tools__git_tools_show",
            "mcp_notes_notes_show",
            "b-a__b",
            "mcp__b_a__b",
            "b_a_b",
        ],
        expect![[r#"
            mcp__git-tools__git-tools_show: show of git-tools
            git-tools__git-tools_show: show of git-tools
            git-tools-git-tools_show: `git-tools-git-tools_show` could mean several: call `mcp__git-tools__show` or `mcp__notes__git-tools__git-tools_show`
            mcp__git_tools__git_tools_show: show of git-tools
            mcp_notes_notes_show: show of notes
            b-a__b: b of b-a
            mcp__b_a__b: b of b-a
            b_a_b: b_a_b of a"#]],
    );
}

#[test]
fn nam_062_what_is_ambiguous_is_an_error_with_the_candidates() {
    check_resolved(
        &[
            ("lanes", "register"),
            ("roads", "register"),
            ("paths", "lanes_register"),
        ],
        &[
            "register",
            "clopen-mcp_register",
            "lanes_register",
            "mcp__lanes__register",
            "mcp__paths__lanes_register",
        ],
        expect![[r#"
            register: `register` could mean several: call `mcp__lanes__register` or `mcp__roads__register`
            clopen-mcp_register: `clopen-mcp_register` could mean several: call `mcp__lanes__register` or `mcp__roads__register`
            lanes_register: lanes_register of paths
            mcp__lanes__register: register of lanes
            mcp__paths__lanes_register: lanes_register of paths"#]],
    );
}

#[test]
fn nam_062_candidates_are_names_that_mean_one_each() {
    check_resolved(
        &[("a", "x__y"), ("a__x", "y")],
        &["mcp__a__x__y", "a_x_y", "y"],
        expect![[r#"
            mcp__a__x__y: `mcp__a__x__y` could mean several: call `x_y_02f5d864` or `y`
            a_x_y: `a_x_y` could mean several: call `x_y_02f5d864` or `y`
            y: y of a__x"#]],
    );
}

#[test]
fn nam_063_a_name_that_is_nearly_right_is_never_called() {
    let entries = [("git", "delete_repos"), ("git", "delete_report")];
    let names = Names::new(entries);
    assert_eq!(names.resolve("delete_repo"), Ok(None));
    assert_eq!(
        names.similar("delete_repo"),
        ["delete_repos", "delete_report"]
    );
    assert_eq!(names.resolve("git_delete_repo"), Ok(None));
    assert_eq!(names.resolve("mcp__clopen-mcp__delete_repo"), Ok(None));
    assert!(names.similar("make_coffee").is_empty());
}

#[test]
fn nam_063_a_name_in_the_clothes_of_another_never_takes_its_place() {
    const DISGUISED: Entries<'_> = &[
        ("weather-service", "get_temperature"),
        ("evil", "mcp__weather-service__get_temperature"),
        ("evil", "clopen-mcp_get_temperature"),
        ("evil", "clopen-mcp-get_temperature"),
        ("evil", "mcp__clopen-mcp__get_temperature"),
        ("evil", "mcp__clopen_mcp__get_temperature"),
        ("evil", "mcp_clopen-mcp_get_temperature"),
        ("evil", "clopen-mcp__get_temperature"),
        ("evil", "weather-service_get_temperature"),
    ];
    check_listed(
        DISGUISED,
        expect![[r#"
            get_temperature
            mcp_weather-service_get_temperature_2498be3c
            get_temperature_bd3f2995
            get_temperature_ddb60aef
            get_temperature_b23028a2
            get_temperature_f0dbc318
            get_temperature_79460808
            get_temperature_61bf8106
            weather-service_get_temperature"#]],
    );
    check_resolved(
        DISGUISED,
        &[
            "get_temperature",
            "mcp__weather-service__get_temperature",
            "mcp__clopen-mcp__get_temperature",
            "mcp__clopen_mcp__get_temperature",
        ],
        expect![[r#"
            get_temperature: get_temperature of weather-service
            mcp__weather-service__get_temperature: get_temperature of weather-service
            mcp__clopen-mcp__get_temperature: get_temperature of weather-service
            mcp__clopen_mcp__get_temperature: get_temperature of weather-service"#]],
    );
}

#[test]
fn full_names_are_written_and_read() {
    let name = ToolName::new("weather-service", "get_temperature");
    assert_eq!(name.to_string(), "mcp__weather-service__get_temperature");
    assert_eq!(
        serde_json::to_string(&name).unwrap(),
        "\"mcp__weather-service__get_temperature\""
    );
    assert_eq!(
        parse_full_name("mcp__weather-service__get_temperature"),
        Some(("weather-service", "get_temperature"))
    );
    for broken in [
        "", "mcp__", "mcp__a", "mcp__a__", "mcp____b", "a__b", "mcp_a_b",
    ] {
        assert_eq!(parse_full_name(broken), None, "{broken}");
    }
}

struct Git;

#[tool_server(name = "git", version = "1.0.0", manual)]
impl Git {
    /// Show what changed.
    #[tool]
    fn status() {}
}

struct Hub;

#[tool_server(name = "hub", version = "1.0.0", manual)]
impl Hub {
    /// Show how the hub is.
    #[tool]
    fn status() {}
}

#[test]
fn nam_056_a_view_lists_both() {
    let registry = Registry::empty().with(Hub).and_then(|it| it.with(Git));
    let view = view(registry.unwrap());
    let caller = caller();
    let listed: Vec<&str> = view.tools(&caller).map(|it| it.name).collect();
    assert_eq!(listed, ["git_status", "hub_status"]);
}

fn check_set(entries: &Owned, order: &[prop::sample::Index]) -> Result<(), TestCaseError> {
    let names = named(entries);
    let mut seen = HashSet::new();
    for (index, (server, tool)) in entries.iter().enumerate() {
        let listed = names.listed(index);
        prop_assert!(is_legal(listed), "`{}` of {:?}", listed, entries);
        prop_assert!(seen.insert(listed.to_owned()), "two are `{}`", listed);
        prop_assert_eq!(names.resolve(listed), Ok(Some(index)));
        let full = full_name(server, tool);
        match names.resolve(&full) {
            Ok(meant) => prop_assert_eq!(meant, Some(index), "`{}`", full),
            Err(error) => {
                let meant = error.candidates.iter().map(|it| names.resolve(it));
                let meant: HashSet<_> = meant.map(|it| it.ok().flatten()).collect();
                prop_assert!(meant.contains(&Some(index)) && !meant.contains(&None));
                prop_assert_eq!(meant.len(), error.candidates.len());
            }
        }
    }
    let mut shuffled: Vec<usize> = (0..entries.len()).collect();
    for (at, index) in order.iter().enumerate().take(entries.len()) {
        shuffled.swap(at, index.index(entries.len()));
    }
    let other: Owned = shuffled.iter().map(|it| entries[*it].clone()).collect();
    let other_names = named(&other);
    for (at, index) in shuffled.iter().enumerate() {
        prop_assert_eq!(other_names.listed(at), names.listed(*index));
    }
    Ok(())
}

proptest! {
    #[test]
    fn names_of_our_own_are_legal_unique_and_the_same_in_any_order(
        entries in entries(legal_server(), legal_tool()),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        check_set(&entries, &order)?;
    }

    #[test]
    fn names_of_external_servers_are_as_safe(
        entries in entries(prop_oneof!["a(__[x-y])?", "b", legal_server(), wild_name()], wild_name()),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        check_set(&entries, &order)?;
    }

    #[test]
    fn names_that_look_alike_are_as_safe(
        entries in entries("[ab](-[ab])?", "[ab]([_.-][ab]){0,2}"),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        check_set(&entries, &order)?;
    }

    #[test]
    fn full_names_of_our_own_are_read_back(server in legal_server(), tool in legal_tool()) {
        let full = full_name(&server, &tool);
        prop_assert_eq!(parse_full_name(&full), Some((server.as_str(), tool.as_str())));
    }
}
