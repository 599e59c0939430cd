//! Inputs of a server: given on the command line, or asked for on a terminal.

use super::found::input_line;
use crate::{
    catalog::{Asked, Recipe, Values},
    cli::Failure,
    secret::Secret,
};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// Reads `INPUT=VALUE`; a name alone switches something on.
pub(super) fn values(said: &[String]) -> Result<Values, Failure> {
    let mut values = Values::new();
    for said in said {
        let (key, value) = said.split_once('=').unwrap_or((said, "true"));
        let key = key.trim().trim_start_matches('-');
        if key.is_empty() {
            return Err("an input is said as `INPUT=VALUE`".into());
        }
        let values = values.entry(key.to_owned()).or_default();
        values.push(Secret::new(value));
    }
    Ok(values)
}

/// Whether there is a person to ask.
pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for the inputs that weren't given.
pub(super) fn ask(recipe: &Recipe, values: &mut Values) -> Result<(), Failure> {
    for asked in &recipe.asked {
        if values.contains_key(&asked.key) {
            continue;
        }
        eprintln!("{}", input_line(asked));
        let mut said = Vec::new();
        loop {
            match ask_one(asked)? {
                Some(value) => said.push(Secret::new(value)),
                None if said.is_empty() && asked.is_required && asked.default.is_none() => {
                    eprintln!("  it is required");
                    continue;
                }
                None => break,
            }
            if !asked.is_repeated {
                break;
            }
        }
        if !said.is_empty() {
            values.insert(asked.key.clone(), said);
        }
    }
    Ok(())
}

/// Asks until what is said can be it; nothing is the default, or leaves it out.
fn ask_one(asked: &Asked) -> Result<Option<String>, Failure> {
    loop {
        write!(io::stderr(), "  {}: ", asked.key)?;
        let said = if asked.is_secret {
            read_hidden()?
        } else {
            read_line()?
        };
        let said = said.trim();
        if said.is_empty() {
            return Ok(None);
        }
        match asked.check(said) {
            Ok(()) => return Ok(Some(said.to_owned())),
            Err(reason) => eprintln!("  {} {reason}", asked.key),
        }
    }
}

/// Asks whether something is to be done.
pub(super) fn confirms(question: &str) -> Result<bool, Failure> {
    write!(io::stderr(), "{question} [y/N] ")?;
    let said = read_line()?;
    Ok(matches!(said.trim(), "y" | "Y" | "yes"))
}

fn read_line() -> io::Result<String> {
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line)
}

/// Reads a line that the terminal doesn't show.
#[cfg(unix)]
fn read_hidden() -> io::Result<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let terminal = io::stdin();
    let before = tcgetattr(&terminal)?;
    restore_at_the_end(before.clone());
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    let line = read_line();
    tcsetattr(&terminal, OptionalActions::Now, &before)?;
    eprintln!();
    line
}

/// Leaves the terminal as it was to whoever stops the program with Ctrl-C.
#[cfg(unix)]
fn restore_at_the_end(before: rustix::termios::Termios) {
    use crate::cli::CANNOT;
    use rustix::termios::{OptionalActions, tcsetattr};
    static WATCHES: std::sync::Once = std::sync::Once::new();
    WATCHES.call_once(|| {
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
                eprintln!();
                std::process::exit(i32::from(CANNOT));
            }
        });
    });
}

#[cfg(not(unix))]
fn read_hidden() -> io::Result<String> {
    Err(io::Error::other(
        "a secret can't be read here without showing it; give it with `--set`",
    ))
}
