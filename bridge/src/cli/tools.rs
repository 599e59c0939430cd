//! `clopen-mcp tools`: list, show and call tools in this process.

use super::{CANNOT, Failure, NO, connect, print, print_json};
use crate::engines::Engine;
use clap::Subcommand as ClapSubcommand;
use serde_json::{Value, json};
use std::{
    io::{self, Read as _},
    process::ExitCode,
};
use tool_runtime::{
    CallError, Caller, Context, Dialect, Dispatcher, Shown, Tool, adapt, export::mcp, full_name,
};

#[derive(Debug, ClapSubcommand)]
pub(super) enum Command {
    /// List the tools that can be called
    List {
        /// Print JSON, as `tools/list` gives it
        #[arg(long)]
        json: bool,
    },
    /// Show a tool: what it does, what it takes, what it gives
    Show {
        /// Any spelling of its name
        name: String,
        /// Show it as this engine is given it
        #[arg(long)]
        engine: Option<String>,
        /// Print JSON, as `tools/list` gives it
        #[arg(long)]
        json: bool,
    },
    /// Call a tool; exits with 1 if the tool fails
    Call {
        /// Any spelling of its name
        name: String,
        /// Its arguments, a JSON object; `-` reads them from standard input
        #[arg(default_value = "{}")]
        arguments: String,
        /// Project that the call comes from
        #[arg(long, default_value = "", hide_default_value = true)]
        project: String,
        /// Print JSON, as `tools/call` gives it
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(command: Command, dispatcher: &Dispatcher) -> Result<ExitCode, Failure> {
    match command {
        Command::List { json } => list(dispatcher, json),
        Command::Show { name, engine, json } => {
            let engine = engine.as_deref().map(connect::find).transpose()?;
            show(dispatcher, &name, engine, json)
        }
        Command::Call {
            name,
            arguments,
            project,
            json,
        } => {
            let caller = Caller {
                project,
                ..Caller::default()
            };
            call(dispatcher, &name, arguments, caller, json).await
        }
    }
}

fn list(dispatcher: &Dispatcher, json: bool) -> Result<ExitCode, Failure> {
    let view = dispatcher.view();
    let caller = Caller::default();
    if json {
        print_json(&json!({ "tools": mcp::tools(&view, &caller) }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for server in view.servers() {
        print(format!("{} {}", server.name, server.version))?;
        if let Some(unavailable) = &server.unavailable {
            print(format!("  not available: {}", unavailable.reason))?;
        }
        for listed in view
            .tools(&caller)
            .filter(|it| *it.item.server == *server.name)
        {
            print(format!(
                "  {:<24} {}",
                listed.name,
                first_sentence(&listed.item.description)
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The first sentence of a description, on one line.
pub(super) fn first_sentence(description: &str) -> String {
    let paragraph: Vec<&str> = description
        .lines()
        .take_while(|it| !it.trim().is_empty())
        .collect();
    let paragraph = paragraph.join(" ");
    match paragraph.find(". ") {
        Some(end) => paragraph[..=end].to_owned(),
        None => paragraph,
    }
}

fn show(
    dispatcher: &Dispatcher,
    name: &str,
    engine: Option<&Engine>,
    json: bool,
) -> Result<ExitCode, Failure> {
    let view = dispatcher.view();
    let caller = Caller::default();
    let Some(tool) = view.tool(name)? else {
        eprintln!("error: there is no tool `{name}`; `clopen-mcp tools list` shows all");
        return Ok(ExitCode::from(NO));
    };
    let listed = view.tools(&caller).find(|it| std::ptr::eq(it.item, tool));
    let dialect = engine.map_or(Dialect::ANY, |it| it.dialect);
    if json {
        match listed {
            Some(listed) => print_json(&mcp::tool_for(listed, &dialect))?,
            None => print_json(&Value::Null)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    print(full_name(&tool.server, &tool.name))?;
    match listed {
        Some(listed) => print(format!("listed as {}", listed.name))?,
        None => print("turned off, or its server is not available")?,
    }
    if let (Some(engine), Some(listed)) = (engine, listed) {
        print(match engine.spelling.of(listed.name) {
            Shown::As(name) => format!("the model of {} sees {name}", engine.title),
            Shown::Beginning(name) => format!("the model of {} sees {name}…", engine.title),
            Shown::Dropped => format!("{} leaves it out: its name is too long", engine.title),
        })?;
    }
    print(format!("\n{}\n", tool.description))?;
    for (what, yes) in hints(tool) {
        print(format!("{what}: {}", if yes { "yes" } else { "no" }))?;
    }
    let arguments = adapt(&tool.input_schema, &dialect);
    print(format!(
        "arguments: {}",
        serde_json::to_string_pretty(&arguments.schema)?
    ))?;
    for note in arguments.notes {
        print(format!("adapted: {note}"))?;
    }
    if let Some(schema) = &tool.output_schema {
        print(format!(
            "result: {}",
            serde_json::to_string_pretty(&**schema)?
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn hints(tool: &Tool) -> impl Iterator<Item = (&'static str, bool)> {
    let hints = [
        ("read only", tool.hints.read_only),
        ("destructive", tool.hints.destructive),
        ("idempotent", tool.hints.idempotent),
        ("open world", tool.hints.open_world),
    ];
    hints
        .into_iter()
        .filter_map(|(what, hint)| Some((what, hint?)))
}

async fn call(
    dispatcher: &Dispatcher,
    name: &str,
    mut arguments: String,
    caller: Caller,
    json: bool,
) -> Result<ExitCode, Failure> {
    if arguments == "-" {
        arguments.clear();
        io::stdin().read_to_string(&mut arguments)?;
    }
    let result = dispatcher
        .call(name, arguments.trim(), &Context::new(caller))
        .await;
    match result {
        Ok(output) => {
            if json {
                print_json(&mcp::result(&output))?;
            } else {
                print(output.to_text())?;
            }
            Ok(if output.is_error {
                ExitCode::from(NO)
            } else {
                ExitCode::SUCCESS
            })
        }
        Err(error) => {
            if json {
                print_json(
                    &json!({ "error": { "code": error.code(), "message": error.to_string() } }),
                )?;
            } else {
                eprintln!("error: {error}");
            }
            let code = match error {
                CallError::Unavailable { .. } => CANNOT,
                _ => NO,
            };
            Ok(ExitCode::from(code))
        }
    }
}
