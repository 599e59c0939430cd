//! Texts with `{variables}` in them.

/// A text, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// What stands there.
    Text(String),
    /// What stands there is the value of this variable.
    Variable(String),
}

impl Template {
    /// Takes a text apart. Braces around anything but a name are braces.
    pub(super) fn read(text: &str) -> Self {
        let mut pieces = Vec::new();
        let (mut plain, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            plain.push_str(before);
            rest = after;
            if let Some((name, after)) = after.split_once('}').filter(|it| is_name(it.0)) {
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(Piece::Variable(name.to_owned()));
                rest = after;
            } else {
                plain.push('{');
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Self(pieces)
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// Returns the names of the variables, as often as they stand there.
    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|it| match it {
            Piece::Variable(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }
}

fn is_name(name: &str) -> bool {
    let is_of_name = |it: u8| it.is_ascii_alphanumeric() || b"_-.".contains(&it);
    !name.is_empty() && name.bytes().all(is_of_name)
}
