use tool_runtime::tool_server;

#[tool_server(name = "settings", version = "1.0.0")]
mod settings {
    /// Is unknown.
    #[tool(readonly, uri = "x://y")]
    pub fn unknown() {}

    /// Is no list.
    #[tool = "x"]
    pub fn no_list() {}

    /// Says two things at once.
    #[tool(read_only, destructive)]
    pub fn contradiction() {}

    /// Says them twice.
    #[tool(idempotent, title = "A", idempotent = false, title = "B")]
    pub fn twice() {}

    /// Says nothing.
    #[tool(title = "", deprecated, scopes(), examples, meta())]
    pub fn nothing() {}

    /// Says it otherwise.
    #[tool(read_only = "yes", scopes("a b", "c", "c"), requires(project, session), meta("a" = 1, a = 2, "" = 3))]
    pub fn otherwise() {}
}

#[tool_server(name = "timeouts", version = "1.0.0")]
mod timeouts {
    /// No unit.
    #[tool(timeout = "30")]
    pub fn no_unit() {}

    /// No number.
    #[tool(timeout = "s")]
    pub fn no_number() {}

    /// Not a text.
    #[tool(timeout = 30)]
    pub fn no_text() {}

    /// Nothing.
    #[tool(timeout = "0ms")]
    pub fn nothing() {}

    /// Too long.
    #[tool(timeout = "18446744073709551615h")]
    pub fn too_long() {}
}

fn main() {}
