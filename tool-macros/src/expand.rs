//! Model → definitions, as one would write them by hand.

use crate::{
    errors::Errors,
    model::{Absence, Argument, Constant, Home, Item, Kind, Param, Rule, Server, Start},
    parse,
    source::Source,
    strip::strip,
};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Ident, LitStr, Type, spanned::Spanned};

pub fn tool_server(attr: TokenStream, tokens: TokenStream) -> TokenStream {
    let errors = Errors::default();
    let mut source = match Source::read(tokens.clone(), &errors) {
        Ok(source) => source,
        Err(error) => {
            let error = error.into_compile_error();
            let item = strip(tokens);
            return quote!(#error #item);
        }
    };
    let server = parse::server(attr, &mut source, &errors);
    let is_fine = errors.is_empty();
    let constants = server.as_ref().map(constants);
    let registration = server.as_ref().map(|it| registration(it, is_fine));
    let errors = errors.into_compile_errors();
    let generated = quote!(#errors #constants #registration);
    match server {
        Some(Server {
            home: Home::Module, ..
        }) => source.with(generated),
        Some(_) => {
            let item = source.with(TokenStream::new());
            quote!(#item #generated)
        }
        // Nothing is known of the item, so its markers may still be there.
        None => {
            let item = strip(source.with(TokenStream::new()));
            quote!(#item #generated)
        }
    }
}

/// The names of the tools, for code that speaks of a tool without calling it.
fn constants(server: &Server) -> Option<TokenStream> {
    if server.constants.is_empty() {
        return None;
    }
    let server_name = &server.name;
    let constants = server.constants.iter().map(|it| {
        let Constant { name, tool, cfg } = it;
        let doc = format!("The name of the tool `{}`.", tool.value());
        quote! {
            #(#cfg)*
            #[doc = #doc]
            pub const #name: ::tool_runtime::ToolName = ::tool_runtime::ToolName::new(#server_name, #tool);
        }
    });
    let cfg = &server.cfg;
    let allow = quote!(#[allow(dead_code, unreachable_pub, clippy::absolute_paths, clippy::module_inception, clippy::multiple_inherent_impl)]);
    Some(match &server.home {
        Home::Module => quote! {
            /// The names of the tools.
            #allow
            pub mod tools { #(#constants)* }
        },
        Home::Type(ty) => quote! {
            #(#cfg)*
            #allow
            #[automatically_derived]
            impl #ty { #(#constants)* }
        },
    })
}

/// A server that isn't fine has its definition, so that code which uses it isn't blamed as well, but isn't linked.
fn registration(server: &Server, is_fine: bool) -> TokenStream {
    let Server {
        name,
        version,
        description,
        cfg,
        ..
    } = server;
    let of_kind = |kind| {
        server
            .items
            .iter()
            .filter(move |it| it.kind == kind)
            .map(|it| definition(server, it))
    };
    let (tools, resources, prompts) = (
        of_kind(Kind::Tool),
        of_kind(Kind::Resource),
        of_kind(Kind::Prompt),
    );
    // The macros tell where the name stands.
    let location = quote_spanned! {name.span()=>
        __rt::Location { file: ::core::file!(), line: ::core::line!() }
    };
    let implementation = match &server.home {
        Home::Module => None,
        Home::Type(ty) => Some(quote! {
            #[automatically_derived]
            impl __rt::ToolServer for #ty {
                const DEFINITION: &'static __rt::ServerDefinition = &__SERVER;
            }
        }),
    };
    let submit = start(server).filter(|_| is_fine).map(|start| {
        quote!(__rt::inventory::submit! { __rt::Linked { definition: &__SERVER, start: #start } })
    });
    // The markers are named once more, so that an editor shows their documentation.
    let markers = server.items.iter().map(|it| &it.marker);
    quote! {
        #(#cfg)*
        #[doc(hidden)]
        #[allow(deprecated, unused_imports, unused_qualifications, clippy::absolute_paths, clippy::redundant_closure)]
        const _: () = {
            use ::tool_runtime::__private as __rt;
            use ::tool_runtime::{#(#markers as _),*};
            static __SERVER: __rt::ServerDefinition = __rt::ServerDefinition {
                name: #name,
                version: #version,
                description: #description,
                location: #location,
                tools: &[#(#tools),*],
                resources: &[#(#resources),*],
                prompts: &[#(#prompts),*],
            };
            #implementation
            #submit
        };
    }
}

/// How the registry makes the server; a manual one is made by its host.
fn start(server: &Server) -> Option<TokenStream> {
    match (&server.start, &server.home) {
        (Start::Manual, _) => None,
        (Start::Default, Home::Type(ty)) => {
            Some(quote_spanned!(ty.span()=> __rt::start_default::<#ty>))
        }
        (Start::Function { word, is_async }, Home::Type(ty)) => {
            let environment = Ident::new("environment", Span::mixed_site());
            let function = Ident::new("start", word.span());
            let wait = is_async.then(|| quote_spanned!(word.span()=> .await));
            let started = quote_spanned! {word.span()=>
                __rt::Box::pin(async move { __rt::started::<#ty, _>(<#ty>::#function(#environment) #wait) })
            };
            Some(quote! {{
                fn __start(#environment: &__rt::Environment) -> __rt::Started<'_> {
                    #started
                }
                __start
            }})
        }
        (_, _) => Some(quote!(__rt::start_stateless)),
    }
}

fn definition(server: &Server, item: &Item) -> TokenStream {
    let Item {
        name,
        description,
        cfg,
        options,
        ..
    } = item;
    let title = option(options.title.as_ref());
    let call = call(item, &server.home);
    match item.kind {
        Kind::Tool => {
            let server_name = &server.name;
            let input = input(item);
            let returned = returned(item, &item.output.everlasting);
            let converses = converses(item);
            let [read_only, destructive, idempotent, open_world] = [
                options.read_only,
                options.destructive,
                options.idempotent,
                options.open_world,
            ]
            .map(option);
            let deprecated = option(options.deprecated.as_ref());
            let timeout = option(
                options
                    .timeout
                    .map(|it| quote!(__rt::Duration::from_millis(#it))),
            );
            let task = options.task.as_ref();
            let task = option(task.map(|it| quote!(__rt::TaskSupport::#it)));
            let scopes = &options.scopes;
            let requires = options
                .requires_project
                .then(|| quote!(__rt::Requirement::Project));
            let examples = options.examples.iter().map(value);
            let meta = options.meta.iter().map(|(key, it)| {
                let value = value(it);
                quote!((#key, #value))
            });
            quote! {
                #(#cfg)*
                __rt::ToolDefinition {
                    name: __rt::ToolName::new(#server_name, #name),
                    description: #description,
                    annotations: __rt::Annotations {
                        title: #title,
                        read_only: #read_only,
                        destructive: #destructive,
                        idempotent: #idempotent,
                        open_world: #open_world,
                    },
                    arguments: #input,
                    output_schema: #returned.schema,
                    converses: #converses,
                    deprecated: #deprecated,
                    timeout: #timeout,
                    task: #task,
                    scopes: &[#(#scopes),*],
                    requires: &[#requires],
                    examples: &[#(#examples),*],
                    meta: &[#(#meta),*],
                    call: #call,
                }
            }
        }
        Kind::Resource => {
            let (uri, mime_type) = (&options.uri, option(options.mime_type.as_ref()));
            let arguments = arguments(item);
            quote! {
                #(#cfg)*
                __rt::ResourceDefinition {
                    uri: #uri,
                    name: #name,
                    title: #title,
                    description: #description,
                    mime_type: #mime_type,
                    arguments: #arguments,
                    call: #call,
                }
            }
        }
        Kind::Prompt => {
            let arguments = arguments(item);
            quote! {
                #(#cfg)*
                __rt::PromptDefinition {
                    name: #name,
                    title: #title,
                    description: #description,
                    arguments: #arguments,
                    call: #call,
                }
            }
        }
    }
}

/// The function that takes the arguments apart and calls the developer's one.
fn call(item: &Item, home: &Home) -> TokenStream {
    // Names of our own must not meet those of the developer.
    let local = |name: &str| Ident::new(name, Span::mixed_site());
    let [server, context, arguments] = ["server", "context", "arguments"].map(local);
    let mut taken = Vec::new();
    let mut passed = Vec::new();
    let mut lends = false;
    for param in &item.params {
        let sent = local(&format!("sent_{}", taken.len()));
        match param {
            Param::Lent(ty) => {
                lends = true;
                passed.push(quote_spanned!(ty.span()=> <#ty as __rt::Lend>::lend(#context)));
                continue;
            }
            Param::Whole(ty) => {
                let argument = argument_type(ty);
                taken.push(quote!(let #sent = #argument.take_whole(#arguments)?;));
            }
            Param::Sent(it) => {
                let (argument, index, name) = (argument_type(&it.sent), taken.len(), &it.name);
                let take = match it.absence {
                    Absence::Refused => quote!(take),
                    Absence::None => quote!(take_optional),
                    Absence::OuterNone => quote!(take_nullable),
                };
                taken.push(quote!(let #sent = #argument.#take(#arguments, #index, #name)?;));
            }
        }
        passed.push(sent.into_token_stream());
    }

    let function = &item.function;
    let target = match home {
        Home::Module => quote_spanned!(function.span()=> self::#function),
        Home::Type(ty) => quote_spanned!(function.span()=> <#ty>::#function),
    };
    if let (Home::Type(ty), true) = (home, item.takes_self) {
        passed.insert(0, quote!(__rt::downcast::<#ty>(#server)));
    }
    let returned = returned(item, &item.output.inferred);
    // The span makes rustc blame the developer's function for a future that isn't `Send`.
    let called = quote_spanned!(function.span()=> #target(#(#passed),*));
    let running = if item.is_async {
        quote_spanned!(function.span()=> #returned.after(#called))
    } else {
        quote_spanned!(function.span()=> #returned.of(move || #called))
    };

    let used = |name: &Ident, is_used: bool| {
        if is_used {
            name.to_token_stream()
        } else {
            quote!(_)
        }
    };
    let server = used(&server, item.takes_self);
    let context = used(&context, lends);
    let arguments = used(&arguments, !taken.is_empty());
    let output = match item.kind {
        Kind::Tool | Kind::Resource => quote!(__rt::Output),
        Kind::Prompt => quote!(__rt::Vec<__rt::Message>),
    };
    quote! {{
        fn __call<'a>(
            #server: &'a __rt::Instance,
            #context: &'a __rt::Context,
            #arguments: &__rt::Arguments<'_>,
        ) -> __rt::Called<'a, #output> {
            #(#taken)*
            __rt::Ok(#running)
        }
        __call
    }}
}

/// Whether something that the tool borrows lets it talk while it runs: the type knows.
fn converses(item: &Item) -> TokenStream {
    let lent = item.params.iter().filter_map(|it| match it {
        Param::Lent(ty) => Some(quote_spanned!(ty.span()=> <#ty as __rt::Lend>::CONVERSES)),
        Param::Sent(_) | Param::Whole(_) => None,
    });
    let lent: Vec<TokenStream> = lent.collect();
    if lent.is_empty() {
        quote!(false)
    } else {
        quote!(#(#lent)||*)
    }
}

fn input(item: &Item) -> TokenStream {
    let whole = item.params.iter().find_map(|it| match it {
        Param::Whole(ty) => Some(argument_type(ty)),
        Param::Sent(_) | Param::Lent(_) => None,
    });
    if let Some(whole) = whole {
        return quote!(__rt::Input::Whole(#whole.schema));
    }
    let arguments = arguments(item);
    quote!(__rt::Input::Arguments(#arguments))
}

fn arguments(item: &Item) -> TokenStream {
    let arguments = item.params.iter().filter_map(|it| match it {
        Param::Sent(it) => Some(argument(it)),
        Param::Whole(_) | Param::Lent(_) => None,
    });
    quote!(&[#(#arguments),*])
}

fn argument(argument: &Argument) -> TokenStream {
    let Argument {
        name,
        ty,
        description,
        ..
    } = argument;
    let required = argument.absence == Absence::Refused && argument.default.is_none();
    let default = option(argument.default.as_ref().map(|it| value_of(ty, it)));
    let described = argument_type(&argument.sent);
    let rules = rules(argument);
    quote! {
        __rt::ArgumentDefinition {
            name: #name,
            description: #description,
            required: #required,
            default: #default,
            schema: #described.schema,
            rules: #rules,
        }
    }
}

fn rules(argument: &Argument) -> TokenStream {
    let ty = &argument.ruled;
    let measure = quote_spanned!(ty.span()=> <#ty as __rt::Measured>::MEASURE);
    let of_value = |rule: &str, expression: &TokenStream| {
        let rule = Ident::new(rule, expression.span());
        let value = value_of(ty, expression);
        quote_spanned!(expression.span()=> __rt::Rule::#rule(#value))
    };
    let of_length = |rule: &str, expression: &TokenStream| {
        let rule = Ident::new(rule, expression.span());
        quote_spanned!(expression.span()=> __rt::Rule::#rule(#measure, #expression))
    };
    let rules = argument.rules.iter().map(|rule| match rule {
        Rule::Minimum(it) => of_value("Minimum", it),
        Rule::Maximum(it) => of_value("Maximum", it),
        Rule::ExclusiveMaximum(it) => of_value("ExclusiveMaximum", it),
        Rule::Example(it) => of_value("Example", it),
        Rule::MinLength(it) => of_length("MinLength", it),
        Rule::MaxLength(it) => of_length("MaxLength", it),
        Rule::ExclusiveMaxLength(it) => {
            of_length("MaxLength", &quote_spanned!(it.span()=> (#it) - 1))
        }
        Rule::Pattern(it) => quote!(__rt::Rule::Pattern(#it)),
        Rule::Format(it) => quote!(__rt::Rule::Format(__rt::Format::#it)),
        Rule::Header(it) => quote!(__rt::Rule::Header(#it)),
    });
    let rules = quote!(&[#(#rules),*]);
    let is_ranged = argument
        .rules
        .iter()
        .any(Rule::is_of_range)
        .then(|| quote_spanned!(ty.span()=> __rt::ranged::<#ty>()));
    let is_text = argument
        .is_text
        .then(|| quote_spanned!(ty.span()=> __rt::text::<#ty>()));
    let in_header = argument.header().map(|_| {
        let ty = &argument.sent;
        quote_spanned!(ty.span()=> __rt::in_header::<#ty>())
    });
    let checks: Vec<TokenStream> = is_ranged
        .into_iter()
        .chain(is_text)
        .chain(in_header)
        .collect();
    if checks.is_empty() {
        rules
    } else {
        quote!({ #(const _: () = #checks;)* #rules })
    }
}

/// The same tokens wherever the type is described or taken: rustc tells the same mistake once.
fn argument_type(ty: &Type) -> TokenStream {
    quote_spanned!(ty.span()=> __rt::argument::<#ty>())
}

/// The same tokens wherever the return type is described or converted.
fn returned(item: &Item, ty: &Type) -> TokenStream {
    match item.kind {
        Kind::Tool | Kind::Resource => quote_spanned!(ty.span()=> __rt::output::<#ty>()),
        Kind::Prompt => quote_spanned!(ty.span()=> __rt::messages::<#ty>()),
    }
}

/// A value of a type. A text stands for whatever is made of text, so that `"x"` is a good `String`.
fn value_of(ty: &Type, expression: &TokenStream) -> TokenStream {
    let span = expression.span();
    if syn::parse2::<LitStr>(expression.clone()).is_ok() {
        quote_spanned!(span=> || __rt::value::<#ty>(__rt::made_of(#expression)))
    } else {
        quote_spanned!(span=> || __rt::value::<#ty>(#expression))
    }
}

fn value(expression: &TokenStream) -> TokenStream {
    quote_spanned!(expression.span()=> || __rt::value(#expression))
}

fn option<T: ToTokens>(it: Option<T>) -> TokenStream {
    it.map_or_else(|| quote!(__rt::None), |it| quote!(__rt::Some(#it)))
}
