//! What our attributes say. A mistake in one setting doesn't hide those in others.

use crate::{
    errors::Errors,
    model::{Kind, Options, Rule},
    spelling::Scope,
};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::{
    Attribute, Error, Expr, ExprLit, ExprRange, ExprUnary, Ident, Lit, LitBool, LitStr, Meta, Path,
    RangeLimits, Result, Token, UnOp,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
};

pub const MARKERS: [&str; 3] = ["tool", "resource", "prompt"];

/// Whether a path is this attribute of ours, alone or as `tool_runtime::tool`.
pub fn is_ours(path: &Path, name: &str) -> bool {
    path.is_ident(name)
        || (path.segments.len() == 2
            && path.segments[0].ident == "tool_runtime"
            && path.segments[1].ident == name)
}

pub fn is_marker(attr: &Attribute) -> bool {
    MARKERS.iter().any(|marker| is_ours(attr.path(), marker))
}

/// Takes attributes off.
pub fn take(attrs: &mut Vec<Attribute>, is_taken: impl Fn(&Attribute) -> bool) -> Vec<Attribute> {
    attrs.extract_if(.., |it| is_taken(it)).collect()
}

/// Reads `key, key = value, key(…)`. Several attributes of one kind are one.
fn settings(
    attributes: impl IntoIterator<Item = TokenStream>,
    errors: &Errors,
    mut set: impl FnMut(&Ident, ParseStream<'_>) -> Result<()>,
) {
    let mut stated: Vec<Ident> = Vec::new();
    let mut read = |input: ParseStream<'_>| {
        while !input.is_empty() {
            let setting = input.call(Ident::parse_any).and_then(|key| {
                set(&key, input)?;
                if stated.contains(&key) && key != "example" {
                    errors.at(&key, format!("`{key}` is stated twice"));
                }
                stated.push(key);
                if input.is_empty() || input.peek(Token![,]) {
                    Ok(())
                } else {
                    Err(input.error("expected `,`"))
                }
            });
            if let Err(error) = setting {
                errors.push(error);
                while !input.is_empty() && !input.peek(Token![,]) {
                    input.parse::<proc_macro2::TokenTree>()?;
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    for tokens in attributes {
        let read = |input: ParseStream<'_>| read(input);
        errors.ok(read.parse2(tokens));
    }
}

/// Returns what stands in the parentheses of an attribute.
fn tokens_of(attr: &Attribute, errors: &Errors) -> Option<TokenStream> {
    if let Meta::List(list) = &attr.meta {
        return Some(list.tokens.clone());
    }
    let name = attr.path().to_token_stream();
    errors.at(attr, format!("expected `#[{name}(…)]`"));
    None
}

fn value<T: Parse>(key: &Ident, input: ParseStream<'_>) -> Result<T> {
    if !input.peek(Token![=]) {
        let message = format!("`{key}` needs a value: `{key} = …`");
        return Err(Error::new(key.span(), message));
    }
    input.parse::<Token![=]>()?;
    input.parse()
}

fn text(key: &Ident, input: ParseStream<'_>) -> Result<LitStr> {
    let text: LitStr = value(key, input)?;
    if text.value().trim().is_empty() {
        return Err(Error::new(text.span(), format!("`{key}` is empty")));
    }
    Ok(text)
}

fn flag(input: ParseStream<'_>) -> Result<bool> {
    if !input.peek(Token![=]) {
        return Ok(true);
    }
    input.parse::<Token![=]>()?;
    Ok(input.parse::<LitBool>()?.value)
}

fn list<T>(
    key: &Ident,
    input: ParseStream<'_>,
    example: &str,
    element: fn(ParseStream<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let expected = || Error::new(key.span(), format!("expected `{key}({example})`"));
    if !input.peek(syn::token::Paren) {
        return Err(expected());
    }
    let content;
    parenthesized!(content in input);
    let elements = Punctuated::<T, Token![,]>::parse_terminated_with(&content, element)?;
    if elements.is_empty() {
        return Err(expected());
    }
    Ok(elements.into_iter().collect())
}

/// What stands in `#[tool_server(…)]`.
#[derive(Default)]
pub struct Header {
    pub name: Option<LitStr>,
    pub version: Option<LitStr>,
    pub manual: Option<Ident>,
    pub start: Option<Ident>,
}

pub fn header(attr: TokenStream, errors: &Errors) -> Header {
    let mut header = Header::default();
    settings([attr], errors, |key, input| {
        match key.to_string().as_str() {
            "name" => header.name = Some(value(key, input)?),
            "version" => header.version = Some(text(key, input)?),
            "manual" => header.manual = Some(key.clone()),
            "start" => header.start = Some(key.clone()),
            _ => {
                let message = "expected `name`, `version`, `manual` or `start`";
                return Err(Error::new(key.span(), message));
            }
        }
        Ok(())
    });
    header
}

pub fn options(marker: &Attribute, kind: Kind, scope: &Scope, errors: &Errors) -> Options {
    let mut options = Options::default();
    let mut destructive = None;
    let tokens = match &marker.meta {
        Meta::Path(_) => None,
        _ => tokens_of(marker, errors),
    };
    settings(tokens, errors, |key, input| {
        match (kind, key.to_string().as_str()) {
            (_, "name") => options.name = Some(value(key, input)?),
            (_, "title") => options.title = Some(text(key, input)?),
            (Kind::Tool, "read_only") => options.read_only = Some(flag(input)?),
            (Kind::Tool, "destructive") => {
                destructive = Some(key.clone());
                options.destructive = Some(flag(input)?);
            }
            (Kind::Tool, "idempotent") => options.idempotent = Some(flag(input)?),
            (Kind::Tool, "open_world") => options.open_world = Some(flag(input)?),
            (Kind::Tool, "deprecated") => {
                if !input.peek(Token![=]) {
                    let message = "say what to use instead: `deprecated = \"use `…` instead\"`";
                    return Err(Error::new(key.span(), message));
                }
                options.deprecated = Some(text(key, input)?);
            }
            (Kind::Tool, "timeout") => options.timeout = Some(timeout(&value(key, input)?)?),
            (Kind::Tool, "task") => options.task = Some(task(input)?),
            (Kind::Tool, "scopes") => {
                options.scopes = list(key, input, "\"notes:write\"", <LitStr as Parse>::parse)?;
                check_scopes(&options.scopes, errors);
            }
            (Kind::Tool, "requires") => {
                for what in list(key, input, "project", Ident::parse_any)? {
                    if what == "project" {
                        options.requires_project = true;
                    } else {
                        errors.at(what, "expected `project`");
                    }
                }
            }
            (Kind::Tool, "examples") => {
                let examples = list(key, input, "json!({ … })", Expr::parse)?;
                options.examples = examples.iter().map(|it| scope.expression(it)).collect();
            }
            (Kind::Tool, "meta") => {
                let meta = list(key, input, "\"key\" = value", meta)?;
                check_meta(&meta, errors);
                options.meta = meta
                    .into_iter()
                    .map(|(key, it)| (key, scope.expression(it)))
                    .collect();
            }
            (Kind::Resource, "uri") => options.uri = Some(text(key, input)?),
            (Kind::Resource, "mime_type") => options.mime_type = Some(text(key, input)?),
            _ => {
                return Err(Error::new(
                    key.span(),
                    match kind {
                        Kind::Tool => {
                            "expected `name`, `title`, `read_only`, `destructive`, `idempotent`, `open_world`, `deprecated`, `timeout`, `task`, `scopes`, `requires`, `examples` or `meta`"
                        }
                        Kind::Resource => "expected `uri`, `mime_type`, `name` or `title`",
                        Kind::Prompt => "expected `name` or `title`",
                    },
                ));
            }
        }
        Ok(())
    });
    if let (Some(true), Some(true)) = (options.read_only, options.destructive) {
        errors.at(
            destructive,
            "a tool that is `read_only` changes nothing, so it can't be `destructive`",
        );
    }
    options
}

/// Reads `"30s"` as milliseconds.
fn timeout(literal: &LitStr) -> Result<u64> {
    let text = literal.value();
    let error = |message: &str| Err(Error::new(literal.span(), message));
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    match number.parse::<u64>().map(|it| it.checked_mul(factor)) {
        Ok(Some(0)) if factor > 0 => error("a timeout of nothing leaves no time to run"),
        Ok(Some(milliseconds)) if factor > 0 => Ok(milliseconds),
        Ok(None) => error("this is longer than can be counted"),
        _ => error("expected a number with `ms`, `s`, `m` or `h`, like `timeout = \"30s\"`"),
    }
}

/// Reads `task`, `task = "required"` or `task = "asks-first"` as a variant of `TaskSupport`.
fn task(input: ParseStream<'_>) -> Result<Ident> {
    let expected = "expected `task` (it may run as a task), `task = \"required\"` (it always does) or `task = \"asks-first\"` (it always does, and asks before)";
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(format_ident!("Optional"));
    }
    if !input.peek(Token![=]) {
        return Err(input.error(expected));
    }
    input.parse::<Token![=]>()?;
    let value: Expr = input.parse()?;
    match &value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(it), ..
        }) if it.value() == "required" => Ok(format_ident!("Required")),
        Expr::Lit(ExprLit {
            lit: Lit::Str(it), ..
        }) if it.value() == "asks-first" => Ok(format_ident!("AsksFirst")),
        _ => Err(Error::new_spanned(value, expected)),
    }
}

fn check_scopes(scopes: &[LitStr], errors: &Errors) {
    for (index, scope) in scopes.iter().enumerate() {
        let text = scope.value();
        let is_token = |it: char| it.is_ascii_graphic() && it != '"' && it != '\\';
        if text.is_empty() || !text.chars().all(is_token) {
            errors.at(
                scope,
                "a scope is one word without spaces, like `\"notes:write\"`",
            );
        } else if scopes[..index].iter().any(|it| it.value() == text) {
            errors.at(scope, format!("`{text}` is stated twice"));
        }
    }
}

fn meta(input: ParseStream<'_>) -> Result<(LitStr, Expr)> {
    let key = if input.peek(LitStr) {
        input.parse()?
    } else {
        let ident = input.call(Ident::parse_any)?;
        LitStr::new(&ident.unraw().to_string(), ident.span())
    };
    input.parse::<Token![=]>()?;
    Ok((key, input.parse()?))
}

fn check_meta(meta: &[(LitStr, Expr)], errors: &Errors) {
    for (index, (key, _)) in meta.iter().enumerate() {
        if key.value().is_empty() {
            errors.at(key, "a key of `meta` is empty");
        } else if meta[..index]
            .iter()
            .any(|(it, _)| it.value() == key.value())
        {
            errors.at(key, format!("`{}` is stated twice", key.value()));
        }
    }
}

/// What stands in `#[arg(…)]`.
#[derive(Default)]
pub struct ArgumentOptions {
    pub name: Option<LitStr>,
    pub default: Option<Expr>,
    pub flatten: Option<Ident>,
    /// The first setting that isn't `flatten`.
    pub other: Option<Ident>,
    pub rules: Vec<Rule>,
    /// Whether there is a rule that only text can have.
    pub is_text: bool,
}

pub fn argument(attrs: &[Attribute], scope: &Scope, errors: &Errors) -> ArgumentOptions {
    let mut options = ArgumentOptions::default();
    let tokens = |it: Expr| scope.expression(it);
    let read = |key: &Ident, input: ParseStream<'_>| {
        let rules = &mut options.rules;
        match key.to_string().as_str() {
            "name" => options.name = Some(value(key, input)?),
            "default" => options.default = Some(value(key, input)?),
            "range" => {
                let range = range(key, input)?;
                rules.extend(range.start.map(|it| Rule::Minimum(tokens(*it))));
                rules.extend(range.end.map(|it| match range.limits {
                    RangeLimits::Closed(_) => Rule::Maximum(tokens(*it)),
                    RangeLimits::HalfOpen(_) => Rule::ExclusiveMaximum(tokens(*it)),
                }));
            }
            "length" => {
                let range = range(key, input)?;
                rules.extend(range.start.map(|it| Rule::MinLength(tokens(*it))));
                rules.extend(range.end.map(|it| match range.limits {
                    RangeLimits::Closed(_) => Rule::MaxLength(tokens(*it)),
                    RangeLimits::HalfOpen(_) => Rule::ExclusiveMaxLength(tokens(*it)),
                }));
            }
            "pattern" => {
                rules.push(Rule::Pattern(value(key, input)?));
                options.is_text = true;
            }
            "format" => {
                rules.push(Rule::Format(format(&value(key, input)?)?));
                options.is_text = true;
            }
            "example" => rules.push(Rule::Example(tokens(value(key, input)?))),
            "header" => rules.push(Rule::Header(value(key, input)?)),
            "flatten" => options.flatten = Some(key.clone()),
            _ => {
                let message = "expected `name`, `default`, `range`, `length`, `pattern`, `format`, `example`, `header` or `flatten`";
                return Err(Error::new(key.span(), message));
            }
        }
        if key != "flatten" {
            options.other.get_or_insert_with(|| key.clone());
        }
        Ok(())
    };
    let tokens = attrs.iter().filter_map(|it| tokens_of(it, errors));
    settings(tokens, errors, read);
    options
}

fn format(literal: &LitStr) -> Result<Ident> {
    let variant = match literal.value().as_str() {
        "email" => "Email",
        "uri" => "Uri",
        "date" => "Date",
        "date-time" => "DateTime",
        "uuid" => "Uuid",
        _ => {
            let message =
                "expected `\"email\"`, `\"uri\"`, `\"date\"`, `\"date-time\"` or `\"uuid\"`";
            return Err(Error::new(literal.span(), message));
        }
    };
    Ok(format_ident!("{variant}"))
}

fn range(key: &Ident, input: ParseStream<'_>) -> Result<ExprRange> {
    let mut expression: Expr = value(key, input)?;
    let range = loop {
        match expression {
            Expr::Paren(it) => expression = *it.expr,
            Expr::Group(it) => expression = *it.expr,
            Expr::Range(range) => break range,
            other => {
                return Err(Error::new_spanned(
                    other,
                    "expected a range, like `1..=100`",
                ));
            }
        }
    };
    let (Some(start), Some(end)) = (&range.start, &range.end) else {
        if range.start.is_none() && range.end.is_none() {
            let message = format!("this range has no end, so it is no rule: leave `{key}` out");
            return Err(Error::new_spanned(range, message));
        }
        return Ok(range);
    };
    let is_empty = match (number(start), number(end), &range.limits) {
        (Some(start), Some(end), RangeLimits::Closed(_)) => start > end,
        (Some(start), Some(end), RangeLimits::HalfOpen(_)) => start >= end,
        _ => false,
    };
    if is_empty {
        return Err(Error::new_spanned(
            range,
            "this range is empty: nothing could be sent",
        ));
    }
    Ok(range)
}

/// Reads a literal number; close enough to compare two of them.
fn number(expression: &Expr) -> Option<f64> {
    match expression {
        Expr::Lit(ExprLit {
            lit: Lit::Int(it), ..
        }) => it.base10_parse().ok(),
        Expr::Lit(ExprLit {
            lit: Lit::Float(it),
            ..
        }) => it.base10_parse().ok(),
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr,
            ..
        }) => number(expr).map(|it| -it),
        Expr::Paren(it) => number(&it.expr),
        Expr::Group(it) => number(&it.expr),
        _ => None,
    }
}
