//! The command line: commands → functions of `app`. Whatever is printed is printed here.
//!
//! Exit codes: 0, it worked; 1, it ran and says no (a tool failed, `doctor` found something); 2, the command line is
//! wrong; 3, it could not run (settings, database, address, server).
#![expect(
    clippy::print_stderr,
    reason = "this is the one place that talks to the terminal"
)]

mod auth;
mod connect;
mod data;
mod doctor;
mod engines;
mod import;
mod servers;
mod tokens;
mod tools;

use crate::{
    app::{self, Bridge},
    config::{self, Config, Flags},
};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Display,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};
use tokio_util::sync::CancellationToken;
use tool_runtime::Caller;
use tracing_subscriber::EnvFilter;

/// It ran and says no.
const NO: u8 = 1;
/// The command line is wrong.
const WRONG: u8 = 2;
/// It could not run.
const CANNOT: u8 = 3;

type Failure = Box<dyn Error>;

/// One bridge between your tools and every coding agent.
///
/// Without a command it serves. Exit codes: 0 it worked; 1 it ran and says no (a tool failed, `doctor` found
/// something); 2 the command line is wrong; 3 it could not run.
#[derive(Debug, Parser)]
#[command(name = "clopen-mcp", version)]
struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Settings")]
#[expect(clippy::doc_markdown, reason = "clap shows the words as they are")]
struct Settings {
    /// Settings file [default: ./clopen-mcp.toml, or the one in the folder for settings] [env: CLOPEN_MCP_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:9151] [env: CLOPEN_MCP_LISTEN]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Folder for everything that outlives the process [env: CLOPEN_MCP_DATA]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Take calls without a token; only on a loopback address [env: CLOPEN_MCP_NO_AUTH]
    #[arg(long, global = true)]
    no_auth: bool,
    /// Host name that requests may be addressed to, besides this machine's own [env: CLOPEN_MCP_ALLOWED_HOSTS]
    #[arg(long = "allowed-host", global = true, value_name = "HOST[:PORT]")]
    allowed_hosts: Vec<String>,
    /// Web origin that may call, besides this machine's own [env: CLOPEN_MCP_ALLOWED_ORIGINS]
    #[arg(long = "allowed-origin", global = true, value_name = "ORIGIN")]
    allowed_origins: Vec<String>,
    /// Folder of skills to serve [env: CLOPEN_MCP_SKILLS]
    #[arg(long, global = true, value_name = "DIR")]
    skills: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve MCP over HTTP at /mcp
    Serve,
    /// Serve one client over standard input and output, for hosts that start a subprocess
    Stdio {
        /// Engine that calls, for example `codex`
        #[arg(long, default_value = "", hide_default_value = true)]
        engine: String,
        /// Project that it works on
        #[arg(long, default_value = "", hide_default_value = true)]
        project: String,
        /// Conversation that it is
        #[arg(long, default_value = "", hide_default_value = true)]
        session: String,
    },
    /// List, show and call tools
    #[command(subcommand)]
    Tools(tools::Command),
    /// List servers, and switch them and their tools on and off
    #[command(subcommand)]
    Servers(servers::Command),
    /// List the coding agents: which are here, connected, and seen, and what keeps them from their tools
    Engines {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Connect a coding agent: write our entry into its configuration
    Connect(connect::Connect),
    /// Take our entry out of the configuration of a coding agent
    Disconnect(connect::Disconnect),
    /// Sign in to external servers, and out
    #[command(subcommand)]
    Auth(auth::Command),
    /// Create, list and revoke tokens
    #[command(subcommand)]
    Tokens(tokens::Command),
    /// Export, import, back up and reset what is in the database
    #[command(subcommand)]
    Data(data::Command),
    /// Check the whole path from the settings to a list of tools, and say what to do
    Doctor(doctor::Doctor),
}

/// Runs the program: reads the command line, the environment and the settings, and does what they say.
///
/// A program of your own is the same bridge with your tools in it:
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     clopen_mcp::main()
/// }
/// ```
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    log(matches!(
        cli.command,
        None | Some(Command::Serve | Command::Stdio { .. })
    ));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(run(cli));
            // A read of standard input that nobody waits for any more must not hold the end up.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(error.into()),
    };
    result.unwrap_or_else(|error| {
        if is_enough(&*error) {
            return ExitCode::SUCCESS;
        }
        eprintln!("error: {}", in_full(&*error));
        ExitCode::from(CANNOT)
    })
}

/// Logs to standard error: standard output belongs to results and to the pipe. A command that prints what came of it
/// logs nothing besides, unless it is asked to.
fn log(serves: bool) {
    let usual = if serves { "info,sqlx=warn" } else { "off" };
    let filter =
        EnvFilter::try_from_env("CLOPEN_MCP_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()));
    // An embedding program may have its own.
    let _ = subscriber.try_init();
}

async fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let variables = config::environment();
    let flags = Flags {
        config: cli.settings.config,
        listen: cli.settings.listen,
        data: cli.settings.data,
        no_auth: cli.settings.no_auth,
        allowed_hosts: cli.settings.allowed_hosts,
        allowed_origins: cli.settings.allowed_origins,
        skills: cli.settings.skills,
    };
    let config = Config::load(&flags, &variables, &env::current_dir()?)?;
    for warning in &config.warnings {
        eprintln!("warning: {warning}");
    }
    match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => serve(&config, &variables).await,
        Command::Stdio {
            engine,
            project,
            session,
        } => {
            let caller = Caller {
                engine,
                project,
                session,
                ..Caller::default()
            };
            app::serve_pipe(&config, &variables, caller).await?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Tools(command) => {
            let dispatcher = app::dispatcher(&config, &variables).await?;
            tools::run(command, &dispatcher).await
        }
        Command::Servers(command) => servers::run(command, &config, &variables).await,
        Command::Engines { json } => engines::run(json, &config, &variables).await,
        Command::Connect(command) => connect::connect(command, &config, &variables).await,
        Command::Disconnect(command) => connect::disconnect(command, &config, &variables).await,
        Command::Auth(command) => auth::run(command, &config, &variables).await,
        Command::Tokens(command) => tokens::run(command, &config).await,
        Command::Data(command) => data::run(command, &config, &variables).await,
        Command::Doctor(doctor) => doctor::run(&doctor, &config, &variables).await,
    }
}

async fn serve(config: &Config, variables: &BTreeMap<String, String>) -> Result<ExitCode, Failure> {
    let bridge = Bridge::start(config, variables).await?;
    // Whoever has read the greeting may ask for the end.
    let mut signals = StopSignals::listen()?;
    greet(config, &bridge);
    let stop = CancellationToken::new();
    let signal = stop.clone();
    tokio::spawn(async move {
        signals.next().await;
        eprintln!("stopping; calls under way may end (press Ctrl-C again to stop at once)");
        signal.cancel();
        signals.next().await;
        std::process::exit(i32::from(CANNOT));
    });
    bridge.serve(stop).await?;
    Ok(ExitCode::SUCCESS)
}

fn greet(config: &Config, bridge: &Bridge) {
    eprintln!(
        "clopen-mcp {} listens on http://{}/mcp",
        env!("CARGO_PKG_VERSION"),
        bridge.address
    );
    if config.no_auth {
        eprintln!("WARNING: --no-auth: every program on this machine can call every tool");
    } else if let Some(file) = &bridge.token_file {
        eprintln!(
            "token: in {} (send it as `Authorization: Bearer …`)",
            file.display()
        );
    } else {
        eprintln!("token: the one in CLOPEN_MCP_TOKEN");
    }
    let view = bridge.dispatcher.view();
    let statistics = view.statistics();
    eprintln!(
        "{} tools of {} servers",
        statistics.enabled_tools, statistics.enabled_servers
    );
    for server in view.servers() {
        if let Some(unavailable) = &server.unavailable {
            eprintln!("  {} is not available: {}", server.name, unavailable.reason);
        }
    }
    for note in view.notes() {
        eprintln!("  {note}");
    }
}

/// The signals that ask the process to stop. Once somebody listens, none of them ends it by itself.
struct StopSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl StopSignals {
    #[cfg(unix)]
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(not(unix))]
    fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one.
    async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        drop(tokio::signal::ctrl_c().await);
    }
}

/// An error with its causes.
fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(serde_json::to_string_pretty(value)?)
}

/// Prints a line. Unlike `println!`, it doesn't panic where nobody reads any more.
fn print(line: impl Display) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

/// Whether all that went wrong is that the reader, `head` for example, has read enough.
fn is_enough(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|it| it.kind() == io::ErrorKind::BrokenPipe)
}
