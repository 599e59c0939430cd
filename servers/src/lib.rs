//! The tool servers that clopen-mcp ships, each also a model for your own.
//!
//! Read them in this order; each adds one idea to the one before:
//!
//! 1. [`weather_service`] asks somebody else: one HTTP client for all calls, time and size limited, every failure
//!    told in words that a model can act on.
//! 2. [`file_utils`] guards a boundary: paths that stay inside one folder whatever links point out of it, work that
//!    blocks kept off the async threads and stopped when the caller has gone.
//! 3. [`database`] holds a pool, made once when the server starts; what must not happen is forbidden by the database
//!    and not by reading the SQL.
//! 4. [`api_gateway`] takes its whole shape from the environment and keeps secrets: a token goes into one request
//!    header and nowhere else.
//!
//! A server is a struct with a `start` that reads its settings, and methods that are tools. A setting that is missing
//! or wrong makes that one server unavailable, with a reason that names the variable; the others still run.
//!
//! Nothing here needs the bridge: a test makes a server with an [`Environment`](tool_runtime::Environment) of its own
//! and calls the methods.

pub mod weather_service;

pub mod file_utils;

pub mod database;

pub mod api_gateway;

mod http;
