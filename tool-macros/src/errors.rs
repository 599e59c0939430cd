//! Collects mistakes, so that one build shows all of them.

use proc_macro2::TokenStream;
use quote::ToTokens;
use std::{cell::RefCell, fmt::Display};

#[derive(Default)]
pub struct Errors(RefCell<Vec<syn::Error>>);

impl Errors {
    pub fn at(&self, tokens: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    pub fn push(&self, error: syn::Error) {
        self.0.borrow_mut().push(error);
    }

    pub fn ok<T>(&self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    pub fn into_compile_errors(self) -> TokenStream {
        self.0
            .into_inner()
            .iter()
            .map(syn::Error::to_compile_error)
            .collect()
    }
}
