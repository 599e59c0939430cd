//! The item under `#[tool_server]`, read only as deep as needed.
//!
//! The bodies of functions and all other items stay tokens. That is fast, and an unfinished body does no harm to the
//! rest of the server while one types.

use crate::{attributes::is_marker, errors::Errors, strip::strip};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, Ident, ImplItem, Item, Result, Signature, Visibility,
    ext::IdentExt,
    parse::{Parse, ParseStream, Parser, discouraged::Speculative},
};

pub struct Source {
    /// The item with an empty body.
    pub shell: Item,
    /// What stands in the body before the members: `#![…]` and `//!`.
    pub inner: Vec<Attribute>,
    pub members: Vec<Member>,
}

pub enum Member {
    Function(Box<Function>),
    /// Anything else, not necessarily in one piece.
    Other(TokenStream),
}

pub struct Function {
    pub attrs: Vec<Attribute>,
    visibility: Visibility,
    pub signature: Signature,
    body: TokenTree,
}

impl Source {
    pub fn read(item: TokenStream, errors: &Errors) -> Result<Self> {
        let mut tokens: Vec<TokenTree> = item.into_iter().collect();
        let mut inner = Vec::new();
        let mut members = Vec::new();
        if let Some(TokenTree::Group(body)) = tokens.last_mut()
            && body.delimiter() == Delimiter::Brace
        {
            let read = |input: ParseStream<'_>| {
                inner = input.call(Attribute::parse_inner)?;
                while !input.is_empty() {
                    members.push(Member::read(input, errors)?);
                }
                Ok(())
            };
            read.parse2(body.stream())?;
            let mut empty = Group::new(Delimiter::Brace, TokenStream::new());
            empty.set_span(body.span());
            *body = empty;
        }
        Ok(Self {
            shell: syn::parse2(tokens.into_iter().collect())?,
            inner,
            members,
        })
    }

    pub fn functions(&mut self) -> impl Iterator<Item = &mut Function> {
        self.members.iter_mut().filter_map(|it| match it {
            Member::Function(it) => Some(&mut **it),
            Member::Other(_) => None,
        })
    }

    pub fn function(&self, is_meant: impl Fn(&Function) -> bool) -> Option<&Function> {
        self.members.iter().find_map(|it| match it {
            Member::Function(it) if is_meant(it) => Some(&**it),
            _ => None,
        })
    }

    /// Returns the item again, with more at the end of its body.
    pub fn with(mut self, more: TokenStream) -> TokenStream {
        let mut body = TokenStream::new();
        body.extend(self.inner.iter().map(ToTokens::to_token_stream));
        for member in &self.members {
            member.to_tokens(&mut body);
        }
        body.extend(more);
        match &mut self.shell {
            Item::Mod(module) => {
                if let Some((_, items)) = &mut module.content {
                    items.push(Item::Verbatim(body));
                }
            }
            Item::Impl(block) => block.items.push(ImplItem::Verbatim(body)),
            _ => {}
        }
        self.shell.into_token_stream()
    }
}

impl Member {
    fn read(input: ParseStream<'_>, errors: &Errors) -> Result<Self> {
        let ahead = input.fork();
        let error = match ahead.parse() {
            Ok(function) => {
                input.advance_to(&ahead);
                return Ok(Self::Function(Box::new(function)));
            }
            Err(error) => error,
        };
        let attrs = input
            .fork()
            .call(Attribute::parse_outer)
            .unwrap_or_default();
        let mut tokens = TokenStream::new();
        let mut has_fn = false;
        while !input.is_empty() {
            let token: TokenTree = input.parse()?;
            has_fn |= matches!(&token, TokenTree::Ident(it) if it == "fn");
            let ends = match &token {
                TokenTree::Group(it) => it.delimiter() == Delimiter::Brace,
                TokenTree::Punct(it) => it.as_char() == ';',
                _ => false,
            };
            tokens.extend([token]);
            if ends {
                break;
            }
        }
        if let Some(marker) = attrs.iter().find(|it| is_marker(it)) {
            if has_fn {
                errors.push(error);
            } else {
                let message = format!("`{}` goes on a function", marker.to_token_stream());
                errors.at(marker, message.replace("# [", "#["));
            }
            tokens = strip(tokens);
        }
        Ok(Self::Other(tokens))
    }

    /// Returns the name in the type namespace that this item declares, where it equals the one asked for.
    pub fn declares(&self, name: &str) -> Option<Ident> {
        let Self::Other(tokens) = self else {
            return None;
        };
        let mut after_keyword = false;
        for token in tokens.clone() {
            let TokenTree::Ident(ident) = token else {
                after_keyword = false;
                continue;
            };
            if after_keyword && ident.unraw() == name {
                return Some(ident);
            }
            after_keyword = ["mod", "struct", "enum", "union", "type", "trait"]
                .iter()
                .any(|keyword| ident == keyword);
        }
        None
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        Ok(Self {
            attrs: input.call(Attribute::parse_outer)?,
            visibility: input.parse()?,
            signature: input.parse()?,
            body: {
                if !input.peek(syn::token::Brace) {
                    return Err(input.error("expected the body of the function"));
                }
                input.parse()?
            },
        })
    }
}

impl ToTokens for Member {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Function(it) => {
                tokens.extend(it.attrs.iter().map(ToTokens::to_token_stream));
                it.visibility.to_tokens(tokens);
                it.signature.to_tokens(tokens);
                it.body.to_tokens(tokens);
            }
            Self::Other(it) => it.to_tokens(tokens),
        }
    }
}
