//! One bridge between your tools and every coding agent.
//!
//! The binary `clopen-mcp` is this library with the servers of the crate `servers` linked in. A program of your own
//! that links your tools and calls [`main`] is the same bridge with your tools in it.

mod app;
pub mod catalog;
mod cli;
pub mod config;
pub mod credentials;
pub mod engines;
pub mod mcp;
pub mod secret;
pub mod skills;
pub mod store;
mod telemetry;
pub mod upstream;
mod web;

pub use app::{Bridge, StartError, dispatcher};
pub use cli::main;

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
