//! Server-sent events, of which mostly the data matters.

use std::time::Duration;

/// An event is larger than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// What it is called; often nothing.
    pub(super) name: String,
    pub(super) data: Vec<u8>,
}

/// Takes a stream apart as it comes in. Ends of lines, byte order marks and letters may be split between chunks.
#[derive(Debug)]
pub(super) struct Events {
    limit: usize,
    line: Vec<u8>,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
    is_first_line: bool,
    retry: Option<Duration>,
    last_id: Option<String>,
}

impl Events {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: String::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            is_first_line: true,
            retry: None,
            last_id: None,
        }
    }

    /// Takes a chunk in and returns each event that it ends. Events without data are left out.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        let mut rest = chunk;
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|it| matches!(it, b'\n' | b'\r')) {
            self.extend_line(&rest[..end])?;
            events.extend(self.end_line());
            let is_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_return {
                self.after_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.extend_line(rest)?;
        Ok(events)
    }

    /// Returns the last event, where the server ended the stream without an empty line.
    pub(super) fn finish(&mut self) -> Option<Event> {
        self.end_line().or_else(|| self.end_event())
    }

    /// Returns how long the server wants to be left alone before the next stream.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the id of the last event that had one.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Reads another stream, which goes on after the last event of the one before.
    pub(super) fn begin_again(&mut self) {
        *self = Self {
            retry: self.retry,
            last_id: self.last_id.take(),
            ..Self::new(self.limit)
        };
    }

    fn extend_line(&mut self, part: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + self.data.len() + part.len() > self.limit {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        if text.is_empty() {
            return self.end_event();
        }
        let colon = text.iter().position(|it| *it == b':');
        let (field, value) = match colon {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                let id = String::from_utf8_lossy(value).into_owned();
                self.last_id = Some(id).filter(|it| !it.is_empty());
            }
            b"retry" => {
                let millis = std::str::from_utf8(value).ok();
                let millis = millis.and_then(|it| it.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<Event> {
        self.has_data = false;
        let (name, data) = (
            std::mem::take(&mut self.name),
            std::mem::take(&mut self.data),
        );
        let is_empty = data.trim_ascii().is_empty();
        (!is_empty).then_some(Event { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(stream: &[u8], size: usize) -> Vec<String> {
        let mut events = Events::new(1000);
        let mut data = Vec::new();
        for chunk in stream.chunks(size) {
            data.extend(events.feed(chunk).expect("it is small"));
        }
        data.extend(events.finish());
        let texts = data.into_iter().map(|it| String::from_utf8(it.data));
        texts.map(|it| it.expect("it is UTF-8")).collect()
    }

    fn check(stream: &str, expect: &[&str]) {
        for size in [1, 2, 3, 5, 1000] {
            assert_eq!(read(stream.as_bytes(), size), expect, "by {size}");
        }
    }

    #[test]
    fn htt_117_an_event_needs_no_name() {
        check("data: {\"a\":1}\n\n", &["{\"a\":1}"]);
        let stream = "event: message\ndata:{}\n\nevent: other\ndata: x\n\ndata: y\n\n";
        check(stream, &["{}", "x", "y"]);
        let events = Events::new(1000).feed(stream.as_bytes());
        let events = events.expect("it is small").into_iter();
        let names: Vec<String> = events.map(|it| it.name).collect();
        assert_eq!(names, ["message", "other", ""]);
    }

    #[test]
    fn htt_118_an_event_without_data_is_left_out() {
        check("id: 1\nretry: 3000\ndata:\n\n", &[]);
        check("id: 1\ndata\n\ndata: a\n\n", &["a"]);
        let mut events = Events::new(100);
        events
            .feed(b"retry: 3000\nretry: x\n")
            .expect("it is small");
        assert_eq!(events.retry(), Some(Duration::from_secs(3)));
        events.feed(b"id: 7\n\ndata: half").expect("it is small");
        events.begin_again();
        assert_eq!(events.last_id(), Some("7"));
        assert_eq!(events.retry(), Some(Duration::from_secs(3)));
        assert_eq!(events.finish(), None);
    }

    #[test]
    fn htt_120_a_burst_of_events_is_read() {
        let burst = "data: hello\n\n".repeat(100_000);
        assert_eq!(read(burst.as_bytes(), 4096).len(), 100_000);
    }

    #[test]
    fn htt_121_letters_may_be_split() {
        check("data: \"é\"\n\n", &["\"é\""]);
    }

    #[test]
    fn any_end_of_line_will_do() {
        check(
            "data: a\r\ndata: b\r\n\r\ndata: c\r\rdata: d\n\r\n",
            &["a\nb", "c", "d"],
        );
        check("\u{feff}data: a\r\n\r\n: comment\r\ndata:  b", &["a", " b"]);
    }

    #[test]
    fn an_event_has_a_limit() {
        let mut events = Events::new(10);
        assert_eq!(events.feed(b"data: 12345"), Err(TooLarge));
        let mut events = Events::new(12);
        let endless = (0..100).map(|_| events.feed(b"data: 1\n"));
        assert!(endless.into_iter().any(|it| it.is_err()));
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(
            stream in "(data|data:|data: |:|id: |[a-z\u{e9}\u{feff}]|\r|\n|\r\n){0,40}",
            size in 1..9usize,
        ) {
            prop_assert_eq!(read(stream.as_bytes(), size), read(stream.as_bytes(), 1000));
        }
    }
}
