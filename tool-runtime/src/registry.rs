//! The servers linked into this program.

/// The environment of servers that start.
#[derive(Debug)]
pub struct Environment;
