use tool_runtime::tool_server;

#[tool_server(name = "uris", version = "1.0.0")]
mod uris {
    /// No address.
    #[resource]
    pub fn no_uri() {}

    /// No address among others.
    #[resource(mime_type = "text/plain")]
    pub fn no_uri_either() {}

    /// Unknown.
    #[resource(url = "notes://all")]
    pub fn unknown() {}

    /// No scheme.
    #[resource(uri = "notes/all")]
    pub fn no_scheme() {}

    /// A variable without an argument.
    #[resource(uri = "notes://{folder}/{index}")]
    pub fn no_argument(index: usize) {
        let _ = index;
    }

    /// An argument without a variable.
    #[resource(uri = "notes://{index}/")]
    pub fn no_variable(index: usize, folder: String) {
        let _ = (index, folder);
    }

    /// A variable twice.
    #[resource(uri = "notes://{index}/{index}")]
    pub fn twice(index: usize) {
        let _ = index;
    }

    /// Braces that don't match.
    #[resource(uri = "notes://{index")]
    pub fn open(index: usize) {
        let _ = index;
    }

    /// An operator.
    #[resource(uri = "notes://{+path}")]
    pub fn operator(path: String) {
        drop(path);
    }

    /// Always there.
    #[resource(uri = "notes://{first}/{second}")]
    pub fn always(first: Option<usize>, #[arg(default = 1)] second: usize) {
        let _ = (first, second);
    }

    /// Borrowed; that its argument is missing would be said in vain.
    #[resource(uri = "notes://by/{name}")]
    pub fn borrowed(name: &str) {
        let _ = name;
    }
}

fn main() {}
