//! The bridge, from outside.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "`UPDATE_EXPECT=1` writes snapshots so"
)]

mod authorization;
mod bound;
mod bridge;
mod catalog_cli;
mod catalog_install;
mod catalog_search;
mod catalog_sync;
mod chaos;
mod cli;
mod client;
mod complete;
mod config;
mod connect;
mod data;
mod durable;
mod each;
mod edit;
mod edit_properties;
mod endpoint;
mod engine_names;
mod engine_pages;
mod engine_schemas;
mod engine_wire;
mod external;
mod guard;
mod identity;
mod import;
mod legacy;
mod listen;
#[path = "../../../tool-runtime/tests/it/name_strategies.rs"]
mod name_strategies;
mod requests;
mod sample_servers;
mod serving;
mod sightings;
mod sign_in;
mod sign_in_calls;
mod skills;
mod stdio;
mod store;
mod store_catalog;
mod store_external;
mod store_keys;
mod store_servers;
mod store_sessions;
mod store_sign_ins;
mod store_tasks;
mod streams;
mod tidy;
mod upstream_eras;
mod upstream_http;
mod upstream_lists;
mod upstream_orphans;
mod upstream_probe;
mod upstream_results;
mod upstream_stdio;
mod upstream_talk;
mod vault;
mod wire;
mod workspaces;
