//! What one reader of schemas takes.

use std::fmt;

/// What one reader of schemas takes: a model's API, an agent's own parser, or both one after the other.
///
/// Every field that is a flag says whether the reader takes a thing. A constant names what is amiss and leaves the rest:
/// `Dialect { booleans: false, ..Dialect::ANY }`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of a reader by itself; any mix of them exists"
)]
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The keywords that it takes. Those of the others that are rules are told in words.
    pub keywords: Names,
    /// The values of `format` that it takes.
    pub formats: Names,
    /// `$ref`. Else what it refers to is written in its place, and recursion is cut after two turns.
    pub references: bool,
    /// `true` and `false` as schemas of properties and items (`additionalProperties` may be a flag everywhere).
    pub booleans: bool,
    /// `allOf`, `anyOf`, `oneOf`, `if` and `not` at the root, beside `"type": "object"`.
    pub root_combinators: bool,
    /// Other keywords beside `anyOf`. Else they go into its branches, the description into the first.
    pub beside_any_of: bool,
    /// A list of types, and `null` as a type.
    pub type_lists: bool,
    /// `"nullable": true`, as in `OpenAPI` 3.0. It is written only where `type_lists` are not taken.
    pub nullable: bool,
    /// Places without a type. Else one is written that fits, or a choice of all.
    pub untyped: bool,
    /// `"type": "array"` without `items`.
    pub bare_arrays: bool,
    /// `items` as a list of schemas, as in draft-07, and `prefixItems`.
    pub tuples: bool,
    /// `const`. Else an `enum` of one value is written.
    pub constants: bool,
    /// `enum` with anything but texts that are not empty, or without `"type": "string"`.
    pub any_enum: bool,
    /// `exclusiveMinimum` and `exclusiveMaximum`. Else `minimum` and `maximum` are written, for whole numbers one further.
    pub exclusive_bounds: bool,
    /// Structured output that is no object. Else it is wrapped as `{"result": …}`.
    pub any_output: bool,
}

impl Dialect {
    /// Takes everything.
    pub const ANY: Self = Self {
        keywords: Names::ALL,
        formats: Names::ALL,
        references: true,
        booleans: true,
        root_combinators: true,
        beside_any_of: true,
        type_lists: true,
        nullable: true,
        untyped: true,
        bare_arrays: true,
        tuples: true,
        constants: true,
        any_enum: true,
        exclusive_bounds: true,
        any_output: true,
    };

    /// Google's function declarations, `Schema` of <https://ai.google.dev/api/caching#Schema>, in its strictest
    /// deployments: those refuse `default` and `example`, which the page names; `any_of` beside any other field
    /// ("must be the only field set"); a schema without type ("didn't specify the schema type field"); and an `enum`
    /// of other than texts ("only allowed for STRING type", "cannot be empty").
    pub const GEMINI: Self = Self {
        keywords: Names::only(&[
            "type",
            "format",
            "title",
            "description",
            "nullable",
            "enum",
            "items",
            "minItems",
            "maxItems",
            "properties",
            "required",
            "minProperties",
            "maxProperties",
            "propertyOrdering",
            "minLength",
            "maxLength",
            "pattern",
            "minimum",
            "maximum",
            "anyOf",
        ]),
        formats: Names::only(&["date-time", "enum", "float", "double", "int32", "int64"]),
        references: false,
        booleans: false,
        root_combinators: false,
        beside_any_of: false,
        type_lists: false,
        nullable: true,
        untyped: false,
        bare_arrays: false,
        tuples: false,
        constants: false,
        any_enum: false,
        exclusive_bounds: false,
        any_output: false,
    };

    /// Anthropic's Messages API: "`input_schema` does not support oneOf, allOf, or anyOf at the top level".
    pub const ANTHROPIC: Self = Self {
        root_combinators: false,
        any_output: false,
        ..Self::ANY
    };

    /// OpenAI's functions without strict mode: "schema must have type 'object' and not have
    /// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", "array schema missing items".
    pub const OPENAI: Self = Self {
        root_combinators: false,
        bare_arrays: false,
        any_output: false,
        ..Self::ANY
    };

    /// What both take: an engine, and the models behind it.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self {
            keywords: self.keywords.both(other.keywords),
            formats: self.formats.both(other.formats),
            references: self.references && other.references,
            booleans: self.booleans && other.booleans,
            root_combinators: self.root_combinators && other.root_combinators,
            beside_any_of: self.beside_any_of && other.beside_any_of,
            type_lists: self.type_lists && other.type_lists,
            nullable: self.nullable && other.nullable,
            untyped: self.untyped && other.untyped,
            bare_arrays: self.bare_arrays && other.bare_arrays,
            tuples: self.tuples && other.tuples,
            constants: self.constants && other.constants,
            any_enum: self.any_enum && other.any_enum,
            exclusive_bounds: self.exclusive_bounds && other.exclusive_bounds,
            any_output: self.any_output && other.any_output,
        }
    }

    /// Whether it takes a keyword at all.
    pub(super) fn takes(&self, keyword: &str) -> bool {
        let is_taken = match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" | "$defs" | "definitions" => self.references,
            "const" => self.constants,
            "prefixItems" => self.tuples,
            "exclusiveMinimum" | "exclusiveMaximum" => self.exclusive_bounds,
            _ => true,
        };
        is_taken && self.keywords.has(keyword)
    }
}

/// A set of names: all there are, or some of a list.
#[derive(Clone, Copy)]
pub struct Names {
    list: &'static [&'static str],
    /// A bit per name of the list; `None` for all names there are.
    taken: Option<u128>,
}

impl Names {
    /// All names.
    pub const ALL: Self = Self {
        list: &[],
        taken: None,
    };

    /// The names of a list, of which the first 128 count.
    pub const fn only(list: &'static [&'static str]) -> Self {
        Self {
            list,
            taken: Some(u128::MAX),
        }
    }

    /// Whether a name is among them.
    pub const fn has(&self, name: &str) -> bool {
        let Some(taken) = self.taken else {
            return true;
        };
        let mut index = 0;
        while index < self.list.len() && index < 128 {
            if taken >> index & 1 == 1 && is_same(self.list[index], name) {
                return true;
            }
            index += 1;
        }
        false
    }

    /// The names that are in both.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        let Some(mut taken) = self.taken else {
            return other;
        };
        let mut index = 0;
        while index < self.list.len() && index < 128 {
            if !other.has(self.list[index]) {
                taken &= !(1 << index);
            }
            index += 1;
        }
        Self {
            list: self.list,
            taken: Some(taken),
        }
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.taken.is_none() {
            return f.write_str("all");
        }
        let names = self.list.iter().filter(|it| self.has(it));
        f.debug_set().entries(names).finish()
    }
}

/// `==` for texts, which constants can't call.
const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}
