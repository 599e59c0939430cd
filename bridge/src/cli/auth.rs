//! `clopen-mcp auth`: who has signed in to which external server.

use super::servers::{ask, no_such};
use super::{Failure, NO, in_full, print, print_json};
use crate::{
    app,
    config::Config,
    credentials::{
        Account, Begun, CALLBACK, ClientOfPerson, SignIns, SigningIn, State, Target, USUAL_ACCOUNT,
        Vault, subject,
    },
    secret::Secret,
    store::{Store, now},
    upstream::{Address, Entry, Upstreams},
};
use clap::{Args, Subcommand as ClapSubcommand};
use serde_json::json;
use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::{ExitCode, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines, Stdin},
    time::interval,
};
use tokio_util::sync::DropGuard;

/// How often to look whether somebody has come back to another process.
const LOOK: Duration = Duration::from_millis(250);

#[derive(Debug, ClapSubcommand)]
pub(super) enum Command {
    /// Sign in to an external server, for all engines
    Login(Login),
    /// Sign out, and take the token back where that is offered
    Logout(One),
    /// List who has signed in to what
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Renew a token now
    Refresh(One),
}

/// A sign-in that there is.
#[derive(Debug, Args)]
pub(super) struct One {
    /// The server
    server: String,
    /// The account, instead of the one that calls use
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// The token on whose behalf it is, instead of your own engines
    #[arg(long, value_name = "NAME")]
    token: Option<String>,
}

/// A sign-in that there is to be.
#[derive(Debug, Args)]
pub(super) struct Login {
    /// The server
    server: String,
    /// What the account is called here; calls use the one that was signed in last
    #[arg(long, value_name = "NAME", default_value = USUAL_ACCOUNT)]
    account: String,
    /// Sign in for the calls of this token, instead of those of your own engines
    #[arg(long, value_name = "NAME")]
    token: Option<String>,
    /// The id of a client that you have registered with the authorization server
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Its secret
    #[arg(long, value_name = "SECRET", requires = "client_id")]
    client_secret: Option<String>,
    /// A scope to ask for, instead of those that the server names
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Register a client anew, if the authorization server doesn't know the old one any more
    #[arg(long)]
    new_client: bool,
    /// Only print the address, and open nothing
    #[arg(long)]
    no_browser: bool,
}

pub(super) async fn run(
    command: Command,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<ExitCode, Failure> {
    let store = Store::open(&config.data, config.database_url.as_ref()).await?;
    let upstreams = app::upstreams(config, variables, &store).await?;
    let sign_ins = upstreams.sign_ins();
    let ran = match command {
        Command::Login(login) => login.run(config, &store, &upstreams).await,
        Command::Logout(one) => one.sign_out(sign_ins).await,
        Command::Status { json } => status(json, sign_ins).await,
        Command::Refresh(one) => one.refresh(sign_ins).await,
    };
    upstreams.close().await;
    store.close().await;
    ran
}

impl One {
    fn subject(&self) -> &str {
        subject(self.token.as_deref().unwrap_or_default())
    }

    async fn sign_out(&self, sign_ins: &SignIns) -> Result<ExitCode, Failure> {
        let (server, account) = (&self.server, self.account.as_deref());
        let kept = sign_ins.sign_out(server, self.subject(), account).await?;
        print(format!("signed out of `{server}`"))?;
        if let Some(reason) = kept {
            eprintln!(
                "warning: its authorization server didn't take the token back: {reason}; end it there if that matters"
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn refresh(&self, sign_ins: &SignIns) -> Result<ExitCode, Failure> {
        let (server, account) = (&self.server, self.account.as_deref());
        sign_ins.refresh(server, self.subject(), account).await?;
        print(format!("the token for `{server}` is renewed"))?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn status(json: bool, sign_ins: &SignIns) -> Result<ExitCode, Failure> {
    let accounts = sign_ins.accounts().await?;
    if json {
        print_json(&json!({ "accounts": accounts }))?;
    } else if accounts.is_empty() {
        print("nobody has signed in to an external server; `clopen-mcp auth login SERVER` does")?;
    } else {
        for account in &accounts {
            print(line(account))?;
        }
    }
    let is_good = accounts.iter().all(|it| it.is_signed_in);
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO)
    })
}

fn line(account: &Account) -> String {
    let mut facts = vec![format!("{:<20} {:<10}", account.server, account.account)];
    facts.push(match (account.is_signed_in, account.expires_at) {
        (false, _) => "has to sign in again".to_owned(),
        (true, None) => "signed in".to_owned(),
        (true, Some(at)) => {
            let left = u64::try_from(at.saturating_sub(now()) / 1_000).unwrap_or(0);
            let left = humantime::format_duration(Duration::from_secs(left));
            if account.is_renewable {
                format!("signed in, renewed in {left}")
            } else {
                format!("signed in for {left}")
            }
        }
    });
    facts.push(format!("by {}", account.issuer));
    if !account.subject.is_empty() {
        facts.push(format!("for the token `{}`", account.subject));
    }
    if !account.is_default {
        facts.push("not used by calls".to_owned());
    }
    if !account.wanted.is_empty() {
        facts.push(format!(
            "the server wants more: {}",
            account.wanted.join(" ")
        ));
    }
    facts.join("  ")
}

impl Login {
    async fn run(
        self,
        config: &Config,
        store: &Store,
        upstreams: &Upstreams,
    ) -> Result<ExitCode, Failure> {
        let sign_ins = upstreams.sign_ins();
        let target = self.target(config, store).await?;
        let (redirect, _listening) = place(sign_ins, config.listen).await?;
        let mut asked = SigningIn {
            subject: subject(self.token.as_deref().unwrap_or_default()).to_owned(),
            account: self.account.clone(),
            client: self.client_id.clone().map(|id| ClientOfPerson {
                id,
                secret: self.client_secret.clone().map(Secret::new),
            }),
            scopes: self.scopes.clone(),
            anew: self.new_client,
            target,
            redirect,
        };
        let mut begun = sign_ins.begin(asked.clone()).await?;
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        let mut state = self.wait(sign_ins, &begun, &mut lines).await?;
        if state == State::Again {
            eprintln!(
                "the authorization server doesn't know this client any more; once more, with a new one"
            );
            asked.anew = true;
            begun = sign_ins.begin(asked.clone()).await?;
            state = self.wait(sign_ins, &begun, &mut lines).await?;
        }
        match state {
            State::Done => {}
            State::Failed(why) => return Err(why.into()),
            State::Waiting | State::Again => {
                return Err(
                    "the authorization server does not know the client that it has just registered"
                        .into(),
                );
            }
        }
        print(format!("signed in to `{}`", self.server))?;
        if asked.subject.is_empty() && !ask(&self.server, upstreams).await? {
            return Ok(ExitCode::from(NO));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn target(&self, config: &Config, store: &Store) -> Result<Target, Failure> {
        let external = store.external_servers().await?;
        let stored = external.iter().find(|it| it.name == self.server);
        let stored = stored.ok_or_else(|| no_such(&self.server, &external))?;
        let entry = Entry::opened(stored, &Vault::open(&config.data)?)?;
        match entry.address {
            Address::Http { url, headers } => Ok(Target {
                server: entry.name,
                url,
                headers,
            }),
            Address::Command { .. } => Err(format!(
                "`{}` is a program, to which nobody signs in; give it what it needs with `--env`",
                self.server
            )
            .into()),
        }
    }

    /// Waits until somebody has come back: to here, to a bridge, or by hand.
    async fn wait(
        &self,
        sign_ins: &SignIns,
        begun: &Begun,
        lines: &mut Lines<BufReader<Stdin>>,
    ) -> Result<State, Failure> {
        eprintln!("open this address, and agree there:");
        print(&begun.url)?;
        eprintln!("if the page can't be shown to which you are sent then, paste its address here");
        if !self.no_browser && io::stderr().is_terminal() {
            open_browser(&begun.url);
        }
        let mut looks = interval(LOOK);
        let mut is_open = true;
        loop {
            tokio::select! {
                _ = looks.tick() => {
                    let state = sign_ins.state(begun).await?;
                    if state != State::Waiting {
                        return Ok(state);
                    }
                }
                line = lines.next_line(), if is_open => match line? {
                    None => is_open = false,
                    Some(line) if line.trim().is_empty() => {}
                    // What came of it, the next look says; one that is about nothing leaves it waiting.
                    Some(line) => {
                        if let Err(error) = sign_ins.finish(&line).await {
                            eprintln!("{}", in_full(&error));
                        }
                    }
                },
            }
        }
    }
}

/// Returns where people come back to, and what listens there, unless a bridge does.
async fn place(
    sign_ins: &SignIns,
    listen: SocketAddr,
) -> Result<(String, Option<DropGuard>), Failure> {
    if let Some(callback) = sign_ins.public_callback() {
        return Ok((callback, None));
    }
    let ip = match listen.ip() {
        ip if ip.is_loopback() => ip,
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let address = SocketAddr::new(ip, listen.port());
    let (address, listening) = match app::listen_for_sign_ins(sign_ins, address).await? {
        Some((address, listening)) => (address, Some(listening)),
        None => (address, None),
    };
    Ok((format!("http://{address}{CALLBACK}"), listening))
}

/// Opens an address where there is a browser; the person has it in any case.
fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let started = tokio::process::Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    drop(started);
}
