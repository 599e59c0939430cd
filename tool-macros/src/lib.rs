//! `#[tool_server]`: parse -> model -> expand.
mod errors;
mod expand;
mod model;
mod parse;

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

/// Marks a function as a prompt of the `#[tool_server]` around it.
#[proc_macro_attribute]
pub fn prompt(_attr: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("prompt", item)
}

/// Marks a function as a resource of the `#[tool_server]` around it.
#[proc_macro_attribute]
pub fn resource(_attr: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("resource", item)
}

fn misplaced(marker: &str, item: TokenStream) -> TokenStream {
    let message = format!(
        "`#[{marker}]` has no meaning here: put `#[tool_server(name = \"…\", version = \"…\")]` on the `mod` or `impl` around it"
    );
    let error = syn::Error::new(proc_macro2::Span::call_site(), message).into_compile_error();
    let item = parse::strip(item.into());
    quote!(#error #item).into()
}
