//! Tools that return each kind of content.

use crate::{PNG, WAV};
use tool_runtime::{Content, ToolError, tool_server};

/// Each kind of content.
#[tool_server(name = "content", version = "1.0.0")]
pub(crate) mod server {
    use super::{Content, PNG, ToolError, WAV};

    /// Return a text.
    #[tool(read_only)]
    pub(crate) fn test_simple_text() -> &'static str {
        "This is a simple text response for testing."
    }

    /// Return a picture.
    #[tool(read_only)]
    pub(crate) fn test_image_content() -> Content {
        Content::image(PNG, "image/png")
    }

    /// Return a sound.
    #[tool(read_only)]
    pub(crate) fn test_audio_content() -> Content {
        Content::audio(WAV, "audio/wav")
    }

    /// Return a resource.
    #[tool(read_only)]
    pub(crate) fn test_embedded_resource() -> Content {
        let text = "This is an embedded resource content.";
        Content::resource("test://embedded-resource", "text/plain", text)
    }

    /// Return a text, a picture and a resource.
    #[tool(read_only)]
    pub(crate) fn test_multiple_content_types() -> Vec<Content> {
        let json = r#"{"test":"data","value":123}"#;
        vec![
            Content::text("Multiple content types test:"),
            Content::image(PNG, "image/png"),
            Content::resource("test://mixed-content-resource", "application/json", json),
        ]
    }

    /// Fail.
    #[tool(read_only)]
    pub(crate) fn test_error_handling() -> Result<String, ToolError> {
        Err("This tool intentionally returns an error for testing".into())
    }
}
