//! Everything else in a server stays as it is.
#![deny(warnings)]

use tool_runtime::tool_server;

#[tool_server(name = "rest", version = "1.0.0")]
pub mod rest {
    #![allow(non_upper_case_globals)]
    //! Docs inside.

    use std::{
        collections::{BTreeMap, HashMap},
        fmt,
    };

    pub const block: u8 = { const ONE: u8 = 1; ONE + ONE };
    pub static PAIR: [u8; { const TWO: usize = 2; TWO }] = [1, 2];
    pub type Map = BTreeMap<u8, HashMap<u8, u8>>;

    pub struct Unit;
    pub struct Tuple(pub u8);
    pub struct Named<const N: usize> {
        pub list: [u8; N],
    }

    impl Named<{ 1 + 1 }> {
        pub const fn first(&self) -> u8 {
            self.list[0]
        }
    }

    impl fmt::Display for Unit {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("unit")
        }
    }

    macro_rules! functions {
        ($($name:ident)*) => { $(pub fn $name() {})* };
    }
    functions! { a b }
    functions!(c);

    pub trait Does {
        fn it(&self) {}
    }

    pub extern "C" fn foreign() {}

    /// Is the only tool.
    #[tool_runtime::tool]
    pub const fn tool(number: u8) -> &'static str {
        let _ = number;
        "tool"
    }

    pub mod inside {
        pub async fn tool() {}
    }
}

fn main() {
    rest::a();
    rest::b();
    rest::c();
    rest::foreign();
    assert_eq!(rest::Named { list: [rest::block, rest::PAIR[0]] }.first(), 2);
    assert_eq!(rest::Unit.to_string() + rest::tool(1), "unittool");
    drop((rest::Map::new(), rest::Tuple(1), rest::inside::tool()));
    assert_eq!(rest::tools::TOOL.tool, "tool");
}
