//! Item → model: the server, and what can only be seen from all of its functions.

use crate::{
    attributes::{self, Header},
    docs,
    errors::Errors,
    function,
    model::{Constant, Home, Item, Kind, Server, Start},
    names,
    source::{Function, Source},
    spelling::{self, Scope},
};
use proc_macro2::{Span, TokenStream};
use std::collections::HashMap;
use syn::{FnArg, Ident, ItemImpl, LitStr, Type, ext::IdentExt};

/// Returns the server, if enough of it is known to speak of one. What is wrong with it is in the errors.
pub fn server(attr: TokenStream, source: &mut Source, errors: &Errors) -> Option<Server> {
    let whole = attr.clone();
    let is_body_read = errors.is_empty();
    let errors_before = errors.count();
    let Header {
        name,
        version,
        manual,
        start,
    } = attributes::header(attr, errors);
    // A word that isn't understood may be the one that is missing.
    if errors.count() == errors_before && (name.is_none() || version.is_none()) {
        errors.at(&whole, NAME_AND_VERSION);
    }
    if let Some(name) = &name {
        names::check_server(name, errors);
    }

    let home = home(&source.shell, errors);
    let scope = |lifetimes| Scope {
        self_type: match &home {
            Some(Home::Type(ty)) => Some((**ty).clone()),
            _ => None,
        },
        lifetimes,
    };
    let errors_before_items = errors.count();
    let mut constants = Vec::new();
    let mut items = Vec::new();
    let mut is_empty = true;
    for function in source.functions() {
        let errors_before = errors.count();
        let Some((kind, marker)) = function::marker(function, errors) else {
            function::refuse_lonely(function, errors);
            continue;
        };
        is_empty = false;
        let Some(item) = function::item(kind, &marker, function, &scope, errors) else {
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
    // What isn't understood may be what was to be marked.
    let is_understood = is_body_read && errors.count() == errors_before_items;
    if is_empty && is_understood && home.is_some() {
        errors.at(
            &whole,
            "this server is empty: mark a function with `#[tool]`, `#[resource]` or `#[prompt]`",
        );
    }
    refuse_duplicates(&items, errors);

    let home = home?;
    if matches!(home, Home::Module) && !constants.is_empty() {
        let taken = source.members.iter().find_map(|it| it.declares("tools"));
        if let Some(taken) = taken {
            constants.clear();
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
        cfg: function::cfg(attrs),
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
            let function = source.function(is_start);
            if function.is_none() {
                errors.at(
                    &start,
                    "this needs a function of the `impl` that makes the server: `fn start(environment: &Environment) -> Result<Self, ToolError>`, which may be `async`",
                );
            }
            Start::Function {
                word: start,
                is_async: function.is_some_and(|it| it.signature.asyncness.is_some()),
            }
        }
    }
}

fn is_start(function: &Function) -> bool {
    let signature = &function.signature;
    let takes_one_reference = match signature.inputs.first() {
        Some(FnArg::Typed(it)) => matches!(spelling::plain(&it.ty), Type::Reference(_)),
        _ => false,
    };
    signature.ident == "start" && signature.inputs.len() == 1 && takes_one_reference
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
