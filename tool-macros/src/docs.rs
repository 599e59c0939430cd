//! Docs become descriptions.

use crate::model::{Description, Part};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Reads what stands before the first `# Heading`: the sections after it are for people.
pub fn description<'a>(attrs: impl IntoIterator<Item = &'a Attribute>) -> Description {
    let mut lines = Vec::new();
    for attr in attrs {
        match &attr.meta {
            Meta::NameValue(it) if it.path.is_ident("doc") => match &it.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(it), ..
                }) => lines.extend(text_lines(&it.value())),
                code => lines.push(Line::Code(code.clone())),
            },
            _ => {}
        }
    }
    let is_indented = lines.iter().all(|it| match it {
        Line::Text(it) => it.is_empty() || it.starts_with(' '),
        Line::Code(_) => true,
    });

    let mut parts = vec![Part::Text(String::new())];
    let mut in_code_block = false;
    for (index, line) in lines.into_iter().enumerate() {
        let separator = if index == 0 { "" } else { "\n" };
        match line {
            Line::Text(line) => {
                let line = line
                    .strip_prefix(' ')
                    .filter(|_| is_indented)
                    .unwrap_or(&line);
                if line.trim_start().starts_with("```") {
                    in_code_block = !in_code_block;
                } else if !in_code_block && line.starts_with("# ") {
                    break;
                }
                push(&mut parts, separator);
                push(&mut parts, line);
            }
            Line::Code(code) => {
                push(&mut parts, separator);
                parts.push(Part::Code(code));
            }
        }
    }
    if let Some(Part::Text(first)) = parts.first_mut() {
        *first = first.trim_start().to_owned();
    }
    if let Some(Part::Text(last)) = parts.last_mut() {
        *last = last.trim_end().to_owned();
    }
    parts.retain(|it| !matches!(it, Part::Text(it) if it.is_empty()));
    Description(parts)
}

enum Line {
    Text(String),
    Code(Expr),
}

/// A block comment is one attribute of many lines, which may begin with ` * `.
fn text_lines(text: &str) -> Vec<Line> {
    let is_starred = text.contains('\n')
        && text
            .lines()
            .skip(1)
            .all(|it| it.trim().is_empty() || it.trim_start().starts_with('*'));
    let line = |line: &str| match line.trim_start().strip_prefix('*') {
        Some(rest) if is_starred => rest.trim_end().to_owned(),
        _ => line.trim_end().to_owned(),
    };
    if text.is_empty() {
        return vec![Line::Text(String::new())];
    }
    text.lines().map(|it| Line::Text(line(it))).collect()
}

fn push(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Text(last)) => last.push_str(text),
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

impl Description {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl ToTokens for Description {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match &*self.0 {
            [] => "".to_tokens(tokens),
            [Part::Text(text)] => text.to_tokens(tokens),
            parts => quote!(::core::concat!(#(#parts),*)).to_tokens(tokens),
        }
    }
}

impl ToTokens for Part {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Text(text) => text.to_tokens(tokens),
            Self::Code(code) => code.to_tokens(tokens),
        }
    }
}
