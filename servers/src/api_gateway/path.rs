//! Paths that a model writes: what they are joined to they can't leave.

use percent_encoding::percent_decode_str;
use reqwest::Url;

/// Joins a path to a base URL, or says why it can't be. What comes out lies below the base.
pub(super) fn below(base: &Url, path: &str) -> Result<Url, &'static str> {
    let Some(relative) = path.strip_prefix('/') else {
        return Err("it must begin with `/`");
    };
    if path.contains(['?', '#']) {
        return Err("it can't hold `?` or `#`; send the query as `query`");
    }

    let mut url = base.clone();
    let mut steps: Vec<&str> = relative.split('/').collect();
    let ends_in_slash = steps.pop_if(|it| it.is_empty()).is_some();
    {
        let mut segments = url
            .path_segments_mut()
            .map_err(|()| "the service has no paths")?;
        segments.pop_if_empty();
        for step in steps {
            segments.push(&plain(step)?);
        }
        if ends_in_slash {
            segments.push("");
        }
    }

    // The rules above make this impossible; it is the promise itself, and cheap.
    let root = base.path().trim_end_matches('/');
    let stayed = url.origin() == base.origin()
        && url
            .path()
            .strip_prefix(root)
            .is_some_and(|rest| rest.starts_with('/'));
    if stayed {
        Ok(url)
    } else {
        Err("it leads out of the service")
    }
}

/// Decodes one step of a path, if it is one step by every reading.
fn plain(step: &str) -> Result<String, &'static str> {
    let decoded = decode(step)?;
    let mut reading = step.to_owned();
    // Some services decode twice, so every layer is looked at.
    loop {
        match reading.as_str() {
            "" => return Err("it can't hold `//`"),
            "." | ".." => return Err("it can't hold `.` or `..` as a step, however encoded"),
            it if it.contains(['/', '\\']) => {
                return Err("it can't hold `\\` or an encoded `/`");
            }
            it if it.contains(char::is_control) => {
                return Err("it can't hold control characters");
            }
            _ => {}
        }
        let next = decode(&reading).unwrap_or_else(|_| reading.clone());
        if next == reading {
            return Ok(decoded);
        }
        reading = next;
    }
}

fn decode(text: &str) -> Result<String, &'static str> {
    percent_decode_str(text)
        .decode_utf8()
        .map(Into::into)
        .map_err(|_| "what is encoded in it must be UTF-8")
}
