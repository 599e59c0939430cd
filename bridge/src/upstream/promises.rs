//! Whether results are what their tools promise. One that isn't is handed on all the same, and told once.

use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tool_runtime::{Check, Enforcement, Output};

/// How many bytes of structured content are held to a schema at most.
const LARGEST: usize = 256 * 1024;

/// The promises of a server's tools that have been called, by name.
#[derive(Default)]
pub(super) struct Promises(Mutex<BTreeMap<String, Arc<Promise>>>);

struct Promise {
    /// `None` if the schema is none.
    check: Option<Check>,
    is_broken: AtomicBool,
}

impl fmt::Debug for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Promises({})", self.promises().len())
    }
}

impl Promises {
    /// Forgets all: the tools may have changed.
    pub(super) fn forget(&self) {
        self.promises().clear();
    }

    /// Returns where a result is wrong, as a JSON pointer, the first time that one is: what stands there stays out of the
    /// log. What is to be `wrapped` is held to the schema as it will be.
    pub(super) fn broken(
        &self,
        tool: &str,
        schema: &Arc<Map<String, Value>>,
        output: &Output,
        wrapped: bool,
    ) -> Option<String> {
        let structured = output.structured.as_ref().filter(|_| !output.is_error)?;
        let json = structured.get();
        if json.len() > LARGEST {
            return None;
        }
        let json = if wrapped {
            Cow::from(format!("{{\"result\":{json}}}"))
        } else {
            json.into()
        };
        let promise = self.of(tool, schema);
        let check = promise.check.as_ref()?;
        if check.accept(&json).is_some() || promise.is_broken.swap(true, Ordering::Relaxed) {
            return None;
        }
        let violations = check.repair(&json).err().unwrap_or_default();
        let first = violations.into_iter().next();
        Some(first.map(|it| it.path).unwrap_or_default())
    }

    fn of(&self, tool: &str, schema: &Arc<Map<String, Value>>) -> Arc<Promise> {
        let mut promises = self.promises();
        let promise = promises.entry(tool.to_owned()).or_insert_with(|| {
            let check = Check::new(schema.clone(), Enforcement::Schema).ok();
            Arc::new(Promise {
                check,
                is_broken: AtomicBool::new(false),
            })
        });
        promise.clone()
    }

    fn promises(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Promise>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, value::to_raw_value};

    fn giving(structured: &Value) -> Output {
        Output {
            structured: Some(to_raw_value(structured).expect("it is JSON")),
            ..Output::default()
        }
    }

    #[test]
    fn res_074_a_broken_promise_is_told_once() {
        let schema = json!({
            "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"],
        });
        let schema = Arc::new(schema.as_object().expect("it is one").clone());
        let promises = Promises::default();
        let broken = |output: &Output| promises.broken("a", &schema, output, false);
        assert_eq!(broken(&giving(&json!({ "n": 1, "extra": 2 }))), None);
        assert_eq!(broken(&Output::default()), None);
        let failure = Output {
            is_error: true,
            ..giving(&json!({ "code": "E1" }))
        };
        assert_eq!(broken(&failure), None);
        let place = broken(&giving(&json!({ "n": "one" })));
        assert_eq!(place.as_deref(), Some("/n"));
        assert_eq!(broken(&giving(&json!({ "n": "two" }))), None);
        promises.forget();
        assert!(broken(&giving(&json!({}))).is_some());
    }

    #[test]
    fn what_will_be_wrapped_is_held_to_the_wrapped_schema() {
        let schema = json!({ "type": "object", "properties": { "result": { "type": "array" } } });
        let schema = Arc::new(schema.as_object().expect("it is one").clone());
        let promises = Promises::default();
        let broken = |output: &Output| promises.broken("a", &schema, output, true);
        assert_eq!(broken(&giving(&json!([1]))), None);
        assert!(broken(&giving(&json!(1))).is_some());
    }
}
