//! What whoever installs a server may or must say for it.

use super::{record::Input, rules::has_odd, template::Template, text::line, way::Slot};
use crate::secret::Secret;
use std::collections::BTreeMap;

/// What was said, by the names of the inputs. A repeated one has several values.
pub type Values = BTreeMap<String, Vec<Secret>>;

/// An input.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What `--set` calls it.
    pub key: String,
    /// What it is.
    pub description: String,
    /// Whether nothing runs without.
    pub is_required: bool,
    /// Whether it is never shown.
    pub is_secret: bool,
    /// Whether it may have several values.
    pub is_repeated: bool,
    /// `string`, `number`, `boolean` or `filepath`.
    pub format: String,
    /// What it is where nothing is said.
    pub default: Option<String>,
    /// An example; may be empty.
    pub placeholder: String,
    /// What it may be, where not everything.
    pub choices: Vec<String>,
}

/// Collects inputs. Those of one name are one.
#[derive(Debug, Default)]
pub(super) struct Inputs(Vec<Asked>);

impl Inputs {
    /// Returns where the value of an input comes from, and notes what has to be asked for it.
    pub(super) fn slot(&mut self, key: &str, input: &Input) -> Result<Slot, String> {
        self.repeated(key, input, false)
    }

    pub(super) fn repeated(
        &mut self,
        key: &str,
        input: &Input,
        is_repeated: bool,
    ) -> Result<Slot, String> {
        if let Some(value) = &input.value {
            if has_odd(value) {
                return Err(format!(
                    "what it gives for `{}` has control characters",
                    line(key, 60)
                ));
            }
            let template = Template::read(value);
            self.variables(&template, &input.variables, input, is_repeated)?;
            return Ok(Slot::Fixed(template));
        }
        self.ask(key, input, &Input::default(), is_repeated)?;
        Ok(Slot::Asked(key.to_owned()))
    }

    /// Notes the variables of a text. What is secret or required as a whole is so in its parts.
    pub(super) fn variables(
        &mut self,
        template: &Template,
        variables: &BTreeMap<String, Input>,
        whole: &Input,
        is_repeated: bool,
    ) -> Result<(), String> {
        for name in template.variables() {
            let input = variables.get(name).ok_or_else(|| {
                format!("it has `{{{name}}}` in it, and doesn't say what that is")
            })?;
            // A variable may be fixed as well, but not made of others.
            let fixed = Input {
                default: input.value.clone().or_else(|| input.default.clone()),
                ..input.clone()
            };
            self.ask(name, &fixed, whole, is_repeated)?;
        }
        Ok(())
    }

    fn ask(
        &mut self,
        key: &str,
        input: &Input,
        whole: &Input,
        is_repeated: bool,
    ) -> Result<(), String> {
        if key.is_empty() || key.len() > 200 || key.contains('=') || has_odd(key) {
            return Err(format!("`{}` is no name of an input", line(key, 60)));
        }
        let default = input.default.clone().filter(|it| !it.is_empty());
        if default.as_deref().is_some_and(has_odd) || input.choices.iter().any(|it| has_odd(it)) {
            return Err(format!("what it offers for `{key}` has control characters"));
        }
        let description = if input.description.is_empty() {
            whole.description.clone()
        } else {
            input.description.clone()
        };
        let asked = Asked {
            key: key.to_owned(),
            description,
            is_required: input.is_required || whole.is_required,
            is_secret: input.is_secret || whole.is_secret,
            is_repeated,
            format: input.format.clone(),
            default,
            placeholder: input.placeholder.clone(),
            choices: input.choices.clone(),
        };
        match self.0.iter_mut().find(|it| it.key == key) {
            Some(known) => {
                known.is_required |= asked.is_required;
                known.is_secret |= asked.is_secret;
            }
            None => self.0.push(asked),
        }
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn asked(self) -> Vec<Asked> {
        self.0
    }
}
