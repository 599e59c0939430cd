//! What registries offer: fetched page by page, searched, and turned into what has to be started or reached.
//!
//! Whatever a registry says is the text of strangers: it is bounded, made printable before it is shown, and never read by
//! a shell.

mod choice;
mod client;
mod index;
mod input;
mod known;
mod pin;
mod plan;
mod record;
mod rules;
mod sync;
mod template;
mod text;
mod way;

pub use choice::{Choice, ChoiceError, choose};
pub use client::{Client, Page, Patience, Query, RegistryError};
pub use index::{Filter, Index, Listed};
pub use input::{Asked, Values};
pub use known::{Note, SignIn, WELL_KNOWN, completed, known, note};
pub use pin::{Indexes, needs_pin, pin};
pub use plan::{FillError, Plan, Problem, Word};
pub use record::{Entry, Record, RecordError, Status};
pub use sync::{SyncError, Synced, sync};
pub use way::{Kind, Programs, Recipe, Way, ways};
