//! The URI of a resource: its variables are the arguments.

use crate::{
    errors::Errors,
    model::{Argument, Param},
};
use syn::LitStr;

/// Checks that the variables of a resource's URI are its arguments.
pub fn check(literal: &LitStr, params: &[Param], errors: &Errors) {
    let uri = literal.value();
    let has_scheme = uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|it: char| it.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
    });
    if !has_scheme {
        errors.at(literal, "a URI begins with a scheme, like `notes://…`");
    }
    let Some(variables) = variables(&uri, literal, errors) else {
        return;
    };
    for (index, variable) in variables.iter().enumerate() {
        if variables[..index].contains(variable) {
            errors.at(
                literal,
                format!("the URI has the variable `{{{variable}}}` twice"),
            );
        }
    }
    let arguments: Vec<&Argument> = params
        .iter()
        .filter_map(|it| match it {
            Param::Sent(it) => Some(&**it),
            Param::Whole(_) | Param::Lent(_) => None,
        })
        .collect();
    for variable in &variables {
        if !arguments.iter().any(|it| it.name.value() == **variable) {
            errors.at(
                literal,
                format!("the URI has the variable `{{{variable}}}`, but the function has no argument of that name"),
            );
        }
    }
    for argument in arguments {
        let name = argument.name.value();
        if !variables.contains(&&*name) {
            errors.at(
                &argument.name,
                format!(
                    "the URI has no variable `{{{name}}}`, so this argument would never be sent"
                ),
            );
        }
    }
}

/// Returns the names in `{…}`.
fn variables<'a>(uri: &'a str, literal: &LitStr, errors: &Errors) -> Option<Vec<&'a str>> {
    let mut variables = Vec::new();
    let mut rest = uri;
    while let Some(start) = rest.find(['{', '}']) {
        let Some(end) = rest[start..].find('}').filter(|it| *it > 0) else {
            errors.at(literal, "the braces of this URI don't match");
            return None;
        };
        let variable = &rest[start + 1..start + end];
        let is_plain = !variable.is_empty()
            && variable
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || it == '_');
        if !is_plain {
            errors.at(
                literal,
                format!("`{{{variable}}}` is no variable: write a name, like `{{city}}`"),
            );
            return None;
        }
        variables.push(variable);
        rest = &rest[start + end + 1..];
    }
    Some(variables)
}
