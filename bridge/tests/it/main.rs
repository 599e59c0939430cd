//! The bridge, from outside.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "`UPDATE_EXPECT=1` writes snapshots so"
)]

mod config;
mod guard;
mod skills;
mod store;
mod store_keys;
mod store_sessions;
mod store_tasks;
