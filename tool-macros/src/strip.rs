//! Takes our attributes off tokens without understanding them.

use crate::attributes::{MARKERS, is_ours};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::{Meta, Path};

/// Returns the tokens without our attributes, and without the docs of parameters, which rustc refuses.
pub fn strip(tokens: TokenStream) -> TokenStream {
    strip_in(tokens, Delimiter::None)
}

fn strip_in(tokens: TokenStream, around: Delimiter) -> TokenStream {
    let mut stripped = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(pound) if pound.as_char() == '#' => match tokens.peek() {
                Some(TokenTree::Group(group)) if is_foreign_to_rustc(group, around) => {
                    tokens.next();
                }
                _ => stripped.extend([TokenTree::Punct(pound)]),
            },
            TokenTree::Group(group) => {
                let delimiter = group.delimiter();
                let mut inside = Group::new(delimiter, strip_in(group.stream(), delimiter));
                inside.set_span(group.span());
                stripped.extend([TokenTree::Group(inside)]);
            }
            other => stripped.extend([other]),
        }
    }
    stripped
}

fn is_foreign_to_rustc(group: &Group, around: Delimiter) -> bool {
    let Ok(meta) = syn::parse2::<Meta>(group.stream()) else {
        return false;
    };
    let path: &Path = meta.path();
    group.delimiter() == Delimiter::Bracket
        && (path.is_ident("arg")
            || MARKERS.iter().any(|marker| is_ours(path, marker))
            || (around == Delimiter::Parenthesis && path.is_ident("doc")))
}
