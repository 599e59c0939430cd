//! The five examples of the guide.
#![deny(warnings)]
#![forbid(unsafe_code)]

use std::sync::Mutex;
use tool_runtime::{Caller, Cancellation, Json, Progress, ToolError, tool_server};

// 1: a server without state is a module.

/// Weather for any place on Earth.
#[tool_server(name = "weather-service", version = "1.0.0")]
pub mod weather {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use tool_runtime::ToolError;

    /// Get the current temperature at a place.
    #[tool(read_only)]
    pub async fn get_temperature(
        /// Latitude, in degrees north.
        #[arg(range = -90.0..=90.0)]
        latitude: f64,
        /// Longitude, in degrees east.
        #[arg(range = -180.0..=180.0)]
        longitude: f64,
        /// Unit of the answer.
        #[arg(default = Unit::Celsius)]
        unit: Unit,
    ) -> Result<String, ToolError> {
        let degrees: f64 = "21".parse()?;
        Ok(format!("{degrees} {unit:?} at {latitude}, {longitude}"))
    }

    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Unit {
        Celsius,
        Fahrenheit,
    }
}

// 2: a server with state is a type, and its state is `self`.

#[derive(Default)]
pub struct Notes {
    all: Mutex<Vec<String>>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Saved {
    /// How many notes there are now.
    count: usize,
}

/// Notes of this project.
#[tool_server(name = "notes", version = "1.0.0")]
impl Notes {
    /// Save a note.
    #[tool(destructive = false)]
    pub async fn save(
        &self,
        /// The text.
        #[arg(length = 1..=10_000)]
        text: String,
        /// Where it came from.
        source: Option<String>,
    ) -> Result<Json<Saved>, ToolError> {
        let mut all = self.all.lock().map_err(|_| "the notes are broken")?;
        all.push(source.map_or(text.clone(), |source| format!("{text} ({source})")));
        Ok(Json(Saved { count: all.len() }))
    }

    // 5: resources and prompts are the same kind of function.

    /// One note.
    #[resource(uri = "notes://{index}", mime_type = "text/plain")]
    pub async fn note(
        &self,
        /// Its place in the list.
        index: usize,
    ) -> Result<String, ToolError> {
        let all = self.all.lock().map_err(|_| "the notes are broken")?;
        Ok(all.get(index).ok_or("no such note")?.clone())
    }

    /// Ask for a summary of the notes.
    #[prompt]
    pub fn summarize(
        /// How long it may be.
        #[arg(default = 3, range = 1..=10)]
        sentences: u8,
    ) -> String {
        format!("Summarize my notes in {sentences} sentences.")
    }
}

// 3: what the model sends comes by value; what the runtime lends comes by reference.

#[tool_server(name = "indexer", version = "1.0.0")]
pub mod indexer {
    use super::{Caller, Cancellation, Progress, ToolError};

    /// Index the files of the project.
    #[tool(idempotent)]
    pub async fn index(
        /// Glob of the files to index.
        #[arg(default = "**/*.rs".to_owned())]
        files: String,
        caller: &Caller,
        progress: &Progress,
        cancellation: &Cancellation,
    ) -> Result<String, ToolError> {
        for step in 0..10 {
            if cancellation.is_cancelled() {
                return Err("stopped on request".into());
            }
            progress.report(step, 10);
        }
        Ok(format!("indexed {files} of {}", caller.project))
    }
}

// 4: `?` takes any error: a standard one, `anyhow`, or a sentence.

#[tool_server(name = "files", version = "1.0.0")]
pub mod files {
    use super::ToolError;

    /// Count the lines of a file.
    #[tool(read_only)]
    pub async fn count_lines(
        /// Path of the file, relative to the project.
        path: String,
    ) -> Result<String, ToolError> {
        if path.contains("..") {
            return Err("the path must stay inside the project".into());
        }
        let text = std::fs::read_to_string(&path)?;
        check(&text)?;
        Ok(text.lines().count().to_string())
    }

    fn check(text: &str) -> anyhow::Result<()> {
        anyhow::ensure!(!text.contains('\0'), "not a text file");
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // Tools stay plain functions, so a test calls them without any of this machinery.
    let temperature = weather::get_temperature(1.0, 2.0, weather::Unit::Celsius).await;
    assert!(temperature.is_ok());
    let saved = Notes::default().save("hi".to_owned(), None).await;
    assert_eq!(saved.unwrap().0.count, 1);

    assert_eq!(weather::tools::GET_TEMPERATURE.tool, "get_temperature");
    assert_eq!(Notes::SAVE.server, "notes");
}
