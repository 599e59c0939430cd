//! What is published stays as it is, unless somebody means to change it.

use notes::Notes;
use tool_runtime::{Registry, RegistryError};

#[test]
fn tools_stay_as_published() -> Result<(), RegistryError> {
    let registry = Registry::empty().with(Notes::default())?;
    tool_runtime::assert_tools!("tests/it/tools.json", registry);
    Ok(())
}
