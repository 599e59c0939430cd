//! Function → model: a tool, a resource or a prompt. Takes our attributes off on the way.

use crate::{
    attributes::{self, is_marker, is_ours, take},
    docs,
    errors::Errors,
    model::{Item, Kind, Options, Output},
    names, params,
    source::Function,
    spelling::{self, Scope},
    uri,
};
use syn::{
    Attribute, FnArg, GenericParam, Ident, LitStr, Meta, Receiver, ReceiverKind, ReturnType,
    Safety, Signature, Token, Type, ext::IdentExt, parse_quote, punctuated::Punctuated,
};

/// Takes the markers off, and returns the first. Lints that no tool can please are off in a marked function.
pub fn marker(function: &mut Function, errors: &Errors) -> Option<(Kind, Attribute)> {
    let mut markers = take(&mut function.attrs, is_marker);
    for conditional in take(&mut function.attrs, |it| conditional_marker(it).is_some()) {
        errors.at(
            &conditional,
            "a marker has no condition: write it alone, and `#[cfg(…)]` beside it",
        );
        markers.extend(conditional_marker(&conditional));
    }
    let mut markers = markers.into_iter();
    let marker = markers.next()?;
    if let Some(second) = markers.next() {
        errors.at(
            second,
            "a function is one thing: a tool, a resource or a prompt",
        );
    }
    let kind = [Kind::Tool, Kind::Resource, Kind::Prompt]
        .into_iter()
        .find(|it| is_ours(marker.path(), it.word()))?;
    // What a model sends is taken by value, and a tool may be async whatever it does.
    function
        .attrs
        .push(parse_quote!(#[allow(clippy::needless_pass_by_value, clippy::unused_async)]));
    Some((kind, marker))
}

/// Returns the marker in a `#[cfg_attr(…)]`.
fn conditional_marker(attr: &Attribute) -> Option<Attribute> {
    let (_, attrs) = conditional(attr)?;
    attrs.into_iter().find(is_marker)
}

/// Takes `#[arg]` off a function that has no marker.
pub fn refuse_lonely(function: &mut Function, errors: &Errors) {
    for input in &mut function.signature.inputs {
        if let FnArg::Typed(it) = input {
            for arg in take(&mut it.attrs, |it| it.path().is_ident("arg")) {
                errors.at(
                    arg,
                    "`#[arg]` has no meaning here: mark the function with `#[tool]`, `#[resource]` or `#[prompt]`",
                );
                it.attrs.retain(|it| !it.path().is_ident("doc"));
            }
        }
    }
}

pub fn item(
    kind: Kind,
    marker: &Attribute,
    function: &mut Function,
    scope: &impl Fn(Vec<Ident>) -> Scope,
    errors: &Errors,
) -> Option<Item> {
    let signature = &mut function.signature;
    let lifetimes = signature.generics.lifetimes();
    let scope = scope(lifetimes.map(|it| it.lifetime.ident.clone()).collect());
    let errors_before = errors.count();
    let options = attributes::options(marker, kind, &scope, errors);
    if kind == Kind::Resource && options.uri.is_none() && errors.count() == errors_before {
        errors.at(
            marker,
            "a resource needs a URI: `#[resource(uri = \"weather://{city}\")]`",
        );
    }
    let name = name(kind, &options, &signature.ident, errors);

    let description = docs::description(&function.attrs);
    if description.is_empty() {
        let reader = match kind {
            Kind::Tool => "the model reads it",
            Kind::Resource | Kind::Prompt => "people read it",
        };
        errors.at(
            &signature.ident,
            format!(
                "`{}` has no description: write a `///` comment above it; {reader} to decide when to use it",
                signature.ident.unraw()
            ),
        );
    }
    check_signature(kind, signature, errors);
    let takes_self = signature.receiver().is_some();
    let errors_before = errors.count();
    let mut parsed = Vec::new();
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(it) => check_receiver(kind, it, errors),
            FnArg::Typed(it) => parsed.extend(params::param(kind, it, &scope, errors)),
        }
    }
    // A parameter that isn't understood would be missed here.
    if errors.count() == errors_before {
        params::check(&parsed, errors);
        if let Some(uri) = &options.uri {
            uri::check(uri, &parsed, errors);
        }
    }
    let output = output(kind, &signature.output, &scope, errors);
    Some(Item {
        kind,
        marker: marker.path().segments.last()?.ident.clone(),
        function: signature.ident.clone(),
        name,
        description,
        cfg: cfg(&function.attrs),
        is_async: signature.asyncness.is_some(),
        takes_self,
        params: parsed,
        output,
        options,
    })
}

fn name(kind: Kind, options: &Options, function: &Ident, errors: &Errors) -> LitStr {
    let name = options.name.clone().unwrap_or_else(|| {
        let function = function.unraw();
        LitStr::new(&function.to_string(), function.span())
    });
    match kind {
        Kind::Tool | Kind::Prompt => {
            names::check_function(kind, &name, options.name.is_some(), errors);
        }
        Kind::Resource if name.value().trim().is_empty() => errors.at(&name, names::EMPTY),
        Kind::Resource => {}
    }
    name
}

fn check_signature(kind: Kind, signature: &Signature, errors: &Errors) {
    let word = kind.word();
    if let Safety::Unsafe(word_unsafe) = &signature.safety {
        errors.at(
            word_unsafe,
            format!(
                "a {word} can't be `unsafe`: the model doesn't know what it would have to uphold"
            ),
        );
    }
    if signature
        .generics
        .params
        .iter()
        .any(|it| !matches!(it, GenericParam::Lifetime(_)))
    {
        errors.at(
            &signature.generics,
            format!("a {word} can't be generic: the model needs one schema"),
        );
    }
    if let Some(variadic) = &signature.variadic {
        errors.at(
            variadic,
            format!("a {word} has a fixed number of arguments: the model needs one schema"),
        );
    }
}

fn check_receiver(kind: Kind, receiver: &Receiver, errors: &Errors) {
    if !matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) {
        errors.at(
            receiver,
            format!(
                "a {} takes `&self`: calls run side by side, so state that changes belongs behind a lock or in a store",
                kind.word()
            ),
        );
    }
}

fn output(kind: Kind, output: &ReturnType, scope: &Scope, errors: &Errors) -> Output {
    let ty: Type = match output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    };
    if let Some(opaque) = spelling::impl_trait(&ty) {
        errors.at(
            opaque,
            format!(
                "a {} says which type it returns; for a future, write `async fn`",
                kind.word()
            ),
        );
    }
    Output {
        everlasting: scope.everlasting(&ty),
        inferred: scope.inferred(&ty),
    }
}

/// Returns the attributes that decide whether an item is there at all.
pub fn cfg(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs.iter().filter_map(only_cfg).collect()
}

fn only_cfg(attr: &Attribute) -> Option<Attribute> {
    if attr.path().is_ident("cfg") {
        return Some(attr.clone());
    }
    let (condition, attrs) = conditional(attr)?;
    let kept = attrs.iter().filter_map(only_cfg).map(|it| it.meta);
    let kept: Vec<Meta> = kept.collect();
    (!kept.is_empty()).then(|| parse_quote!(#[cfg_attr(#condition, #(#kept),*)]))
}

/// Takes a `#[cfg_attr(…)]` apart: its condition, and the attributes that depend on it.
fn conditional(attr: &Attribute) -> Option<(Meta, Vec<Attribute>)> {
    if !attr.path().is_ident("cfg_attr") {
        return None;
    }
    let metas = attr
        .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
        .ok()?;
    let mut metas = metas.into_iter();
    let condition = metas.next()?;
    let attrs = metas.map(|meta| parse_quote!(#[#meta])).collect();
    Some((condition, attrs))
}
