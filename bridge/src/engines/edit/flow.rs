//! Entries of a list or an object in brackets, with commas between them.

use super::{
    Splice,
    text::{break_before, is_blank, line_end, line_start, newline, starts_line},
    tree::Node,
};
use std::ops::Range;

/// A list or an object in brackets.
pub(super) struct Flow<'t> {
    pub(super) text: &'t str,
    /// From bracket to bracket.
    pub(super) at: Range<usize>,
    /// In the order of the text.
    pub(super) entries: Vec<Range<usize>>,
    /// Skips a comment that begins at a byte, and returns where it ends; the language says what a comment is.
    pub(super) comment: fn(&str, usize) -> Option<usize>,
    /// What stands between an entry and the next one on the same line.
    pub(super) separator: &'static str,
}

/// How entries are arranged.
pub(super) enum Arrangement<'a> {
    /// Each has a line of its own.
    Lines {
        /// What the lines of the entries begin with.
        indentation: &'a str,
        /// What the line of the closing bracket begins with.
        closing: &'a str,
    },
    /// All are on one line, with something between them and the brackets.
    Line {
        /// A space or nothing.
        padding: &'a str,
    },
}

impl<'t> Flow<'t> {
    pub(super) fn of(
        text: &'t str,
        node: &Node,
        comment: fn(&str, usize) -> Option<usize>,
        separator: &'static str,
    ) -> Self {
        let mut entries = node.entries();
        entries.sort_by_key(|entry| entry.start);
        Self {
            text,
            at: node.at.clone(),
            entries,
            comment,
            separator,
        }
    }

    /// Adds an entry at the end. The arrangement matters where there is no other entry.
    pub(super) fn add(&self, entry: &str, arrangement: &Arrangement<'_>) -> Vec<Splice> {
        match self.entries.last() {
            Some(last) => self.add_after(last, entry),
            None => vec![self.add_first(entry, arrangement)],
        }
    }

    fn add_after(&self, last: &Range<usize>, entry: &str) -> Vec<Splice> {
        let comma = self.comma_after(last.end);
        let end = comma.map_or(last.end, |comma| comma + 1);
        if !starts_line(self.text, last.start) {
            let added = match comma {
                Some(_) => format!("{}{entry},", &self.separator[1..]),
                None => format!("{}{entry}", self.separator),
            };
            return vec![Splice::new(end..end, added)];
        }
        let indentation = &self.text[line_start(self.text, last.start)..last.start];
        let line = format!("{}{indentation}{entry}", newline(self.text));
        let at = self.end_of_line(end).unwrap_or(end);
        if comma.is_some() {
            vec![Splice::new(at..at, line + ",")]
        } else {
            vec![
                Splice::new(last.end..last.end, ","),
                Splice::new(at..at, line),
            ]
        }
    }

    fn add_first(&self, entry: &str, arrangement: &Arrangement<'_>) -> Splice {
        let inside = self.inside();
        let kept = self.text[inside.clone()].trim_end_matches([' ', '\t', '\r', '\n']);
        let rest = inside.start + kept.len()..inside.end;
        // The bracket may not end up in a line comment.
        let closes_on_own_line = !kept.is_empty() && self.text[rest.clone()].contains('\n');
        match arrangement {
            Arrangement::Lines {
                indentation,
                closing,
            } => {
                let newline = newline(self.text);
                if closes_on_own_line {
                    let line = format!("{newline}{indentation}{entry}");
                    Splice::new(rest.start..rest.start, line)
                } else {
                    let lines = format!("{newline}{indentation}{entry}{newline}{closing}");
                    Splice::new(rest, lines)
                }
            }
            Arrangement::Line { .. } if closes_on_own_line => {
                let line = format!("{}{entry}", newline(self.text));
                Splice::new(rest.start..rest.start, line)
            }
            Arrangement::Line { .. } if !kept.is_empty() => {
                Splice::new(rest.start..rest.start, format!(" {entry}"))
            }
            Arrangement::Line { padding } => {
                Splice::new(rest, format!("{padding}{entry}{padding}"))
            }
        }
    }

    /// Takes an entry out.
    pub(super) fn remove(&self, index: usize) -> Vec<Splice> {
        let entry = &self.entries[index];
        let comma = self.comma_after(entry.end);
        let end = comma.map_or(entry.end, |comma| comma + 1);
        let inside = self.inside();
        if self.entries.len() == 1
            && is_blank(&self.text[inside.start..entry.start])
            && is_blank(&self.text[self.end_with_comments(end)..inside.end])
        {
            return vec![Splice::new(inside, "")];
        }

        let mut splices = Vec::new();
        if comma.is_none()
            && let Some(before) = index.checked_sub(1)
            && let Some(comma) = self.comma_after(self.entries[before].end)
        {
            splices.push(Splice::new(comma..comma + 1, ""));
        }
        splices.push(Splice::new(self.extent(index, entry, end), ""));
        splices
    }

    /// Returns what goes with an entry whose comma ends at `end`.
    fn extent(&self, index: usize, entry: &Range<usize>, end: usize) -> Range<usize> {
        let above = match index.checked_sub(1) {
            Some(before) => {
                let before = self.entries[before].end;
                self.comma_after(before).map_or(before, |comma| comma + 1)
            }
            None => self.at.start + 1,
        };
        let line_break = break_before(self.text, line_start(self.text, entry.start));
        if starts_line(self.text, entry.start)
            && let Some(line_break) = line_break.filter(|line_break| *line_break >= above)
        {
            if let Some(line_end) = self.end_of_line(end) {
                return line_break..line_end;
            }
            // What follows may not end up in a comment above.
            let is_safe = !self.text[above..line_break].contains(['/', '#']);
            if is_safe && is_blank(&self.text[end..self.at.end - 1]) {
                return line_break..end;
            }
        }
        if let Some(next) = self.entries.get(index + 1)
            && is_blank(&self.text[end..next.start])
        {
            return entry.start..next.start;
        }
        let gap = &self.text[above..entry.start];
        let kept = if is_blank(gap) && index > 0 {
            above
        } else {
            above + gap.trim_end_matches([' ', '\t']).len()
        };
        kept..end
    }

    fn inside(&self) -> Range<usize> {
        self.at.start + 1..self.at.end - 1
    }

    fn comma_after(&self, at: usize) -> Option<usize> {
        let mut at = at;
        loop {
            let rest = &self.text[at..];
            at = self.text.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            match (self.comment)(self.text, at) {
                Some(end) => at = end,
                None => return self.text[at..].starts_with(',').then_some(at),
            }
        }
    }

    /// Returns where the line ends, if nothing but comments follow on it.
    fn end_of_line(&self, at: usize) -> Option<usize> {
        let comments = self.end_with_comments(at);
        let end = line_end(self.text, comments);
        (is_blank(&self.text[comments..end]) && end < self.at.end).then_some(end)
    }

    /// Returns where the last comment ends that follows on the same line.
    fn end_with_comments(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            let rest = &self.text[end..];
            let next = self.text.len() - rest.trim_start_matches([' ', '\t']).len();
            match (self.comment)(self.text, next) {
                Some(comment) if !self.text[next..comment].contains('\n') => end = comment,
                _ => return end,
            }
        }
    }
}
