//! One binary; a module per thing it is about.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "`expect!` writes its snapshots so"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a `check` takes what its cases make in place"
)]

mod adapt;
mod allocations;
mod background;
mod check;
mod context;
mod dispatcher;
mod export;
mod external;
mod golden;
mod host;
mod limits;
mod macros;
mod name;
mod name_strategies;
mod output;
mod registry;
mod resource;
mod schema;
mod selection;
mod streams;
mod ui;
mod view;
