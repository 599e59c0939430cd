//! `clopen-mcp tokens`: who may call.

use super::{Failure, print, print_json};
use crate::{
    config::Config,
    credentials::OWN_TOKENS,
    store::{NewToken, Store, Token, now},
};
use clap::Subcommand as ClapSubcommand;
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Debug, ClapSubcommand)]
pub(super) enum Command {
    /// Create a token for a project or a program, and print it once
    Create {
        /// A name to recognize it by
        name: String,
        /// A server that it reaches; all, if none is named
        #[arg(long = "server", value_name = "SERVER")]
        servers: Vec<String>,
        /// Let it use only tools that say they change nothing
        #[arg(long)]
        read_only: bool,
        /// The project that its calls come from
        #[arg(long)]
        project: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all tokens, without their secrets
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token, by its name or id; it is refused from then on
    Revoke {
        /// Its name or id
        token: String,
    },
}

pub(super) async fn run(command: Command, config: &Config) -> Result<ExitCode, Failure> {
    let store = Store::open(&config.data, config.database_url.as_ref()).await?;
    match command {
        Command::Create {
            name,
            servers,
            read_only,
            project,
            json,
        } => {
            if name.starts_with(OWN_TOKENS) {
                return Err(format!(
                    "`{name}` is a name for the tokens that `connect` makes for your own engines, which sign in as you do; take another one"
                )
                .into());
            }
            let token = NewToken {
                name,
                servers: (!servers.is_empty()).then(|| servers.into_iter().collect()),
                read_only,
                project,
            };
            let (token, text) = store.create_token(token, now()).await?;
            if json {
                let mut printed = described(&token);
                printed["token"] = text.expose().into();
                print_json(&printed)?;
            } else {
                print(text.expose())?;
                eprintln!("this is `{}`; it is shown this once", token.name);
            }
        }
        Command::List { json } => {
            let tokens = store.tokens().await?;
            if json {
                let tokens: Vec<Value> = tokens.iter().map(described).collect();
                print_json(&json!({ "tokens": tokens }))?;
            } else if tokens.is_empty() {
                print("there are no tokens; `clopen-mcp tokens create NAME` makes one")?;
            } else {
                for token in &tokens {
                    print(line(token))?;
                }
            }
        }
        Command::Revoke { token } => {
            let revoked = store.revoke_token(&token, now()).await?;
            print(format!("`{}` is revoked", revoked.name))?;
        }
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

fn described(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "servers": token.servers,
        "readOnly": token.read_only,
        "project": token.project,
        "createdAt": token.created_at,
        "lastUsedAt": token.last_used_at,
        "revokedAt": token.revoked_at,
    })
}

fn line(token: &Token) -> String {
    let mut facts = Vec::new();
    if token.revoked_at.is_some() {
        facts.push("revoked".to_owned());
    }
    if token.read_only {
        facts.push("read only".to_owned());
    }
    if let Some(servers) = &token.servers {
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        facts.push(format!("servers {}", servers.join(", ")));
    }
    if let Some(project) = &token.project {
        facts.push(format!("project {project}"));
    }
    format!("{:<20} {} {}", token.name, token.id, facts.join("; "))
}
