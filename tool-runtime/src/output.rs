//! What a tool returns, and how it becomes what every engine can show.

use crate::error::ToolError;
use base64::Engine as _;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use std::borrow::Cow;
use thiserror::Error;

/// What a call gave.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// What a model reads.
    pub content: Vec<Content>,
    /// The same facts as data, where the tool has a schema for them.
    pub structured: Option<Box<RawValue>>,
    /// Whether the content tells of a failure.
    pub is_error: bool,
    /// Further facts for clients, sent as `_meta`.
    pub meta: Option<Box<Map<String, Value>>>,
    /// What the tool must be told before it can go on; such an output has nothing else.
    pub input_required: Option<Box<InputRequired>>,
}

impl Output {
    /// Makes an output of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// Makes the output of a failure.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Adds a further fact for clients.
    pub fn insert_meta(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        let meta = self.meta.get_or_insert_default();
        meta.insert(key.into(), value.into());
    }

    /// Returns all text of the content, one block a line.
    pub fn to_text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// Questions that a client must answer before the same call can be made again. What gives no output of its own, such as a
/// prompt, fails with them.
#[derive(Clone, Debug, Default, PartialEq, Error)]
#[error("the client must answer questions before")]
pub struct InputRequired {
    /// The questions, each under a name of its own.
    pub questions: Vec<Question>,
    /// State that comes back with the answers, by [`Client::round`](crate::Client::round). The client carries it sealed.
    pub state: Option<String>,
}

/// One question to a client, in the protocol's own words.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Its name; empty where it has none.
    pub key: String,
    /// For example `elicitation/create`.
    pub method: Cow<'static, str>,
    /// The parameters of the method.
    pub params: Value,
}

/// One block of what a model reads.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Its bytes, in base64.
        data: String,
        /// For example `image/png`.
        mime_type: String,
    },
    /// Sound.
    Audio {
        /// Its bytes, in base64.
        data: String,
        /// For example `audio/wav`.
        mime_type: String,
    },
    /// A resource, itself.
    Resource {
        /// Its address.
        uri: String,
        /// Its MIME type, where known.
        mime_type: Option<String>,
        /// Its text or bytes.
        body: Body,
    },
    /// A resource, by address.
    Link {
        /// Its address.
        uri: String,
        /// A name for it.
        name: String,
        /// Its MIME type, where known.
        mime_type: Option<String>,
        /// What it holds.
        description: Option<String>,
    },
    /// Any of these, with whatever else its server says of it: for whom it is, for example.
    Annotated {
        /// The block.
        content: Box<Content>,
        /// What else is said of it, in the protocol's words.
        further: Map<String, Value>,
    },
}

/// The text or the bytes of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

impl Content {
    /// Makes a block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Makes a picture of its bytes.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image {
            data: base64(bytes),
            mime_type: mime_type.into(),
        }
    }

    /// Makes a sound of its bytes.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio {
            data: base64(bytes),
            mime_type: mime_type.into(),
        }
    }

    /// Makes a resource of its text.
    pub fn resource(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self::Resource {
            uri: uri.into(),
            mime_type: Some(mime_type.into()),
            body: Body::Text(text.into()),
        }
    }

    /// Makes a resource of its bytes.
    pub fn blob(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        bytes: impl AsRef<[u8]>,
    ) -> Self {
        Self::Resource {
            uri: uri.into(),
            mime_type: Some(mime_type.into()),
            body: Body::Blob(base64(bytes)),
        }
    }

    /// Makes a link to a resource.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::Link {
            uri: uri.into(),
            name: name.into(),
            mime_type: None,
            description: None,
        }
    }

    /// Returns the block without what else is said of it.
    pub fn plain(&self) -> &Self {
        match self {
            Self::Annotated { content, .. } => content.plain(),
            plain => plain,
        }
    }

    /// Returns the text of a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Annotated { content, .. } => content.as_text(),
            _ => None,
        }
    }

    /// Counts the bytes of the text of a block of text or of a resource.
    pub(crate) fn text_length(&self) -> usize {
        match self {
            Self::Text(text)
            | Self::Resource {
                body: Body::Text(text),
                ..
            } => text.len(),
            Self::Annotated { content, .. } => content.text_length(),
            _ => 0,
        }
    }

    /// Returns the text of a block of text or of a resource.
    pub(crate) fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Text(text)
            | Self::Resource {
                body: Body::Text(text),
                ..
            } => Some(text),
            Self::Annotated { content, .. } => content.text_mut(),
            _ => None,
        }
    }
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A type that a tool or a resource can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be returned from a tool",
    label = "not something that a model can read",
    note = "return text (`String`), structured data (`Json<T>`), content (`Content`), or a `Result` of one of these",
    note = "to return `{Self}` as structured data, write `Json<{Self}>`"
)]
pub trait IntoOutput {
    /// Returns the schema of the structured form, if there is one.
    fn schema() -> Option<Schema> {
        None
    }

    /// Makes the output.
    fn into_output(self) -> Result<Output, ToolError>;
}

/// Structured output: sent as `structuredContent`, its schema published; its text form is the same JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema> IntoOutput for Json<T> {
    fn schema() -> Option<Schema> {
        Some(crate::schema::published_output::<T>())
    }

    fn into_output(self) -> Result<Output, ToolError> {
        let structured = serde_json::value::to_raw_value(&self.0)?;
        Ok(Output {
            content: vec![Content::text(structured.get())],
            structured: Some(structured),
            ..Output::default()
        })
    }
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(self)
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text("done"))
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text(self))
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text(self))
    }
}

impl IntoOutput for Cow<'_, str> {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output::text(self))
    }
}

impl IntoOutput for Content {
    fn into_output(self) -> Result<Output, ToolError> {
        vec![self].into_output()
    }
}

impl IntoOutput for Vec<Content> {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output {
            content: self,
            ..Output::default()
        })
    }
}

impl IntoOutput for InputRequired {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output {
            input_required: Some(Box::new(self)),
            ..Output::default()
        })
    }
}

/// A type that a tool can fail with.
#[diagnostic::on_unimplemented(
    message = "a tool can't fail with a `{Self}`",
    label = "not an error that a model can read",
    note = "fail with a `ToolError`, with text (`String`), or with a type that implements `std::error::Error + Send + Sync`"
)]
pub trait Failure: Into<ToolError> {}
#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> Failure for E {}

impl<T: IntoOutput, E: Failure> IntoOutput for Result<T, E> {
    fn schema() -> Option<Schema> {
        T::schema()
    }

    fn into_output(self) -> Result<Output, ToolError> {
        self.map_err(Into::into)?.into_output()
    }
}

/// Who says a message of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

impl Message {
    /// Makes a message of the person.
    pub fn user(content: impl Into<Content>) -> Self {
        Self {
            role: Role::User,
            content: content.into(),
        }
    }

    /// Makes a message of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// A type that a prompt can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be returned from a prompt",
    label = "not a message",
    note = "return text (`String`), `Content`, `Message`, a `Vec` of either, or a `Result` of one of these"
)]
pub trait IntoMessages {
    /// Makes the messages.
    fn into_messages(self) -> Result<Vec<Message>, ToolError>;
}

impl IntoMessages for Vec<Message> {
    fn into_messages(self) -> Result<Vec<Message>, ToolError> {
        Ok(self)
    }
}

impl IntoMessages for Message {
    fn into_messages(self) -> Result<Vec<Message>, ToolError> {
        Ok(vec![self])
    }
}

impl IntoMessages for Content {
    fn into_messages(self) -> Result<Vec<Message>, ToolError> {
        Ok(vec![Message::user(self)])
    }
}

impl IntoMessages for Vec<Content> {
    fn into_messages(self) -> Result<Vec<Message>, ToolError> {
        Ok(self.into_iter().map(Message::user).collect())
    }
}

impl IntoMessages for String {
    fn into_messages(self) -> Result<Vec<Message>, ToolError> {
        Ok(vec![Message::user(self)])
    }
}

impl IntoMessages for &str {
    fn into_messages(self) -> Result<Vec<Message>, ToolError> {
        Ok(vec![Message::user(self)])
    }
}

impl<T: IntoMessages, E: Failure> IntoMessages for Result<T, E> {
    fn into_messages(self) -> Result<Vec<Message>, ToolError> {
        self.map_err(Into::into)?.into_messages()
    }
}
