//! State, structured output, resources and a prompt.

use schemars::JsonSchema;
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tool_runtime::{Json, ToolError, tool_server};

/// Notes, kept as long as the program runs.
#[derive(Debug, Default)]
pub struct Notes {
    all: Mutex<Vec<String>>,
}

/// A note that has been saved.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Saved {
    /// Its place in the list, counted from 0.
    pub index: usize,
    /// Where it can be read.
    pub uri: String,
}

/// A note that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Found {
    /// Its place in the list, counted from 0.
    pub index: usize,
    /// Its text.
    pub text: String,
}

impl Notes {
    /// A call that panicked can't leave half a note, so that a poisoned lock is as good as a sound one.
    fn all(&self) -> MutexGuard<'_, Vec<String>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Short notes to remember.
#[tool_server(name = "notes", version = "1.0.0")]
impl Notes {
    /// Save a note. Use it when the user wants something remembered.
    #[tool(destructive = false, open_world = false)]
    pub fn save_note(
        &self,
        /// The text of the note.
        #[arg(length = 1..=10_000)]
        text: String,
    ) -> Json<Saved> {
        let mut all = self.all();
        let index = all.len();
        all.push(text);
        Json(Saved {
            index,
            uri: format!("notes://{index}"),
        })
    }

    /// Find the notes that hold a text, the latest first.
    #[tool(read_only, open_world = false)]
    pub fn find_notes(
        &self,
        /// The text to look for; everything, if it is left out.
        text: Option<String>,
        /// How many to give at most.
        #[arg(default = 10, range = 1..=100)]
        most: usize,
    ) -> Json<Vec<Found>> {
        let wanted = text.unwrap_or_default();
        let all = self.all();
        let latest_first = all.iter().enumerate().rev();
        let found = latest_first.filter(|(_, note)| note.contains(&wanted));
        let found = found.take(most).map(|(index, note)| Found {
            index,
            text: note.clone(),
        });
        Json(found.collect())
    }

    /// One note.
    #[resource(uri = "notes://{index}", mime_type = "text/plain")]
    pub fn note(
        &self,
        /// Its place in the list, counted from 0.
        index: usize,
    ) -> Result<String, ToolError> {
        let all = self.all();
        let note = all.get(index).ok_or("there is no such note")?;
        Ok(note.clone())
    }

    /// Ask for a summary of all notes.
    #[prompt]
    pub fn summarize(
        &self,
        /// How many sentences it may have.
        #[arg(default = 3, range = 1..=10)]
        sentences: u8,
    ) -> String {
        let notes = self.all().join("\n");
        format!("Summarize these notes in at most {sentences} sentences:\n\n{notes}")
    }
}
