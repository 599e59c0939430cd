//! Where a server may stand.
#![deny(warnings)]

use tool_runtime::{definition::ToolServer, tool_server};

pub mod elsewhere {
    #[derive(Default)]
    pub struct Store<T>(pub T);
}

#[tool_server(name = "store", version = "1.0.0")]
impl elsewhere::Store<u8> {
    /// Gets the number, or another one.
    #[tool]
    pub async fn get(
        &self,
        #[arg(default = Self::new(7).0)] other: u8,
        #[arg(default = Some(Some(1)))] nullable: Option<Option<u8>>,
    ) -> String {
        let _ = nullable;
        (self.0 + other).to_string()
    }

    pub fn new(number: u8) -> Self {
        Self(number)
    }
}

pub struct Borrowing<'a>(pub &'a str);

#[tool_server(name = "borrowing", version = "1.0.0", manual)]
impl Borrowing<'_> {
    /// Gets the text.
    #[tool]
    pub async fn get(&self) -> &str {
        self.0
    }
}

fn main() {
    struct Local;

    #[tool_server(name = "local", version = "1.0.0", manual)]
    impl Local {
        /// Is found in a test.
        #[tool]
        fn get(&self) -> &'static str {
            "local"
        }
    }

    assert_eq!(Local.get(), "local");
    assert_eq!(Local::GET.server, "local");
    assert_eq!(elsewhere::Store::<u8>::GET.tool, "get");
    assert_eq!(<elsewhere::Store<u8>>::DEFINITION.tools[0].name.server, "store");
    assert_eq!(Borrowing::DEFINITION.tools.len(), 1);
}
