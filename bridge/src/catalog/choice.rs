//! Which of the ways to have a server is taken.

use super::{
    input::Values,
    way::{Kind, Programs, Recipe, Way},
};
use thiserror::Error;

/// A way, and why it is taken.
#[derive(Clone, Debug)]
pub struct Choice<'w> {
    /// Its place among all ways.
    pub place: usize,
    /// The way.
    pub way: &'w Way,
    /// What is done.
    pub recipe: &'w Recipe,
    /// Why, in words.
    pub why: String,
}

/// Why no way can be taken.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// There is none at all.
    #[error("its record names neither a package nor an address")]
    Nothing,
    /// None can be used here.
    #[error("nothing of it can be used here:\n{}", .0.join("\n"))]
    Unusable(Vec<String>),
    /// The one that was asked for isn't there, or can't be used.
    #[error("`{wanted}` of it can't be used:\n{}", offered.join("\n"))]
    NotOffered {
        /// What was asked for.
        wanted: String,
        /// What there is.
        offered: Vec<String>,
    },
}

/// Chooses: first what runs without anything further being said, then addresses before packages of npm, `PyPI` and images;
/// HTTP+SSE comes last.
/// `wanted` is a kind, a package or an address.
pub fn choose<'w>(
    ways: &'w [Way],
    wanted: Option<&str>,
    values: &Values,
    programs: &Programs,
    needs_sign_in: bool,
) -> Result<Choice<'w>, ChoiceError> {
    let is_wanted = |it: &Way| {
        let names = [it.kind.as_str(), it.name()];
        wanted.is_none_or(|wanted| names.contains(&wanted))
    };
    let usable = ways.iter().enumerate().filter_map(|(place, way)| {
        let recipe = way.recipe.as_ref().ok()?;
        let is_here = way.is_refused(programs).is_none();
        (is_here && is_wanted(way)).then_some((place, way, recipe))
    });
    let needs_more = |way: &Way, recipe: &Recipe| {
        !recipe.missing(values).is_empty() || way.kind == Kind::Remote && needs_sign_in
    };
    let rank = |(place, way, recipe): &(usize, &Way, &Recipe)| {
        let kind = match way.kind {
            Kind::Remote => 0,
            Kind::Npm => 1,
            Kind::Pypi => 2,
            Kind::Oci | Kind::Other(_) => 3,
        };
        // What was said is meant for one that asks for it.
        (
            !recipe.knows(values),
            way.is_old,
            needs_more(way, recipe),
            kind,
            *place,
        )
    };
    let usable: Vec<_> = usable.collect();
    let Some(&(place, way, recipe)) = usable.iter().min_by_key(|it| rank(it)) else {
        return Err(none(ways, wanted, programs));
    };
    let others = usable.iter().filter(|it| it.0 != place);
    // By the kind, where that says which one is meant.
    let others = others.map(|(_, other, _)| {
        let same = usable.iter().filter(|it| it.1.kind == other.kind);
        if same.count() == 1 {
            other.kind.as_str()
        } else {
            other.name()
        }
    });
    let others: Vec<&str> = others.collect();
    let why = match (wanted, others.is_empty()) {
        (Some(_), _) => "as asked for".to_owned(),
        (None, true) => "the only one that can be used here".to_owned(),
        (None, false) => {
            let reason = if needs_more(way, recipe) {
                "addresses come before packages where each needs something"
            } else {
                "it needs nothing further"
            };
            format!("{reason}; `--package` takes another: {}", others.join(", "))
        }
    };
    Ok(Choice {
        place,
        way,
        recipe,
        why,
    })
}

fn none(ways: &[Way], wanted: Option<&str>, programs: &Programs) -> ChoiceError {
    let offered: Vec<String> = ways.iter().map(|it| it.line(programs)).collect();
    match wanted {
        _ if ways.is_empty() => ChoiceError::Nothing,
        None => ChoiceError::Unusable(offered),
        Some(wanted) => ChoiceError::NotOffered {
            wanted: super::text::line(wanted, 100),
            offered,
        },
    }
}

impl Way {
    /// The package or the address.
    fn name(&self) -> &str {
        self.shown.split(' ').next().unwrap_or_default()
    }

    /// Says on one line what it is, and why it can't be used here.
    pub fn line(&self, programs: &Programs) -> String {
        let Self { kind, shown, .. } = self;
        match self.is_refused(programs) {
            Some(reason) => format!("  {kind:<7} {shown}: not here, {reason}"),
            None => format!("  {kind:<7} {shown}"),
        }
    }
}
