//! Lines of a bounded length, and whom a line was for that is too long.

use super::message;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// How much of a member is kept while looking for the id; more than any id of ours needs.
const LONGEST_MEMBER: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// The line is longer than the limit, and gone. It was the answer to this request, if it was any.
    TooLong(Option<u64>),
}

/// Reads the next line, without its end. At the end of the input, what is left is a line too.
pub(super) async fn next(
    input: &mut (impl AsyncBufRead + Unpin),
    limit: usize,
) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut skim: Option<Skim> = None;
    loop {
        let chunk = input.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(match skim {
                Some(skim) => Some(Line::TooLong(skim.id())),
                None if line.is_empty() => None,
                None => Some(Line::Whole(line)),
            });
        }
        let end = chunk.iter().position(|it| *it == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        if skim.is_none() && line.len() + part.len() > limit {
            let mut begun = Skim::default();
            begun.feed(&line);
            line = Vec::new();
            skim = Some(begun);
        }
        match &mut skim {
            Some(skim) => skim.feed(part),
            None => line.extend_from_slice(part),
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(
                skim.map_or(Line::Whole(line), |it| Line::TooLong(it.id())),
            ));
        }
    }
}

/// Looks for the id of a message without keeping the message.
#[derive(Default)]
struct Skim {
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// The beginning of the member that is being read.
    member: Vec<u8>,
    id: Option<u64>,
    has_method: bool,
}

impl Skim {
    /// The id of a request would be the server's own.
    fn id(self) -> Option<u64> {
        self.id.filter(|_| !self.has_method)
    }

    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.in_text => {
                self.keep(byte);
                self.in_text = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
            }
            b'"' => {
                self.keep(byte);
                self.in_text = true;
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_member(),
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.member.len() < LONGEST_MEMBER {
            self.member.push(byte);
        }
    }

    fn end_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        let member = String::from_utf8_lossy(&self.member);
        if let Some((name, value)) = member.split_once(':') {
            match name.trim() {
                r#""id""# => self.id = message::number(value),
                r#""method""# => self.has_method = true,
                _ => {}
            }
        }
        self.member.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    async fn check(text: &str, limit: usize, expect: &[Line]) {
        for capacity in [1, 7, 8192] {
            let mut input = BufReader::with_capacity(capacity, text.as_bytes());
            let mut lines = Vec::new();
            while let Some(line) = next(&mut input, limit).await.expect("it can be read") {
                lines.push(line);
            }
            assert_eq!(lines, expect, "by {capacity}");
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_are_whole() {
        check(
            "a\nbc\r\n\nd",
            10,
            &[whole("a"), whole("bc\r"), whole(""), whole("d")],
        )
        .await;
        check(
            "123\n1234\n12",
            3,
            &[whole("123"), Line::TooLong(None), whole("12")],
        )
        .await;
    }

    #[tokio::test]
    async fn the_id_of_what_is_too_long_is_found() {
        for (text, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"id":8,"a":[{"id":9}]}}"#,
                Some(7),
            ),
            (
                r#"{"result":{"s":"\",\"id\":8,}{\\"},"jsonrpc":"2.0", "id" : "7" }"#,
                Some(7),
            ),
            (
                r#"{"id":7,"method":"sampling/createMessage","params":{}}"#,
                None,
            ),
            (r#"{"result":{"id":8}}"#, None),
            ("]]]]}}}},,,,\"", None),
        ] {
            check(&format!("{text}\nx"), 5, &[Line::TooLong(id), whole("x")]).await;
        }
    }
}
