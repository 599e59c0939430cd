//! Parameter → model: by value it is sent by the model, by reference it is lent by the runtime.

use crate::{
    attributes::{self, ArgumentOptions, take},
    docs,
    errors::Errors,
    model::{Absence, Argument, Kind, Param},
    names,
    spelling::{self, Scope},
};
use syn::{Attribute, Ident, LitStr, Pat, PatIdent, PatType, Type, TypeReference, ext::IdentExt};

pub fn param(kind: Kind, it: &mut PatType, scope: &Scope, errors: &Errors) -> Option<Param> {
    let docs = take(&mut it.attrs, |it| it.path().is_ident("doc"));
    let args = take(&mut it.attrs, |it| it.path().is_ident("arg"));
    for conditional in &it.attrs {
        if ["cfg", "cfg_attr"]
            .iter()
            .any(|name| conditional.path().is_ident(name))
        {
            errors.at(
                conditional,
                format!(
                    "a parameter is always there: put the `#[cfg]` on the {}",
                    kind.word()
                ),
            );
        }
    }
    if let Some(opaque) = spelling::impl_trait(&it.ty) {
        errors.at(
            opaque,
            format!(
                "a {} can't be generic: the model needs one schema, and `impl …` is many types",
                kind.word()
            ),
        );
        return None;
    }
    if let Type::Reference(reference) = spelling::plain(&it.ty) {
        return lent(reference, &args, scope, errors);
    }
    sent(kind, it, &docs, &args, scope, errors)
}

fn lent(
    reference: &TypeReference,
    args: &[Attribute],
    scope: &Scope,
    errors: &Errors,
) -> Option<Param> {
    if let Some(owned) = spelling::owned(reference) {
        errors.at(
            reference,
            format!("what the model sends is owned: write `{owned}`"),
        );
        return None;
    }
    if let Some(mutability) = &reference.mutability {
        errors.at(
            mutability,
            format!(
                "what the runtime lends is shared with other calls: write `&{}`",
                spelling::spelled(&reference.elem)
            ),
        );
    }
    for arg in args {
        errors.at(
            arg,
            "`#[arg]` is for what the model sends; a parameter taken by reference is lent by the runtime",
        );
    }
    Some(Param::Lent(scope.everlasting(&reference.elem)))
}

fn sent(
    kind: Kind,
    it: &PatType,
    docs: &[Attribute],
    args: &[Attribute],
    scope: &Scope,
    errors: &Errors,
) -> Option<Param> {
    if let Some(reference) = spelling::reference(&it.ty) {
        let message = match spelling::owned(&reference) {
            Some(owned) => format!("what the model sends is owned: write `{owned}`"),
            None => "what the model sends is owned, and what the runtime lends is `&…` as a whole"
                .to_owned(),
        };
        errors.at(reference, message);
        return None;
    }
    let ident = match &*it.pat {
        Pat::Ident(PatIdent {
            by_ref: None,
            subpat: None,
            ident,
            ..
        }) => ident,
        other => {
            errors.at(other, "an argument needs a plain name: the model sees it");
            return None;
        }
    };
    let options = attributes::argument(args, scope, errors);
    let ty = scope.everlasting(&it.ty);
    if let Some(flatten) = &options.flatten {
        return Some(whole(kind, flatten, &options, it, docs, ty, errors));
    }
    let name = match options.name {
        Some(name) => {
            names::check_argument(&name, errors);
            name
        }
        None => LitStr::new(&ident.unraw().to_string(), ident.span()),
    };
    let (absence, sent, ruled) = match spelling::option(&ty) {
        None => (Absence::Refused, &ty, &ty),
        Some(inner) => match spelling::option(inner) {
            None => (Absence::None, inner, inner),
            Some(innermost) => (Absence::OuterNone, inner, innermost),
        },
    };
    if kind == Kind::Resource {
        if absence != Absence::Refused {
            errors.at(
                &it.ty,
                "a URI always has its variables: take it without `Option`",
            );
        }
        if let Some(default) = &options.default {
            errors.at(
                default,
                "a URI always has its variables, so a default is never used",
            );
        }
    }
    let argument = Argument {
        name,
        sent: sent.clone(),
        ruled: ruled.clone(),
        absence,
        description: docs::description(docs),
        default: options.default.map(|it| scope.expression(it)),
        rules: options.rules,
        is_text: options.is_text,
        ty,
    };
    if let Some(header) = argument.header() {
        names::check_header(header, errors);
        if kind != Kind::Tool {
            errors.at(header, "only an argument of a tool is repeated in a header");
        }
    }
    Some(Param::Sent(Box::new(argument)))
}

fn whole(
    kind: Kind,
    flatten: &Ident,
    options: &ArgumentOptions,
    it: &PatType,
    docs: &[Attribute],
    ty: Type,
    errors: &Errors,
) -> Param {
    if kind != Kind::Tool {
        errors.at(flatten, "only a tool can `flatten`");
    }
    if let Some(other) = &options.other {
        errors.at(
            other,
            "an argument that is flattened has no rules of its own: they belong to the fields of its type",
        );
    }
    if let Some(docs) = docs.first() {
        errors.at(
            docs,
            "an argument that is flattened has no description of its own: describe the fields of its type",
        );
    }
    if spelling::option(&ty).is_some() {
        errors.at(&it.ty, "an argument that is flattened is always there");
    }
    Param::Whole(ty)
}

/// Checks what can only be seen from all parameters.
pub fn check(params: &[Param], errors: &Errors) {
    let mut flattened = params.iter().filter_map(|it| match it {
        Param::Whole(ty) => Some(ty),
        Param::Sent(_) | Param::Lent(_) => None,
    });
    let is_flattened = flattened.next().is_some();
    for second in flattened {
        errors.at(
            second,
            "only one argument can take everything that the model sends",
        );
    }
    let mut names: Vec<String> = Vec::new();
    let mut headers: Vec<String> = Vec::new();
    for param in params {
        let Param::Sent(argument) = param else {
            continue;
        };
        let name = argument.name.value();
        if is_flattened {
            errors.at(
                &argument.name,
                "with `flatten`, one argument takes everything that the model sends; make this one a field of its type",
            );
        } else if names.contains(&name) {
            errors.at(
                &argument.name,
                format!("another argument is already sent as `{name}`"),
            );
        }
        names.push(name);
        if let Some(header) = argument.header() {
            let name = header.value().to_ascii_lowercase();
            if headers.contains(&name) {
                errors.at(
                    header,
                    format!(
                        "another argument is already repeated in the header `Mcp-Param-{}`",
                        header.value()
                    ),
                );
            }
            headers.push(name);
        }
    }
}
