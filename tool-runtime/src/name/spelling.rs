//! How an engine spells, for its model, what a server lists.

use super::NAMESPACE;

/// What an engine makes of a listed name before its model sees it.
///
/// An engine's own is written as it differs from [`Spelling::AS_LISTED`]:
///
/// ```
/// use tool_runtime::{Shown, Spelling};
///
/// const OPEN_CODE: Spelling = Spelling {
///     before: "clopen-mcp_",
///     keeps: Some("_-"),
///     ..Spelling::AS_LISTED
/// };
/// let shown = OPEN_CODE.of("get_temperature");
/// assert_eq!(shown, Shown::As("clopen-mcp_get_temperature".to_owned()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelling {
    /// What it puts before the name; the namespace in it is the name by which it knows the server.
    pub before: &'static str,
    /// Whether its model sees that beside the name and not in it. It counts all the same.
    pub apart: bool,
    /// How many characters it keeps of the name by which it knows the server.
    pub most_before: usize,
    /// The characters that it keeps besides ASCII letters and digits; `None` if it keeps all.
    pub keeps: Option<&'static str>,
    /// What it writes for each other.
    pub instead: char,
    /// Whether it makes one of several `_` in a row.
    pub joins: bool,
    /// Whether it encodes a name that is not ASCII, in a way of its own.
    pub encodes: bool,
    /// How many characters of its own it puts behind a name that it has changed.
    pub mark: usize,
    /// What it does with a name that is too long.
    pub too_long: TooLong,
}

/// What an engine does with a name that is too long, in characters of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLong {
    /// None is.
    Never,
    /// It leaves the tool out.
    Dropped {
        /// The longest name that it takes.
        over: usize,
    },
    /// It cuts the name.
    Cut {
        /// How long the name is then,
        to: usize,
        /// and how much of that, at the end, is not the beginning of the name: a hash, or what follows a gap.
        ending: usize,
    },
}

/// How a model sees a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Under exactly this name.
    As(String),
    /// Under a name that begins so and ends as only the engine knows.
    Beginning(String),
    /// Not at all.
    Dropped,
}

impl Spelling {
    /// Shows every name as it is listed.
    pub const AS_LISTED: Self = Self {
        before: "",
        apart: false,
        most_before: usize::MAX,
        keeps: None,
        instead: '_',
        joins: false,
        encodes: false,
        mark: 0,
        too_long: TooLong::Never,
    };

    /// Returns what the model sees of a listed name.
    pub fn of(&self, listed: &str) -> Shown {
        self.of_server(NAMESPACE, listed)
    }

    /// Returns what the model sees of a listed name where the engine knows the server by a name of its own.
    pub fn of_server(&self, server: &str, listed: &str) -> Shown {
        let before = self.prefix(server);
        let shown = |whole: &str| {
            let hidden = if self.apart { before.len() } else { 0 };
            whole.get(hidden..).unwrap_or_default().to_owned()
        };
        if self.encodes && !listed.is_ascii() {
            return Shown::Beginning(shown(&before));
        }
        let kept = self.kept(listed);
        let mark = if kept == listed { 0 } else { self.mark };
        let whole = format!("{before}{kept}");
        let length = whole.chars().count() + mark;
        let (length, ending) = match self.too_long {
            TooLong::Dropped { over } if length > over => return Shown::Dropped,
            TooLong::Cut { to, ending } if length > to => (to, ending),
            _ => (length, mark),
        };
        let beginning: String = whole.chars().take(length.saturating_sub(ending)).collect();
        if ending == 0 {
            Shown::As(shown(&beginning))
        } else {
            Shown::Beginning(shown(&beginning))
        }
    }

    /// What stands before a name, with the server's in the place of the namespace.
    fn prefix(&self, server: &str) -> String {
        let server: String = server.chars().take(self.most_before).collect();
        let folded = NAMESPACE.replace('-', "_");
        self.before
            .replace(NAMESPACE, &server)
            .replace(&folded, &server.replace('-', "_"))
    }

    fn kept(&self, listed: &str) -> String {
        let mut kept = String::with_capacity(listed.len());
        for character in listed.chars() {
            let stays = character.is_ascii_alphanumeric()
                || self.keeps.is_none_or(|it| it.contains(character));
            let character = if stays { character } else { self.instead };
            if !(self.joins && character == '_' && kept.ends_with('_')) {
                kept.push(character);
            }
        }
        kept
    }
}
