//! One binary; a module per thing it is about.

mod ui;
