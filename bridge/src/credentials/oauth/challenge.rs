//! What a server says in `WWW-Authenticate`: where to sign in, and for what.

/// How many scopes are believed.
const MOST_SCOPES: usize = 100;

/// The challenge `Bearer` of a header, as far as it concerns us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    pub(super) resource_metadata: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Reads a header, which may hold challenges of several schemes.
    pub(super) fn read(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut is_bearer = false;
        for part in parts(header) {
            let (before, value) = part.split_once('=').unwrap_or((part, ""));
            let mut words = before.split_whitespace();
            let (first, second) = (words.next().unwrap_or_default(), words.next());
            let is_scheme = second.is_some() || !part.contains('=');
            if is_scheme {
                is_bearer = first.eq_ignore_ascii_case("bearer");
            }
            if !is_bearer {
                continue;
            }
            let name = second.unwrap_or(first).to_ascii_lowercase();
            let place = match name.as_str() {
                "resource_metadata" => &mut challenge.resource_metadata,
                "scope" => &mut challenge.scope,
                "error" => &mut challenge.error,
                _ => continue,
            };
            let value = unquoted(value.trim());
            if place.is_none() && !value.is_empty() {
                *place = Some(value);
            }
        }
        challenge
    }
}

/// Splits a text at spaces into scopes, each once, in their order.
pub(super) fn scopes<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in texts.into_iter().flat_map(str::split_whitespace) {
        let is_sound = scope
            .bytes()
            .all(|it| it.is_ascii_graphic() && it != b'"' && it != b'\\');
        if is_sound && scopes.len() < MOST_SCOPES && !scopes.iter().any(|it| it == scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

/// Splits at commas that are in no quotes.
fn parts(header: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, letter) in header.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                parts.push(header[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(header[start..].trim());
    parts
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else {
        return value.to_owned();
    };
    let mut text = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => text.extend(letters.next()),
            _ => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bearer_challenge_is_read() {
        let header = r#"Basic realm="a, b", Bearer error="invalid_token", resource_metadata="https://a.example/x?a=b", scope="a \"b", Digest scope="c""#;
        let challenge = Challenge::read(header);
        assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
        let url = challenge.resource_metadata.as_deref();
        assert_eq!(url, Some("https://a.example/x?a=b"));
        assert_eq!(challenge.scope.as_deref(), Some("a \"b"));
        assert_eq!(Challenge::read("Bearer"), Challenge::default());
        assert_eq!(
            Challenge::read("bearer scope=x").scope.as_deref(),
            Some("x")
        );
    }

    #[test]
    fn scopes_are_there_once() {
        assert_eq!(scopes(["a b", "b  c a", "\u{7}"]), ["a", "b", "c"]);
    }
}
