//! How long a call may take and how much it may say; what is too long is kept, to be read in pieces.

use crate::{
    background::{Background, Looked},
    context::Caller,
    definition::ToolServer as _,
    error::ToolError,
    output::{Content, Message, Output},
};
use std::{
    collections::VecDeque,
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tool_macros::tool_server;

/// How many cut results are kept, for all callers together.
const KEPT: usize = 64;

/// How many bytes of cut results are kept, for all callers together.
const KEPT_BYTES: usize = 64 << 20;

/// What one call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a call may take, unless its tool says otherwise.
    pub time: Duration,
    /// How many bytes of text a result may have. Engines refuse or cut what is longer; Claude Code does above 25,000
    /// tokens.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_mins(1),
            output: 80_000,
        }
    }
}

/// The results that were too long to be given whole, to be read on with `read_result`.
#[derive(Clone, Debug)]
pub struct Results {
    kept: Arc<Mutex<VecDeque<Kept>>>,
    pub(crate) background: Background,
    /// How many bytes of text a result may have.
    limit: usize,
}

impl Default for Results {
    fn default() -> Self {
        Self::new(Limits::default().output)
    }
}

#[derive(Debug)]
struct Kept {
    handle: String,
    principal: String,
    text: Arc<str>,
}

/// Reads on in results that were too long to be shown at once.
#[tool_server(name = "results", version = "1.0.0", manual)]
impl Results {
    /// Read on in a result that was cut. Call it with the handle and the offset that stand at the end of the cut
    /// result.
    #[tool(
        read_only,
        idempotent,
        open_world = false,
        title = "Read on in a cut result"
    )]
    async fn read_result(
        &self,
        /// The handle of the result.
        handle: String,
        /// Where to read on, in bytes from the start.
        #[arg(default = 0)]
        offset: u64,
        /// How many bytes to read at most.
        #[arg(default = 40_000, range = 1_000..=80_000)]
        length: u32,
        caller: &Caller,
    ) -> Result<String, ToolError> {
        let text = match self.background.look(&handle, caller).await {
            Some(Looked::GoesOn(words)) => return Ok(words),
            Some(Looked::Ended(text)) => text,
            None => self.get(&handle, caller).ok_or(
                "this result is gone: only the latest ones are kept; make the call again that gave it",
            )?,
        };
        let start = usize::try_from(offset)?;
        let rest = text
            .get(start..)
            .ok_or("the offset must be one that stands in a cut result")?;
        let length = usize::try_from(length)?.min(self.limit_of(caller));
        let end = start + boundary(rest, length);
        let mut piece = text[start..end].to_owned();
        if end < text.len() {
            note(&mut piece, end, text.len(), Some(&handle));
        }
        Ok(piece)
    }
}

impl Results {
    /// Keeps what is longer than this many bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            kept: Arc::default(),
            background: Background::default(),
            limit,
        }
    }

    fn limit_of(&self, caller: &Caller) -> usize {
        let of_caller = caller.most_output.unwrap_or(self.limit);
        of_caller.min(self.limit)
    }

    fn get(&self, handle: &str, caller: &Caller) -> Option<Arc<str>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = kept.iter().filter(|it| it.principal == caller.principal);
        own.find(|it| it.handle == handle).map(|it| it.text.clone())
    }

    /// Keeps a text under a new handle, if there can be one.
    fn keep(&self, text: String, caller: &Caller) -> Option<String> {
        let handle = handle()?;
        self.keep_as(handle.clone(), text.into(), caller);
        Some(handle)
    }

    /// Keeps a text under a handle.
    pub(crate) fn keep_as(&self, handle: String, text: Arc<str>, caller: &Caller) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(Kept {
            handle,
            principal: caller.principal.clone(),
            text,
        });
        while kept.len() > KEPT
            || (kept.len() > 1 && kept.iter().map(|it| it.text.len()).sum::<usize>() > KEPT_BYTES)
        {
            kept.pop_front();
        }
    }

    /// Cuts an output that is longer than the limit, at a character boundary, and keeps the whole for
    /// [`Results::read_result`]. Returns how many bytes of text it had, if it was cut.
    ///
    /// Structured data can't be cut: it is left out, and since its tool promises it, the result is marked as an error,
    /// whose text is the beginning of the data.
    pub(crate) fn cut(&self, output: &mut Output, caller: &Caller) -> Option<usize> {
        // Most results are short.
        let length: usize = output.content.iter().map(Content::text_length).sum();
        let data = output.structured.as_ref().map_or(0, |it| it.get().len());
        if length.max(data) <= self.limit_of(caller) {
            return None;
        }
        if let Some(structured) = &output.structured
            && structured.get().len() > self.limit_of(caller)
        {
            let data = Content::text(structured.get());
            output.content.retain(|it| it.as_text().is_none());
            output.content.insert(0, data);
        }
        let total = self.cut_texts(&mut output.content, Content::text_mut, caller)?;
        if output.structured.take().is_some() {
            output.is_error = true;
        }
        Some(total)
    }

    /// Cuts the messages of a prompt in the same way.
    pub(crate) fn cut_messages(&self, messages: &mut Vec<Message>, caller: &Caller) {
        self.cut_texts(messages, |it| it.content.text_mut(), caller);
    }

    /// Cuts where all texts together reach the limit. What comes after is left out, unless it isn't text.
    fn cut_texts<T>(
        &self,
        blocks: &mut Vec<T>,
        text_of: fn(&mut T) -> Option<&mut String>,
        caller: &Caller,
    ) -> Option<usize> {
        let limit = self.limit_of(caller);
        let texts = blocks.iter_mut().filter_map(text_of);
        if texts.map(|it| it.len()).sum::<usize>() <= limit {
            return None;
        }
        let texts = blocks.iter_mut().filter_map(text_of);
        let texts: Vec<&str> = texts.map(|it| it.as_str()).collect();
        let whole = texts.join("\n");
        let (end, total) = (boundary(&whole, limit), whole.len());
        // Who can't call `read_result` has no use for a handle.
        let can_read_on = caller.reaches_server(Self::DEFINITION.name);
        let handle = can_read_on.then(|| self.keep(whole, caller)).flatten();
        let mut left = Some(end);
        blocks.retain_mut(|it| {
            let Some(text) = text_of(it) else { return true };
            let Some(room) = left else { return false };
            // The next text stands in another line of the whole.
            left = room.checked_sub(text.len() + 1).filter(|it| *it > 0);
            if left.is_none() {
                text.truncate(room);
                note(text, end, total, handle.as_deref());
            }
            true
        });
        Some(total)
    }
}

/// The greatest length up to a limit that ends between two characters; at least one character, so that whoever reads
/// on gets to the end.
fn boundary(text: &str, limit: usize) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    text.floor_char_boundary(limit).max(first)
}

fn note(text: &mut String, end: usize, total: usize, handle: Option<&str>) {
    let written = write!(text, "\n\n[cut after {end} of {total} bytes").and_then(|()| match handle {
        Some(handle) => write!(
            text,
            "; to read on, call `read_result` with {{\"handle\":\"{handle}\",\"offset\":{end}}}]"
        ),
        None => text.write_str("]"),
    });
    written.expect("writing to a String does not fail");
}

/// A name that can't be guessed. Without a source of randomness there is none.
pub(crate) fn handle() -> Option<String> {
    let random = getrandom::u64().ok()?;
    Some(format!("r{random:016x}"))
}
