//! What strangers wrote, so that a terminal may show it.

/// Puts a text on one line of at most so many characters, without what moves a cursor, colours, or shows letters in
/// another order.
pub(super) fn line(text: &str, most: usize) -> String {
    let one = plain(text).replace('\n', " ");
    cut(one.trim(), most)
}

/// Like [`line`], but its lines stay.
pub(super) fn lines(text: &str, most: usize) -> String {
    cut(plain(text).trim(), most)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn plain(text: &str) -> String {
    // Nearly all are plain already.
    if text.bytes().all(|it| (b' '..=b'~').contains(&it)) {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_sequence(&mut letters),
            '\t' => plain.push(' '),
            '\n' => plain.push('\n'),
            _ if letter.is_control() || is_invisible(letter) => {}
            _ => plain.push(letter),
        }
    }
    plain
}

/// Skips what follows an escape: `[…m` up to its last letter, `]…` up to the bell or the next escape.
fn skip_sequence(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let is_last: fn(char) -> bool = match letters.next() {
        Some('[') => |it| ('@'..='~').contains(&it),
        Some(']' | 'P' | '_' | '^') => |it| matches!(it, '\u{7}' | '\u{9c}' | '\\'),
        _ => return,
    };
    for letter in letters {
        if is_last(letter) {
            return;
        }
    }
}

/// Says whether a letter shows nothing, or turns the order of others round.
pub(super) fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}
