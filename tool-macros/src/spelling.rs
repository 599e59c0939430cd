//! What can be told from the spelling of a type, and how it is spelled elsewhere.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    GenericArgument, Lifetime, ParenthesizedGenericArguments, PathArguments, Type, TypeFnPtr,
    TypeImplTrait, TypeReference,
    visit_mut::{self, VisitMut},
};

/// The names that mean something only where the developer wrote them.
pub struct Scope {
    /// What `Self` is.
    pub self_type: Option<Type>,
    /// The lifetimes of the function.
    pub lifetimes: Vec<Ident>,
}

impl Scope {
    /// Returns the type with every lifetime `'static`, as a static can name it.
    pub fn everlasting(&self, ty: &Type) -> Type {
        self.with_lifetimes(ty, "static", true)
    }

    /// Returns the type with every lifetime left to be inferred, as the body of a function can name it.
    pub fn inferred(&self, ty: &Type) -> Type {
        self.with_lifetimes(ty, "_", false)
    }

    /// Returns an expression that means the same outside of the `impl`.
    pub fn expression(&self, expression: impl ToTokens) -> TokenStream {
        self.without_self(expression.into_token_stream())
    }

    fn with_lifetimes(&self, ty: &Type, lifetime: &str, elided_too: bool) -> Type {
        let mut ty = match &self.self_type {
            Some(_) => {
                syn::parse2(self.without_self(ty.to_token_stream())).unwrap_or_else(|_| ty.clone())
            }
            None => ty.clone(),
        };
        let mut replace = ReplaceLifetimes {
            scope: self,
            lifetime,
            elided_too,
        };
        replace.visit_type_mut(&mut ty);
        ty
    }

    fn without_self(&self, tokens: TokenStream) -> TokenStream {
        let Some(self_type) = &self.self_type else {
            return tokens;
        };
        let mut tokens = tokens.into_iter().peekable();
        let mut replaced = TokenStream::new();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(it) if it == "Self" => {
                    let self_type = at(it.span(), self_type.to_token_stream());
                    let is_path =
                        matches!(tokens.peek(), Some(TokenTree::Punct(it)) if it.as_char() == ':');
                    replaced.extend(if is_path {
                        quote_spanned!(it.span()=> <#self_type>)
                    } else {
                        self_type
                    });
                }
                TokenTree::Group(group) => {
                    let mut inside =
                        Group::new(group.delimiter(), self.without_self(group.stream()));
                    inside.set_span(group.span());
                    replaced.extend([TokenTree::Group(inside)]);
                }
                other => replaced.extend([other]),
            }
        }
        replaced
    }
}

fn at(span: Span, tokens: TokenStream) -> TokenStream {
    let token_at = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    tokens.into_iter().map(token_at).collect()
}

struct ReplaceLifetimes<'a> {
    scope: &'a Scope,
    lifetime: &'a str,
    elided_too: bool,
}

impl VisitMut for ReplaceLifetimes<'_> {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" || self.scope.lifetimes.contains(&lifetime.ident) {
            lifetime.ident = Ident::new(self.lifetime, lifetime.ident.span());
        }
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if reference.lifetime.is_none() && self.elided_too {
            let span = reference.and_token.span;
            reference.lifetime = Some(Lifetime::new(&format!("'{}", self.lifetime), span));
        }
        visit_mut::visit_type_reference_mut(self, reference);
    }

    // The lifetimes that a function type elides are its own.
    fn visit_type_fn_ptr_mut(&mut self, _: &mut TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut ParenthesizedGenericArguments) {
    }
}

/// Returns the `T` of an `Option<T>` that is spelled as such.
pub fn option(ty: &Type) -> Option<&Type> {
    let Type::Path(ty) = plain(ty) else {
        return None;
    };
    let segments: Vec<String> = ty
        .path
        .segments
        .iter()
        .map(|it| it.ident.to_string())
        .collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let is_option = matches!(
        &*segments,
        ["Option"] | ["option", "Option"] | ["std" | "core", "option", "Option"]
    );
    let PathArguments::AngleBracketed(arguments) = &ty.path.segments.last()?.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(inner)
            if is_option && ty.qself.is_none() && arguments.args.len() == 1 =>
        {
            Some(inner)
        }
        _ => None,
    }
}

/// Takes off parentheses, and the invisible ones that come from a `macro_rules!`.
pub fn plain(ty: &Type) -> &Type {
    match ty {
        Type::Group(it) => plain(&it.elem),
        Type::Paren(it) => plain(&it.elem),
        _ => ty,
    }
}

/// Finds a reference in a type.
pub fn reference(ty: &Type) -> Option<TypeReference> {
    let mut find = Find::default();
    find.visit_type_mut(&mut ty.clone());
    find.reference
}

/// Finds an `impl Trait` in a type.
pub fn impl_trait(ty: &Type) -> Option<TypeImplTrait> {
    let mut find = Find::default();
    find.visit_type_mut(&mut ty.clone());
    find.impl_trait
}

#[derive(Default)]
struct Find {
    reference: Option<TypeReference>,
    impl_trait: Option<TypeImplTrait>,
}

impl VisitMut for Find {
    fn visit_type_reference_mut(&mut self, it: &mut TypeReference) {
        self.reference.get_or_insert_with(|| it.clone());
        visit_mut::visit_type_reference_mut(self, it);
    }

    fn visit_type_impl_trait_mut(&mut self, it: &mut TypeImplTrait) {
        self.impl_trait.get_or_insert_with(|| it.clone());
        visit_mut::visit_type_impl_trait_mut(self, it);
    }

    fn visit_type_fn_ptr_mut(&mut self, _: &mut TypeFnPtr) {}
}

/// Spells the type that owns what a reference points at.
pub fn owned(reference: &TypeReference) -> Option<String> {
    match plain(&reference.elem) {
        Type::Path(it) if it.path.is_ident("str") => Some("String".to_owned()),
        Type::Path(it) if it.path.is_ident("Path") => Some("PathBuf".to_owned()),
        Type::Slice(it) => Some(format!("Vec<{}>", spelled(&it.elem))),
        _ => None,
    }
}

/// Spells a type as a person would.
pub fn spelled(ty: &Type) -> String {
    let mut spelled = String::new();
    for token in quote!(#ty).to_string().split(' ') {
        let word = |it: char| it.is_alphanumeric() || it == '_';
        let joins_words = spelled.ends_with(word) && token.starts_with(word);
        if joins_words || spelled.ends_with([',', '+']) || token == "+" {
            spelled.push(' ');
        }
        spelled.push_str(token);
    }
    spelled
}
