//! Writes the code for a model.
use crate::{errors::Errors, model::*, parse};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Ident, ItemMod, LitStr, RangeLimits, ext::IdentExt, spanned::Spanned};

pub fn tool_server(attr: TokenStream, tokens: TokenStream) -> TokenStream {
    let errors = Errors::default();
    let mut item = match syn::parse2(tokens.clone()) {
        Ok(item) => item,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#error #tokens);
        }
    };
    let server = parse::server(attr, &mut item, &errors);
    // The developer's own item always stays, so that one mistake doesn't make its names unknown.
    let generated = match server {
        Some(server) if errors.is_empty() => registration(&server),
        _ => errors.into_compile_errors(),
    };
    match &mut item {
        syn::Item::Mod(ItemMod {
            content: Some((_, items)),
            ..
        }) => {
            items.push(syn::Item::Verbatim(generated));
            item.into_token_stream()
        }
        _ => quote!(#item #generated),
    }
}

fn registration(server: &Server) -> TokenStream {
    let Server {
        name,
        version,
        description,
        ..
    } = server;
    let of_kind = |kind| {
        server
            .items
            .iter()
            .filter(move |it| it.kind == kind)
            .map(|it| definition(it, &server.home))
    };
    let (tools, resources, prompts) = (
        of_kind(Kind::Tool),
        of_kind(Kind::Resource),
        of_kind(Kind::Prompt),
    );
    let start = match &server.home {
        Home::Module => Some(quote!(__rt::stateless)),
        Home::Type(_) if server.manual => None,
        Home::Type(ty) => Some(quote_spanned!(ty.span()=> __rt::start::<#ty>)),
    };
    let submit = start.map(|start| {
        quote!(__rt::inventory::submit! { __rt::Linked { definition: &__SERVER, start: #start } })
    });
    let implementation = match &server.home {
        Home::Module => None,
        Home::Type(ty) => Some(quote! {
            #[automatically_derived]
            impl __rt::ToolServer for #ty {
                const DEFINITION: &'static __rt::ServerDefinition = &__SERVER;
            }
        }),
    };
    // Names the markers once more, so that an editor shows their documentation.
    let markers = server.items.iter().map(|it| &it.marker);
    quote! {
        #[doc(hidden)]
        #[allow(unused_qualifications, clippy::absolute_paths)]
        const _: () = {
            use ::tool_runtime::__private as __rt;
            #(#[allow(unused_imports)] use ::tool_runtime::#markers as _;)*
            static __SERVER: __rt::ServerDefinition = __rt::ServerDefinition {
                name: #name,
                version: #version,
                description: #description,
                tools: &[#(#tools),*],
                resources: &[#(#resources),*],
                prompts: &[#(#prompts),*],
            };
            #implementation
            #submit
        };
    }
}

fn definition(item: &Item, home: &Home) -> TokenStream {
    let Item {
        description,
        cfg,
        output,
        options,
        ..
    } = item;
    let name = options
        .name
        .as_ref()
        .map_or_else(|| item.function.unraw().to_string(), LitStr::value);
    let arguments = item.params.iter().filter_map(|it| match it {
        Param::Sent(it) => Some(argument(it)),
        Param::Lent(_) => None,
    });
    let common = quote!(name: #name, description: #description, arguments: &[#(#arguments),*],);
    let call = call(item, home);
    match item.kind {
        Kind::Tool => {
            let Options {
                title,
                read_only,
                destructive,
                idempotent,
                open_world,
                ..
            } = options;
            let title = option(title);
            let [read_only, destructive, idempotent, open_world] =
                [read_only, destructive, idempotent, open_world].map(option);
            let schema = quote_spanned!(output.span()=> <#output as __rt::IntoOutput>::schema);
            quote! {
                #(#cfg)*
                __rt::ToolDefinition {
                    #common
                    annotations: __rt::Annotations { title: #title, read_only: #read_only, destructive: #destructive, idempotent: #idempotent, open_world: #open_world },
                    output_schema: #schema,
                    call: #call,
                }
            }
        }
        Kind::Resource => {
            let (uri, mime_type) = (&options.uri, option(&options.mime_type));
            quote!(#(#cfg)* __rt::ResourceDefinition { #common uri: #uri, mime_type: #mime_type, call: #call })
        }
        Kind::Prompt => quote!(#(#cfg)* __rt::PromptDefinition { #common call: #call }),
    }
}

/// A function that takes the arguments apart and calls the developer's one.
fn call(item: &Item, home: &Home) -> TokenStream {
    // Local names must not meet those of the developer.
    let [server, context, arguments] =
        ["server", "context", "arguments"].map(|it| Ident::new(it, Span::mixed_site()));
    let function = &item.function;
    let mut taken = Vec::new();
    let mut passed = Vec::new();
    for param in &item.params {
        match param {
            Param::Lent(ty) => {
                passed.push(quote_spanned!(ty.span()=> <#ty as __rt::Lend>::lend(#context)))
            }
            Param::Sent(it) => {
                let (name, ty) = (sent_name(it), &it.ty);
                let local = Ident::new(&format!("sent_{}", it.ident.unraw()), Span::mixed_site());
                taken.push(quote!(let #local = #arguments.take::<#ty>(#name)?;));
                passed.push(local.into_token_stream());
            }
        }
    }
    let target = match (home, item.takes_self) {
        (Home::Module, _) => quote!(self::#function(#(#passed),*)),
        (Home::Type(ty), false) => quote!(<#ty>::#function(#(#passed),*)),
        (Home::Type(ty), true) => {
            quote!(<#ty>::#function(__rt::downcast::<#ty>(#server), #(#passed),*))
        }
    };
    let wait = item.is_async.then(|| quote!(.await));
    let output = &item.output;
    let into_output = quote_spanned!(output.span()=> <#output as __rt::IntoOutput>::into_output);
    // The span makes rustc blame the developer's function for a future that isn't `Send`.
    let body = quote_spanned!(function.span()=> __rt::Box::pin(async move { #(#taken)* #into_output(#target #wait) }));
    quote! {{
        fn __call<'a>(
            #server: &'a __rt::Instance,
            #context: &'a __rt::Context,
            mut #arguments: __rt::Arguments,
        ) -> __rt::BoxFuture<'a, __rt::Result<__rt::Output, __rt::ToolError>> {
            let _ = (#server, #context, &mut #arguments);
            #body
        }
        __call
    }}
}

fn argument(argument: &Argument) -> TokenStream {
    let Argument {
        ty,
        description,
        rules,
        ..
    } = argument;
    let name = sent_name(argument);
    let required = rules.default.is_none() && !is_option(ty);
    let schema = quote_spanned!(ty.span()=> __rt::schema::<#ty>);
    let keywords = keywords(rules);
    let default = match &rules.default {
        Some(default) => quote!(__rt::Some(|| __rt::value::<#ty>(#default))),
        None => quote!(__rt::None),
    };
    quote!(__rt::ArgumentDefinition { name: #name, description: #description, required: #required, default: #default, schema: #schema, keywords: #keywords })
}

fn keywords(rules: &Rules) -> TokenStream {
    let mut pairs: Vec<(&str, TokenStream)> = Vec::new();
    if let Some(range) = &rules.range {
        pairs.extend(
            range
                .start
                .iter()
                .map(|it| ("minimum", it.to_token_stream())),
        );
        let upper = match range.limits {
            RangeLimits::Closed(_) => "maximum",
            RangeLimits::HalfOpen(_) => "exclusiveMaximum",
        };
        pairs.extend(range.end.iter().map(|it| (upper, it.to_token_stream())));
    }
    if let Some(length) = &rules.length {
        pairs.extend(
            length
                .start
                .iter()
                .map(|it| ("minLength", it.to_token_stream())),
        );
        pairs.extend(
            length
                .end
                .iter()
                .map(|it| ("maxLength", it.to_token_stream())),
        );
    }
    pairs.extend(
        rules
            .pattern
            .iter()
            .map(|it| ("pattern", it.to_token_stream())),
    );
    if pairs.is_empty() {
        return quote!(__rt::Map::new);
    }
    let inserts = pairs.iter().map(
        |(key, value)| quote!(keywords.insert(__rt::String::from(#key), __rt::value(#value));),
    );
    quote!(|| { let mut keywords = __rt::Map::new(); #(#inserts)* keywords })
}

fn sent_name(argument: &Argument) -> String {
    argument
        .rules
        .name
        .as_ref()
        .map_or_else(|| argument.ident.unraw().to_string(), LitStr::value)
}

fn is_option(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Path(it) if it.path.segments.last().is_some_and(|it| it.ident == "Option"))
}

fn option<T: ToTokens>(it: &Option<T>) -> TokenStream {
    match it {
        Some(it) => quote!(__rt::Some(#it)),
        None => quote!(__rt::None),
    }
}
