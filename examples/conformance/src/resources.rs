//! Resources: text, bytes, and a family of them.

use crate::PNG;
use tool_runtime::{Content, tool_server};

/// Resources to read.
#[tool_server(name = "resources", version = "1.0.0")]
pub(crate) mod server {
    use super::{Content, PNG};

    /// A text that never changes.
    #[resource(
        uri = "test://static-text",
        mime_type = "text/plain",
        name = "Static text"
    )]
    pub(crate) fn static_text() -> &'static str {
        "This is the content of the static text resource."
    }

    /// A picture that never changes.
    #[resource(
        uri = "test://static-binary",
        mime_type = "image/png",
        name = "Static binary"
    )]
    pub(crate) fn static_binary() -> Content {
        Content::image(PNG, "image/png")
    }

    /// A text that may change.
    #[resource(
        uri = "test://watched-resource",
        mime_type = "text/plain",
        name = "Watched"
    )]
    pub(crate) fn watched() -> &'static str {
        "Watched resource content"
    }

    /// Data by its id.
    #[resource(
        uri = "test://template/{id}/data",
        mime_type = "application/json",
        name = "Data"
    )]
    pub(crate) fn data(
        /// The id.
        id: String,
    ) -> String {
        let data = format!("Data for ID: {id}");
        serde_json::json!({ "id": id, "templateTest": true, "data": data }).to_string()
    }
}
