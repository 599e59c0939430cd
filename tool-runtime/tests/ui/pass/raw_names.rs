//! Raw identifiers are sent without `r#`.
#![deny(warnings)]

use tool_runtime::{
    definition::{Input, ToolServer},
    tool_server,
};

#[derive(Default)]
pub struct Server;

#[tool_server(name = "raw", version = "1.0.0")]
impl Server {
    /// Has raw names.
    #[tool]
    pub async fn r#type(&self, r#in: bool, r#match: Option<u8>) -> &'static str {
        let _ = (r#in, r#match);
        "ok"
    }
}

fn main() {
    let tool = &Server::DEFINITION.tools[0];
    assert_eq!(tool.name, Server::TYPE);
    assert_eq!(tool.name.tool, "type");
    let Input::Arguments(arguments) = &tool.arguments else {
        panic!("{:?}", tool.arguments)
    };
    assert_eq!(arguments[0].name, "in");
    assert_eq!(arguments[1].name, "match");
}
