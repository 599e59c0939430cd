//! Which bridges on a SQLite database are alive: each holds the lock of a file of its own, which the system takes back when
//! the process ends, however it ends.
//!
//! On PostgreSQL, and where there are no such locks, the leases of tasks tell it later.

use super::{DatabaseError, Store, folder};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// The folder of these files, in the data folder.
const FOLDER: &str = "bridges";

/// A bridge among all on one database, while it lives.
#[derive(Debug)]
pub struct Presence {
    name: String,
    /// Its file, with the lock.
    held: Option<(PathBuf, File)>,
}

impl Presence {
    /// Returns its name, which no other bridge has or had.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.held {
            drop(fs::remove_file(path));
        }
    }
}

impl Store {
    /// Makes this process known as a bridge on this database.
    pub fn appear(&self) -> Presence {
        let random = getrandom::u64().expect("the system has a source of randomness");
        let name = format!("{}-{random:016x}", std::process::id());
        let held = self.data.as_ref().and_then(|data| {
            hold(data, &name)
                .inspect_err(|error| {
                    tracing::warn!(%error, "can't hold a lock in the data folder; tasks are taken over later than they could be");
                })
                .ok()
        });
        Presence { name, held }
    }

    /// Lets go of the tasks of bridges that have ended, so that they are adopted at once.
    pub async fn release_tasks_of_the_dead(&self) -> Result<(), DatabaseError> {
        let Some(data) = &self.data else {
            return Ok(());
        };
        for (name, path, lock) in dead(&data.join(FOLDER)) {
            self.release_tasks(&name).await?;
            drop(fs::remove_file(path));
            drop(lock);
        }
        Ok(())
    }
}

fn hold(data: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    let path = folder::prepare(&data.join(FOLDER))?.join(name);
    let file = folder::create(&path)?;
    // Somebody who takes it for a dead one's in between holds it for a moment, and the file is gone then.
    file.try_lock()?;
    Ok((path, file))
}

/// The files whose lock nobody holds, each with its lock.
fn dead(folder: &Path) -> Vec<(String, PathBuf, File)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            let file = File::open(&path).ok()?;
            file.try_lock().ok()?;
            Some((entry.file_name().into_string().ok()?, path, file))
        })
        .collect()
}
