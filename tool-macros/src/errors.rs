//! Collects errors, so that one build shows all of them.
use quote::ToTokens;
use std::cell::RefCell;

#[derive(Default)]
pub struct Errors(RefCell<Vec<syn::Error>>);

impl Errors {
    pub fn at(&self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }
    pub fn push(&self, error: syn::Error) {
        self.0.borrow_mut().push(error);
    }
    pub fn ok<T>(&self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
    pub fn into_compile_errors(self) -> proc_macro2::TokenStream {
        self.0
            .into_inner()
            .iter()
            .map(syn::Error::to_compile_error)
            .collect()
    }
}
