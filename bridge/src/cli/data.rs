//! `clopen-mcp data`: what is in the database, as a whole.

use super::{Failure, WRONG, print};
use crate::{
    app,
    config::Config,
    store::{Store, create_private_file},
};
use clap::Subcommand as ClapSubcommand;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Debug, ClapSubcommand)]
pub(super) enum Command {
    /// Write everything in the database as JSON; whoever can read that can pass for this bridge
    Export {
        /// A new file; `-` is standard output
        #[arg(default_value = "-")]
        file: PathBuf,
    },
    /// Read what `export` wrote, on SQLite or PostgreSQL, into an empty database
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
        /// Put it in place of all that is in the database
        #[arg(long)]
        replace: bool,
    },
    /// Copy the SQLite database into a new file, also while a bridge runs
    Backup {
        /// A new file
        file: PathBuf,
    },
    /// Forget switches, sessions and tasks
    Reset {
        /// Forget the project tokens and the keys too
        #[arg(long)]
        all: bool,
        /// Really
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn run(
    command: Command,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<ExitCode, Failure> {
    if let Command::Reset { all, yes: false } = command {
        eprintln!("error: {}", what_reset_forgets(all));
        return Ok(ExitCode::from(WRONG));
    }
    let store = Store::open(&config.data, config.database_url.as_ref()).await?;
    match command {
        Command::Export { file } => export(&store, &file).await?,
        Command::Import { file, replace } => import(&store, &file, replace).await?,
        Command::Backup { file } => {
            store.backup(&file).await?;
            eprintln!("copied to {}", file.display());
        }
        Command::Reset { all, .. } => {
            let dispatcher = app::dispatcher(config, variables).await?;
            store.reset(all).await?;
            app::mirror(&store, &dispatcher).await?;
            print("the database is reset")?;
        }
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

fn what_reset_forgets(all: bool) -> &'static str {
    if all {
        "this forgets what was switched on and off, all sessions and tasks, and all project tokens and keys; add `--yes` if you want that"
    } else {
        "this forgets what was switched on and off and all sessions and tasks; add `--yes` if you want that"
    }
}

async fn export(store: &Store, file: &Path) -> Result<(), Failure> {
    if file == Path::new("-") {
        store.export(&mut io::stdout()).await?;
        return Ok(());
    }
    let made = create_private_file(file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!(
                "`{}` exists already; name a new file for the export",
                file.display()
            )
        }
        _ => format!("can't write the export `{}`: {error}", file.display()),
    })?;
    if let Err(error) = write(store, made).await {
        // What is left is no export; the failure is what counts.
        drop(fs::remove_file(file));
        return Err(error);
    }
    eprintln!("exported to {}", file.display());
    Ok(())
}

async fn write(store: &Store, file: File) -> Result<(), Failure> {
    let mut buffer = BufWriter::new(file);
    store.export(&mut buffer).await?;
    buffer.flush()?;
    buffer.get_ref().sync_all()?;
    Ok(())
}

async fn import(store: &Store, file: &Path, replace: bool) -> Result<(), Failure> {
    let imported = if file == Path::new("-") {
        store.import(&mut io::stdin(), replace).await?
    } else {
        let mut open = File::open(file)
            .map_err(|error| format!("can't read the export `{}`: {error}", file.display()))?;
        store.import(&mut open, replace).await?
    };
    print(format!("imported {}", in_words(&imported)))?;
    Ok(())
}

fn in_words(imported: &BTreeMap<&str, usize>) -> String {
    let words: Vec<String> = imported
        .iter()
        .filter(|(_, rows)| **rows > 0)
        .map(|(table, rows)| format!("{rows} {table}"))
        .collect();
    if words.is_empty() {
        "nothing: the export is empty".to_owned()
    } else {
        words.join(", ")
    }
}
