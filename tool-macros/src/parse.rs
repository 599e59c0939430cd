//! Reads the item, takes our attributes off it, and gives the model.
use crate::{errors::Errors, model::*};
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{meta::ParseNestedMeta, parse::Parser, visit_mut::VisitMut, *};

pub fn server(attr: TokenStream, item: &mut syn::Item, errors: &Errors) -> Option<Server> {
    let whole = attr.clone();
    let (mut name, mut version, mut manual) = (None, None, false);
    let parser = meta::parser(|it| {
        match key(&it).as_str() {
            "name" => name = Some(it.value()?.parse()?),
            "version" => version = Some(it.value()?.parse()?),
            "manual" => manual = true,
            _ => return Err(it.error("expected `name`, `version` or `manual`")),
        }
        Ok(())
    });
    let understood = errors.ok(parser.parse2(attr)).is_some();
    if understood && (name.is_none() || version.is_none()) {
        errors.at(&whole, "a server needs a name and a version: `#[tool_server(name = \"weather\", version = \"1.0.0\")]`");
    }

    let (home, description, items): (Home, String, Vec<crate::model::Item>) = match item {
        syn::Item::Mod(module) => {
            let Some((_, content)) = &mut module.content else {
                errors.at(
                    &module,
                    "`#[tool_server]` needs to see the body: `mod weather { … }`",
                );
                return None;
            };
            let functions = content.iter_mut().filter_map(|it| match it {
                syn::Item::Fn(it) => marked(&mut it.attrs, &mut it.sig, errors),
                _ => None,
            });
            (Home::Module, docs(&module.attrs), functions.collect())
        }
        syn::Item::Impl(block) => {
            let functions = block.items.iter_mut().filter_map(|it| match it {
                ImplItem::Fn(it) => marked(&mut it.attrs, &mut it.sig, errors),
                _ => None,
            });
            let items = functions.collect();
            (Home::Type(block.self_ty.clone()), docs(&block.attrs), items)
        }
        other => {
            errors.at(
                other,
                "`#[tool_server]` goes on a `mod` (no state) or on an `impl` (state in `self`)",
            );
            return None;
        }
    };
    if items.is_empty() && errors.is_empty() {
        errors.at(
            &whole,
            "this server is empty: mark a function with `#[tool]`, `#[resource]` or `#[prompt]`",
        );
    }
    Some(Server {
        name: name?,
        version: version?,
        description,
        manual,
        home,
        items,
    })
}

fn marked(
    attrs: &mut Vec<Attribute>,
    sig: &mut Signature,
    errors: &Errors,
) -> Option<crate::model::Item> {
    let (marker, kind) = [
        ("tool", Kind::Tool),
        ("resource", Kind::Resource),
        ("prompt", Kind::Prompt),
    ]
    .into_iter()
    .find_map(|(name, kind)| Some((take(attrs, name).pop()?, kind)))?;
    let options = options(&marker, kind, errors);
    let description = docs(attrs);
    if description.is_empty() {
        errors.at(&sig.ident, format!("`{}` has no description: write a `///` comment above it; the model reads it to decide when to use it", sig.ident));
    }
    if !sig.generics.params.is_empty() {
        errors.at(
            &sig.generics,
            "a tool can't be generic: the model needs one schema",
        );
    }
    let mut takes_self = false;
    let mut params = Vec::new();
    for input in &mut sig.inputs {
        match input {
            FnArg::Receiver(it) => {
                takes_self = true;
                if !matches!(it.kind, ReceiverKind::Reference(_, _, None)) {
                    errors.at(&*it, "a tool takes `&self`: calls run side by side, so state that changes belongs behind a lock or in a store");
                }
            }
            FnArg::Typed(it) => params.extend(param(it, errors)),
        }
    }
    let output = match &sig.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    };
    Some(crate::model::Item {
        kind,
        marker: marker.path().get_ident()?.clone(),
        function: sig.ident.clone(),
        description,
        cfg: attrs
            .iter()
            .filter(|it| it.path().is_ident("cfg"))
            .cloned()
            .collect(),
        is_async: sig.asyncness.is_some(),
        takes_self,
        params,
        output,
        options,
    })
}

fn options(marker: &Attribute, kind: Kind, errors: &Errors) -> Options {
    let mut options = Options::default();
    let Meta::List(list) = &marker.meta else {
        if kind == Kind::Resource {
            errors.at(
                marker,
                "a resource needs a URI: `#[resource(uri = \"weather://{city}\")]`",
            );
        }
        return options;
    };
    errors.ok(list.parse_nested_meta(|it| {
        match (kind, key(&it).as_str()) {
            (_, "name") => options.name = Some(it.value()?.parse()?),
            (_, "title") => options.title = Some(it.value()?.parse()?),
            (Kind::Tool, "read_only") => options.read_only = Some(flag(&it)?),
            (Kind::Tool, "destructive") => options.destructive = Some(flag(&it)?),
            (Kind::Tool, "idempotent") => options.idempotent = Some(flag(&it)?),
            (Kind::Tool, "open_world") => options.open_world = Some(flag(&it)?),
            (Kind::Resource, "uri") => options.uri = Some(it.value()?.parse()?),
            (Kind::Resource, "mime_type") => options.mime_type = Some(it.value()?.parse()?),
            (Kind::Tool, _) => return Err(it.error("expected `name`, `title`, `read_only`, `destructive`, `idempotent` or `open_world`")),
            (Kind::Resource, _) => return Err(it.error("expected `uri`, `mime_type`, `name` or `title`")),
            (Kind::Prompt, _) => return Err(it.error("expected `name` or `title`")),
        }
        Ok(())
    }));
    options
}

fn param(it: &mut PatType, errors: &Errors) -> Option<Param> {
    let description = docs(&it.attrs);
    take(&mut it.attrs, "doc");
    let arg = take(&mut it.attrs, "arg");
    if let Type::Reference(reference) = &*it.ty {
        if matches!(&*reference.elem, Type::Path(it) if it.path.is_ident("str")) {
            errors.at(&it.ty, "what the model sends is owned: write `String`");
            return None;
        }
        if let Some(arg) = arg.first() {
            errors.at(arg, "`#[arg]` is for what the model sends; a parameter taken by reference is lent by the runtime");
        }
        return Some(Param::Lent((*reference.elem).clone()));
    }
    let Pat::Ident(PatIdent { ident, .. }) = &*it.pat else {
        errors.at(&it.pat, "an argument needs a plain name: the model sees it");
        return None;
    };
    let mut rules = Rules::default();
    for attr in &arg {
        errors.ok(attr.parse_nested_meta(|it| {
            match key(&it).as_str() {
                "name" => rules.name = Some(it.value()?.parse()?),
                "default" => rules.default = Some(it.value()?.parse()?),
                "range" => rules.range = Some(range(&it)?),
                "length" => rules.length = Some(range(&it)?),
                "pattern" => rules.pattern = Some(it.value()?.parse()?),
                _ => {
                    return Err(
                        it.error("expected `name`, `default`, `range`, `length` or `pattern`")
                    );
                }
            }
            Ok(())
        }));
    }
    Some(Param::Sent(Argument {
        ident: ident.clone(),
        ty: (*it.ty).clone(),
        description,
        rules,
    }))
}

fn key(it: &ParseNestedMeta<'_>) -> String {
    it.path
        .get_ident()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn flag(it: &ParseNestedMeta<'_>) -> Result<bool> {
    if it.input.peek(Token![=]) {
        Ok(it.value()?.parse::<LitBool>()?.value)
    } else {
        Ok(true)
    }
}

fn range(it: &ParseNestedMeta<'_>) -> Result<ExprRange> {
    match it.value()?.parse()? {
        Expr::Range(range) => Ok(range),
        other => Err(Error::new_spanned(
            other,
            "expected a range, like `1..=100`",
        )),
    }
}

fn take(attrs: &mut Vec<Attribute>, name: &str) -> Vec<Attribute> {
    attrs
        .extract_if(.., |it| it.path().is_ident(name))
        .collect()
}

fn docs(attrs: &[Attribute]) -> String {
    let lines: Vec<String> = attrs
        .iter()
        .filter(|it| it.path().is_ident("doc"))
        .filter_map(|it| match &it.meta.require_name_value().ok()?.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(it), ..
            }) => Some(it.value().trim().to_owned()),
            _ => None,
        })
        .collect();
    lines.join("\n").trim().to_owned()
}

/// The item without the attributes that rustc refuses on parameters.
pub fn strip(item: TokenStream) -> TokenStream {
    struct Strip;
    impl VisitMut for Strip {
        fn visit_pat_type_mut(&mut self, it: &mut PatType) {
            it.attrs
                .retain(|it| !["doc", "arg"].iter().any(|name| it.path().is_ident(name)));
        }
    }
    match syn::parse2::<syn::Item>(item.clone()) {
        Ok(mut parsed) => {
            Strip.visit_item_mut(&mut parsed);
            parsed.into_token_stream()
        }
        Err(_) => item,
    }
}
