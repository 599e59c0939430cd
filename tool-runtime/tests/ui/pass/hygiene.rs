//! Names of the developer that clash with names of the macro.
#![deny(warnings)]

use tool_runtime::{Context, tool_server};

/// Clashes.
#[tool_server(name = "clash", version = "1.0.0")]
pub mod clash {
    use super::Context;

    #[allow(dead_code)]
    enum Option {
        Some,
    }
    #[allow(dead_code)]
    type Result = ();
    #[allow(dead_code)]
    struct Box;
    #[allow(dead_code)]
    struct String;
    #[allow(dead_code)]
    struct Vec;
    #[allow(unused_macros)]
    macro_rules! concat {
        () => {};
    }
    #[allow(unused_macros)]
    macro_rules! line {
        () => {};
    }

    /// Has all of the macro's own local names.
    #[tool]
    #[doc = include_str!("../data/description.md")]
    pub async fn f(
        context: u32,
        server: u32,
        arguments: u32,
        sent_0: u32,
        __call: u32,
        cx: &Context,
    ) -> &'static str {
        let _ = (context, server, arguments, sent_0, __call, &cx.caller);
        "ok"
    }

    /// Has the macro's name of a function.
    #[tool(name = "call")]
    pub fn __call(self_: u32) {
        let _ = self_;
    }
}

/// A server that a macro writes.
macro_rules! server {
    ($module:ident, $name:literal, $function:ident($argument:ident: $type:ty) = $default:expr) => {
        #[tool_server(name = $name, version = "1.0.0")]
        pub mod $module {
            /// Is written by a macro.
            #[tool]
            pub async fn $function(#[arg(default = $default)] $argument: $type) {
                let _ = $argument;
            }
        }
    };
}
server!(written, "written", f(context: Option<u32>) = Some(1));

fn main() {
    assert_eq!(clash::tools::__CALL.tool, "call");
    assert_eq!(written::tools::F.server, "written");
}
