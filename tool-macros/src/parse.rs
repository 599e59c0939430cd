//! Item → model. Takes our attributes off on the way.

use crate::{
    attributes::{self, Header, is_marker, is_ours, take},
    docs,
    errors::Errors,
    model::{Absence, Argument, Constant, Home, Item, Kind, Options, Output, Param, Server, Start},
    names,
    source::{Function, Source},
    types::{self, Scope},
};
use proc_macro2::{Span, TokenStream};
use std::collections::HashMap;
use syn::{
    Attribute, FnArg, GenericParam, Ident, ItemImpl, LitStr, Meta, Pat, PatIdent, PatType,
    Receiver, ReceiverKind, ReturnType, Safety, Signature, Token, Type, TypeReference,
    ext::IdentExt, parse_quote, punctuated::Punctuated,
};

/// Returns the server, if enough of it is known to speak of one. What is wrong with it is in the errors.
pub fn server(attr: TokenStream, source: &mut Source, errors: &Errors) -> Option<Server> {
    let whole = attr.clone();
    let Header {
        name,
        version,
        manual,
        start,
    } = attributes::header(attr, errors);
    match &name {
        Some(name) => names::check_server(name, errors),
        None if !errors.is_empty() => {}
        None => errors.at(&whole, NAME_AND_VERSION),
    }
    if name.is_some() && version.is_none() && errors.is_empty() {
        errors.at(&whole, NAME_AND_VERSION);
    }

    let home = home(&source.shell, errors);
    let scope = |lifetimes| Scope {
        self_type: match &home {
            Some(Home::Type(ty)) => Some((**ty).clone()),
            _ => None,
        },
        lifetimes,
    };
    let mut constants = Vec::new();
    let mut items = Vec::new();
    let mut is_empty = true;
    for function in source.functions() {
        let errors_before = errors.count();
        let Some((kind, marker)) = marker(function, errors) else {
            refuse_lonely(function, errors);
            continue;
        };
        is_empty = false;
        let Some(item) = item(kind, &marker, function, &scope, errors) else {
            continue;
        };
        if kind == Kind::Tool {
            let function = item.function.unraw();
            constants.push(Constant {
                name: Ident::new(&function.to_string().to_uppercase(), function.span()),
                tool: item.name.clone(),
                cfg: item.cfg.clone(),
            });
        }
        if errors.count() == errors_before {
            items.push(item);
        }
    }
    if is_empty && errors.is_empty() {
        errors.at(
            &whole,
            "this server is empty: mark a function with `#[tool]`, `#[resource]` or `#[prompt]`",
        );
    }
    refuse_duplicates(&items, errors);

    let home = home?;
    if matches!(home, Home::Module) && !constants.is_empty() {
        for taken in source.members.iter().filter_map(|it| it.declares("tools")) {
            errors.at(
                taken,
                "in a server, `tools` is the module of the tools' names; call this something else",
            );
        }
    }
    let (attrs, start) = match &source.shell {
        syn::Item::Mod(it) => (&it.attrs, start_of_module(manual, start, errors)),
        syn::Item::Impl(it) => (&it.attrs, start_of_type(manual, start, source, errors)),
        _ => return None,
    };
    let unknown = || LitStr::new("", Span::call_site());
    Some(Server {
        name: name.unwrap_or_else(unknown),
        version: version.unwrap_or_else(unknown),
        description: docs::description(attrs.iter().chain(&source.inner)),
        home,
        start,
        cfg: cfg(attrs),
        constants,
        items,
    })
}

const NAME_AND_VERSION: &str = "a server needs a name and a version: `#[tool_server(name = \"weather\", version = \"1.0.0\")]`";

fn home(shell: &syn::Item, errors: &Errors) -> Option<Home> {
    match shell {
        syn::Item::Mod(module) if module.content.is_some() => Some(Home::Module),
        syn::Item::Mod(module) => {
            errors.at(
                module,
                "`#[tool_server]` needs to see the body: `mod weather { … }`",
            );
            None
        }
        syn::Item::Impl(block) => home_type(block, errors),
        other => {
            errors.at(
                other,
                "`#[tool_server]` goes on a `mod` (no state) or on an `impl` (state in `self`)",
            );
            None
        }
    }
}

fn home_type(block: &ItemImpl, errors: &Errors) -> Option<Home> {
    let errors_before = errors.count();
    if let Some((path, _)) = &block.trait_ {
        errors.at(
            path,
            "`#[tool_server]` goes on the type's own `impl`, not on that of a trait",
        );
    }
    if !block.generics.params.is_empty() {
        errors.at(
            &block.generics,
            "a server can't be generic: there is one definition per type; write the `impl` of one type, or keep what differs in a `Box<dyn …>`",
        );
    }
    let scope = Scope {
        self_type: None,
        lifetimes: Vec::new(),
    };
    let is_fine = errors.count() == errors_before;
    is_fine.then(|| Home::Type(Box::new(scope.everlasting(&block.self_ty))))
}

fn start_of_module(manual: Option<Ident>, start: Option<Ident>, errors: &Errors) -> Start {
    for word in [manual, start].into_iter().flatten() {
        let message =
            format!("a `mod` has no state, so there is nothing to make: `{word}` is for an `impl`");
        errors.at(word, message);
    }
    Start::Stateless
}

fn start_of_type(
    manual: Option<Ident>,
    start: Option<Ident>,
    source: &Source,
    errors: &Errors,
) -> Start {
    match (manual, start) {
        (None, None) => Start::Default,
        (Some(_), None) => Start::Manual,
        (Some(_), Some(start)) => {
            errors.at(
                start,
                "a server that is `manual` is made by its host, so it can't have a `start`",
            );
            Start::Manual
        }
        (None, Some(start)) => {
            if !source.has_function(is_start) {
                errors.at(
                    &start,
                    "this needs a function of the `impl` that makes the server: `async fn start(environment: &Environment) -> Result<Self, ToolError>`",
                );
            }
            Start::Function(start)
        }
    }
}

fn is_start(function: &Function) -> bool {
    let signature = &function.signature;
    let takes_one_reference = match signature.inputs.first() {
        Some(FnArg::Typed(it)) => matches!(types::plain(&it.ty), Type::Reference(_)),
        _ => false,
    };
    signature.ident == "start"
        && signature.asyncness.is_some()
        && signature.inputs.len() == 1
        && takes_one_reference
}

/// Takes the markers off, and returns the first.
fn marker(function: &mut Function, errors: &Errors) -> Option<(Kind, Attribute)> {
    let markers = take(&mut function.attrs, is_marker);
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
    Some((kind, marker))
}

/// Takes `#[arg]` off a function that has no marker.
fn refuse_lonely(function: &mut Function, errors: &Errors) {
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

fn item(
    kind: Kind,
    marker: &Attribute,
    function: &mut Function,
    scope: &impl Fn(Vec<Ident>) -> Scope,
    errors: &Errors,
) -> Option<Item> {
    let signature = &mut function.signature;
    let lifetimes = signature.generics.lifetimes();
    let scope = scope(lifetimes.map(|it| it.lifetime.ident.clone()).collect());
    let options = attributes::options(marker, kind, &scope, errors);
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
    let mut params = Vec::new();
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(it) => check_receiver(kind, it, errors),
            FnArg::Typed(it) => params.extend(param(kind, it, &scope, errors)),
        }
    }
    check_params(&params, errors);
    if kind == Kind::Resource {
        check_uri(marker, &options, &params, errors);
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
        params,
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
        Kind::Resource if name.value().trim().is_empty() => errors.at(&name, "`name` is empty"),
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
    if let Some(opaque) = types::impl_trait(&ty) {
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

fn param(kind: Kind, it: &mut PatType, scope: &Scope, errors: &Errors) -> Option<Param> {
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
    if let Some(opaque) = types::impl_trait(&it.ty) {
        errors.at(
            opaque,
            format!(
                "a {} can't be generic: the model needs one schema, and `impl …` is many types",
                kind.word()
            ),
        );
        return None;
    }
    if let Type::Reference(reference) = types::plain(&it.ty) {
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
    if let Some(owned) = types::owned(reference) {
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
                types::spelled(&reference.elem)
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
    if let Some(reference) = types::reference(&it.ty) {
        let message = match types::owned(&reference) {
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
    if let Some(flatten) = options.flatten {
        if kind != Kind::Tool {
            errors.at(&flatten, "only a tool can `flatten`");
        }
        if let Some(other) = options.other {
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
        if types::option(&ty).is_some() {
            errors.at(&it.ty, "an argument that is flattened is always there");
        }
        return Some(Param::Whole(ty));
    }
    let name = match options.name {
        Some(name) => {
            names::check_argument(&name, errors);
            name
        }
        None => LitStr::new(&ident.unraw().to_string(), ident.span()),
    };
    let (absence, sent, ruled) = match types::option(&ty) {
        None => (Absence::Refused, &ty, &ty),
        Some(inner) => match types::option(inner) {
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
    Some(Param::Sent(Argument {
        name,
        sent: sent.clone(),
        ruled: ruled.clone(),
        absence,
        description: docs::description(docs),
        default: options.default.map(|it| scope.expression(it)),
        rules: options.rules,
        is_text: options.is_text,
        ty,
    }))
}

/// Checks what can only be seen from all parameters.
fn check_params(params: &[Param], errors: &Errors) {
    let mut names: Vec<String> = Vec::new();
    let sent: Vec<&Param> = params
        .iter()
        .filter(|it| !matches!(it, Param::Lent(_)))
        .collect();
    let is_flattened = sent.iter().any(|it| matches!(it, Param::Whole(_)));
    for param in &sent {
        match param {
            Param::Sent(argument) => {
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
            }
            Param::Whole(ty)
                if sent
                    .iter()
                    .filter(|it| matches!(it, Param::Whole(_)))
                    .count()
                    > 1 =>
            {
                errors.at(
                    ty,
                    "only one argument can take everything that the model sends",
                );
            }
            Param::Whole(_) | Param::Lent(_) => {}
        }
    }
}

/// Checks that the variables of a resource's URI are its arguments.
fn check_uri(marker: &Attribute, options: &Options, params: &[Param], errors: &Errors) {
    let Some(literal) = &options.uri else {
        if errors.is_empty() {
            errors.at(
                marker,
                "a resource needs a URI: `#[resource(uri = \"weather://{city}\")]`",
            );
        }
        return;
    };
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
            Param::Sent(it) => Some(it),
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

/// Names are unique among the tools, the resources and the prompts of a server, and so are URIs.
fn refuse_duplicates(items: &[Item], errors: &Errors) {
    let mut seen: HashMap<(&str, String), &Item> = HashMap::new();
    for item in items {
        let word = item.kind.word();
        let uri = item.options.uri.as_ref();
        let keys = [(word, Some(&item.name)), ("URI", uri)];
        for (what, literal) in keys {
            let Some(literal) = literal else { continue };
            let first = *seen.entry((what, literal.value())).or_insert(item);
            // With `#[cfg]`, it may be that only one of the two is ever there.
            let may_exclude_each_other = !first.cfg.is_empty() && !item.cfg.is_empty();
            if std::ptr::eq(first, item) || may_exclude_each_other {
                continue;
            }
            let (function, line) = (&first.function, first.function.span().unwrap().line());
            let text = literal.value();
            errors.at(
                literal,
                match what {
                    "URI" => format!("`{text}` is already the URI of `{function}` in line {line}"),
                    _ => format!(
                        "`{text}` is already the name of a {word}: `{function}` in line {line}"
                    ),
                },
            );
        }
    }
}

/// Returns the attributes that decide whether an item is there at all.
fn cfg(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs.iter().filter_map(only_cfg).collect()
}

fn only_cfg(attr: &Attribute) -> Option<Attribute> {
    if attr.path().is_ident("cfg") {
        return Some(attr.clone());
    }
    if !attr.path().is_ident("cfg_attr") {
        return None;
    }
    let metas = attr
        .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
        .ok()?;
    let mut metas = metas.into_iter();
    let condition = metas.next()?;
    let kept: Vec<Meta> = metas
        .filter_map(|meta| only_cfg(&parse_quote!(#[#meta])).map(|it| it.meta))
        .collect();
    (!kept.is_empty()).then(|| parse_quote!(#[cfg_attr(#condition, #(#kept),*)]))
}
