//! What references point to, written in their place: for readers who follow none.

use super::{
    Object, merge,
    pointer::{self, REFERENCES, References},
    size, walk,
    walk::{Course, Notes, Part, Pass, Place},
    words,
};
use serde_json::Value;

/// How many references within one another are followed: fewer where the result would be too large.
const NESTED: [usize; 5] = [8, 4, 2, 1, 0];
/// How often a schema is written within itself.
const TURNS: usize = 2;
/// The most JSON that references are replaced by, in bytes.
const LARGEST: usize = 64 << 10;

/// Writes in place of every reference what it refers to, with what stands beside it; what stands beside counts more.
pub(super) fn inline(mut root: Value, notes: &mut Notes) -> Value {
    if References::of(&root).is_empty() {
        return root;
    }
    pointer::settle(&mut root, notes);
    for nested in NESTED {
        let mut inlining = Inlining {
            root: &root,
            nested,
            left: LARGEST,
            is_too_large: false,
            open: Vec::new(),
            course: Course::of(&root),
        };
        let part = walk::visit(&mut inlining, root.clone(), Place::Elsewhere);
        if !inlining.is_too_large {
            notes.extend(inlining.course.notes);
            return part.schema;
        }
    }
    Value::Bool(true)
}

struct Inlining<'a> {
    root: &'a Value,
    nested: usize,
    left: usize,
    is_too_large: bool,
    /// The pointers that are followed at this moment.
    open: Vec<String>,
    course: Course,
}

impl Pass for Inlining<'_> {
    fn course(&mut self) -> &mut Course {
        &mut self.course
    }

    fn node(&mut self, schema: Value, place: Place) -> Part {
        let Value::Object(mut schema) = schema else {
            return Part::new(schema, false);
        };
        if self.is_too_large {
            return Part::new(schema, true);
        }
        let reference = schema.shift_remove(REFERENCES[0]);
        let mut is_wider = false;
        for keyword in &REFERENCES[1..] {
            is_wider |= schema.contains_key(*keyword);
            walk::remove(
                self,
                &mut schema,
                &[keyword],
                "it changes from place to place",
            );
        }
        self.leave_targets(&mut schema);
        if is_wider {
            let told = walk::open_unevaluated(self, &mut schema);
            words::tell(&mut schema, &told);
        }
        is_wider |= walk::descend(self, &mut schema);
        match reference {
            Some(Value::String(reference)) => {
                let (schema, of_reference) = self.follow(schema, &reference, place);
                Part::new(schema, is_wider || of_reference)
            }
            Some(_) => Part::new(schema, true),
            None => Part::new(schema, is_wider),
        }
    }
}

impl<'a> Inlining<'a> {
    /// Takes out what is there only to be referred to.
    fn leave_targets(&mut self, schema: &mut Object) {
        let known = [
            "$defs",
            "definitions",
            "$anchor",
            "$dynamicAnchor",
            "$recursiveAnchor",
        ];
        let length = self.course.path.len();
        let mut others: Vec<String> = Vec::new();
        for keyword in schema.keys() {
            if self.open.is_empty() && super::keyword::shape(keyword).is_none() {
                pointer::push(&mut self.course.path, keyword);
                if self.course.references.reach(&self.course.path) {
                    others.push(keyword.clone());
                }
                self.course.path.truncate(length);
            }
        }
        let others = others.iter().map(String::as_str);
        for keyword in known.into_iter().chain(others) {
            walk::remove(self, schema, &[keyword], "nothing refers to it any more");
        }
    }

    fn follow(&mut self, schema: Object, reference: &str, place: Place) -> (Value, bool) {
        let Some((pointer, target)) = pointer::resolved(self.root, reference) else {
            let what = format_args!(
                "left `$ref` out, as `{}` is not there",
                words::shortened(reference)
            );
            self.course.note(what);
            return (schema.into(), true);
        };
        let turns = self.open.iter().filter(|it| **it == pointer).count();
        if turns >= TURNS || self.open.len() >= self.nested {
            return (self.stub(schema, target, reference), true);
        }
        let Some(size) = size::within(target, self.left) else {
            self.is_too_large = true;
            return (schema.into(), true);
        };
        self.left -= size;
        self.open.push(pointer);
        let part = walk::visit(self, target.clone(), place);
        self.open.pop();
        let what = format_args!("wrote in place what `{}` is", words::shortened(reference));
        self.course.note(what);
        if schema.is_empty() {
            return (part.schema, part.is_wider);
        }
        let mut schema = Value::Object(schema);
        let is_wider = merge::merge_values(&mut schema, part.schema);
        (schema, part.is_wider || is_wider)
    }

    /// Ends a recursion: of what is left out, only the type stays.
    fn stub(&mut self, mut schema: Object, mut target: &'a Value, reference: &str) -> Value {
        for _ in 0..self.nested.max(TURNS) {
            let further = target.get("$ref").and_then(Value::as_str);
            let further = further.filter(|_| target.get("type").is_none());
            match further.and_then(|it| pointer::resolved(self.root, it)) {
                Some((_, further)) => target = further,
                None => break,
            }
        }
        let reference = words::shortened(reference);
        let what = format_args!("left `$ref` out, as `{reference}` would be too deep");
        self.course.note(what);
        if let Some(kind) = target.get("type") {
            let mut stub = Object::new();
            stub.insert("type".to_owned(), kind.clone());
            let merged = merge::merge(&mut schema, stub);
            words::tell(&mut schema, &merged.sentences);
        }
        words::tell(&mut schema, &["Nested further in the same way.".to_owned()]);
        schema.into()
    }
}
