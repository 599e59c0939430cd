//! The macros of `tool-runtime`, which re-exports and documents them.
//!
//! An item is read (`source`), understood (`parse`, `function` and `params` make a `model`) and written (`expand`).
//! All mistakes are collected on the way, and the developer's own item always stays, so that one mistake doesn't make
//! its names unknown.

#![expect(
    unreachable_pub,
    reason = "a macro crate exports nothing but its macros, and its modules speak `pub` among themselves"
)]

mod attributes;
mod docs;
mod errors;
mod expand;
mod function;
mod model;
mod names;
mod params;
mod parse;
mod source;
mod spelling;
mod strip;
mod uri;

use proc_macro::TokenStream;
use quote::quote;

/// Makes a server of a module (no state) or of an `impl` (state in `self`).
#[proc_macro_attribute]
pub fn tool_server(attr: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool_server(attr.into(), item.into()).into()
}

/// Marks a function as a tool of the `#[tool_server]` around it.
#[proc_macro_attribute]
pub fn tool(_attr: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("tool", item)
}

/// Marks a function as a resource of the `#[tool_server]` around it.
#[proc_macro_attribute]
pub fn resource(_attr: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("resource", item)
}

/// Marks a function as a prompt of the `#[tool_server]` around it.
#[proc_macro_attribute]
pub fn prompt(_attr: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("prompt", item)
}

/// A server takes the markers off, so one that is expanded stands outside of a server.
fn misplaced(marker: &str, item: TokenStream) -> TokenStream {
    let message = format!(
        "`#[{marker}]` has no meaning here: put `#[tool_server(name = \"…\", version = \"…\")]` on the `mod` or `impl` around it"
    );
    let error = syn::Error::new(proc_macro2::Span::call_site(), message).into_compile_error();
    let item = strip::strip(item.into());
    quote!(#error #item).into()
}
