//! Paths of files as `skill://` URIs, each written in one way only.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What comes before the path; also the URI of the folder that everything lies in.
pub(super) const ROOT: &str = "skill://";

/// All but the characters that mean the same with and without an escape (RFC 3986, 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns the URI of what has this name in the folder.
pub(super) fn child(folder: &str, name: &str) -> String {
    let slash = if folder == ROOT { "" } else { "/" };
    format!("{folder}{slash}{}", utf8_percent_encode(name, ESCAPED))
}

/// Returns the URI in the way that [`child`] writes it; `None` for what is no `skill://` path.
pub(super) fn canonical(uri: &str) -> Option<String> {
    let path = uri.strip_prefix(ROOT)?;
    if path.contains(['?', '#']) {
        return None;
    }
    let mut canonical = String::from(ROOT);
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            canonical.push('/');
        }
        let name = percent_decode_str(segment).decode_utf8().ok()?;
        canonical.extend(utf8_percent_encode(&name, ESCAPED));
    }
    Some(canonical)
}
