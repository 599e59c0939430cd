//! The pages of `docs/engines`: what the engines' own tables say.

use clopen_mcp::engines::{
    Connection, ENGINES, Engine, Format, Lifetime, Place, Root, TOKEN_VARIABLE, Token,
};
use clopen_mcp::secret::Secret;
use expect_test::expect_file;
use std::fmt::Write as _;
use tool_runtime::{Caller, Shown};

/// Compares each page with its file; `UPDATE_EXPECT=1` writes them.
#[test]
fn pages_are_as_the_tables_say() {
    for engine in ENGINES {
        let file = format!("../../../docs/engines/{}.md", engine.id);
        expect_file![file].assert_eq(&page(engine));
    }
    expect_file!["../../../docs/engines/README.md"].assert_eq(&index());
}

fn index() -> String {
    let mut page = String::from(
        "# Engines

`clopen-mcp connect ENGINE` writes what these pages show; `disconnect` takes it out again, and `connect --undo` takes back
what was done last, byte for byte. `clopen-mcp engines` says what is connected, `clopen-mcp doctor` why it doesn't work.

The tools of external servers (`clopen-mcp servers add`) come among those of the bridge, from its one entry. With
`--external each`, every external server that is on has an entry of its own, under its name, and ours leaves it out, so
that no tool is there twice; `connect ENGINE` once more adds an entry for each server that is new, whose tools come from
ours until then, and takes the entries out of those that are gone. `--external merged` goes back to the one entry. An entry
of somebody else under the same name is never overwritten.

| engine | `connect` | settings of a person | of a project | token |
|---|---|---|---|---|
",
    );
    for engine in ENGINES {
        let project = engine.project.map_or("–".to_owned(), |it| file(&it));
        let token = engine.variable.map_or_else(
            || "in the file".to_owned(),
            |_| "from a variable".to_owned(),
        );
        let Engine { id, title, .. } = engine;
        let user = file(&engine.user);
        writeln!(
            page,
            "| [{title}]({id}.md) | `connect {id}` | {user} | {project} | {token} |"
        )
        .expect("a String takes everything");
    }
    page
}

fn page(engine: &Engine) -> String {
    let Engine { id, title, .. } = engine;
    let mut parts = vec![
        format!("# {title}"),
        format!("```sh\nclopen-mcp connect {id}\n```"),
        places(engine),
        token(engine),
        format!("What is written:\n\n{}", configuration(engine, &[])),
        each(engine),
    ];
    if !engine.reasons.is_empty() {
        let reasons = engine.reasons.iter();
        let reasons: Vec<String> = reasons
            .map(|(key, why)| format!("- {key}: {why}."))
            .collect();
        parts.push(format!("Why:\n\n{}", reasons.join("\n")));
    }
    if !engine.notes.is_empty() {
        let notes: Vec<String> = engine.notes.iter().map(|it| format!("- {it}")).collect();
        parts.push(format!("Good to know:\n\n{}", notes.join("\n")));
    }
    parts.push(identity(engine).to_owned());
    parts.join("\n\n") + "\n"
}

fn places(engine: &Engine) -> String {
    let mut lines = vec![format!("- of a person: {}", file(&engine.user))];
    if let Some(place) = engine.project {
        let id = engine.id;
        let place = file(&place);
        lines.push(format!(
            "- of a project (`connect {id} --project DIR`): {place}"
        ));
    }
    format!("The settings:\n\n{}", lines.join("\n"))
}

fn file(place: &Place) -> String {
    let below = |folder: &str, name: &str| match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    };
    let names = place.names.iter().map(|name| match place.root {
        Root::Home { folder, .. } => format!("`~/{}`", below(folder, name)),
        Root::Config(folder) => format!("`~/.config/{}`", below(folder, name)),
        Root::Application(folder) => {
            format!(
                "`{}` in the settings folder of the system",
                below(folder, name)
            )
        }
        Root::Project(folder) => format!("`{}`", below(folder, name)),
    });
    let mut text = names.collect::<Vec<_>>().join(" or ");
    if let Root::Home { variable, .. } = place.root
        && !variable.is_empty()
    {
        write!(text, " (in `${variable}`, where that is set)").expect("a String takes everything");
    }
    text
}

fn token(engine: &Engine) -> String {
    match engine.variable {
        Some(_) if engine.id == "vscode" => "The token: VS Code asks for it once.".to_owned(),
        Some(_) => format!(
            "The token: from the variable `{TOKEN_VARIABLE}` of the environment that {} is started in.",
            engine.title
        ),
        None => format!(
            "The token: {} can't name a variable, so one of its own stands in the file, which nobody else may read then; `clopen-mcp tokens revoke connect-{}` revokes it.",
            engine.title, engine.id
        ),
    }
}

fn each(engine: &Engine) -> String {
    let Engine { id, .. } = engine;
    let shown = match engine.spelling.of_server("memory", "read_graph") {
        Shown::As(name) => name,
        other => panic!("{id} shows {other:?}"),
    };
    format!(
        "External servers come from an entry each with `connect {id} --external each`; here of one named `memory`, whose tool `read_graph` the model sees as `{shown}`:\n\n{}",
        configuration(engine, &["memory".to_owned()])
    )
}

/// What is written; with external servers, only the file with our entry and theirs.
fn configuration(engine: &Engine, external: &[String]) -> String {
    let connection = Connection {
        url: "http://127.0.0.1:9151/mcp".to_owned(),
        caller: Caller::default(),
        token: match engine.variable {
            Some(_) => Token::Variable,
            None => Token::Written(Secret::new("…")),
        },
        external: external.to_vec(),
        read_only_tools: vec!["get_temperature".to_owned()],
    };
    let language = |format| match format {
        Format::Json => "json",
        Format::Toml => "toml",
        Format::Yaml => "yaml",
    };
    let files = engine.config(&connection);
    let files = files.expect("every change can be made to an empty file");
    let count = if external.is_empty() { files.len() } else { 1 };
    let blocks = files.iter().take(count).map(|it| {
        let (place, language) = (file(&it.place), language(it.format));
        format!("{place}\n\n```{language}\n{}```", it.text)
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

fn identity(engine: &Engine) -> &'static str {
    match engine.lifetime {
        Lifetime::User => {
            "Its settings are a person's, so calls say which engine they come from, and no more."
        }
        Lifetime::Project => {
            "Calls say which engine they come from, and in a project's settings also which project."
        }
        Lifetime::Stream => {
            "Calls say which engine they come from, and in a project's settings also which project; a host application that starts the engine itself can have them say which conversation."
        }
    }
}
