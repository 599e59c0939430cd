//! Prompts: with and without arguments, with a picture and with a resource.

use crate::PNG;
use tool_runtime::{Content, tool_server};

/// Prompts to use.
#[tool_server(name = "prompts", version = "1.0.0")]
pub(crate) mod server {
    use super::{Content, PNG};

    /// A text.
    #[prompt]
    pub(crate) fn test_simple_prompt() -> &'static str {
        "This is a simple prompt for testing."
    }

    /// A text with two arguments in it.
    #[prompt]
    pub(crate) fn test_prompt_with_arguments(
        /// First test argument
        arg1: String,
        /// Second test argument
        arg2: String,
    ) -> String {
        format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
    }

    /// A resource and a text about it.
    #[prompt]
    pub(crate) fn test_prompt_with_embedded_resource(
        /// URI of the resource to embed
        #[arg(name = "resourceUri")]
        resource_uri: String,
    ) -> Vec<Content> {
        let text = "Embedded resource content for testing.";
        vec![
            Content::resource(resource_uri, "text/plain", text),
            Content::text("Please process the embedded resource above."),
        ]
    }

    /// A picture and a text about it.
    #[prompt]
    pub(crate) fn test_prompt_with_image() -> Vec<Content> {
        vec![
            Content::image(PNG, "image/png"),
            Content::text("Please analyze the image above."),
        ]
    }
}
