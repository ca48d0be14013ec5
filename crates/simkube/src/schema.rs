//! What a CustomResourceDefinition's schema does to an object: prune, default, validate.
//!
//! A schema is compiled once, when the definition is installed. Writers then ask for the part they
//! touch (`at("status")`), so that a status write never walks the spec.

mod compile;
mod defaults;
mod fine;
mod format;
mod prune;
mod rule;
mod sound;
mod structural;
#[cfg(test)]
mod tests;
mod validate;
mod written;

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use rule::Rule;

/// One reason why an object is invalid, as `details.causes[]` of a `Status` carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Kubernetes' name of the kind of error, such as `FieldValueRequired`.
    pub reason: &'static str,
    /// What is wrong, without the field's name.
    pub message: String,
    /// Path of the field, such as `spec.steps[0].weight`.
    pub field: String,
}

/// Why a schema cannot be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct SchemaError {
    /// Where in the schema, such as `properties[spec].items`.
    pub path: String,
    /// What was expected there.
    pub problem: String,
}

/// Everything that is wrong with a schema as it is written at this place of a definition.
pub(crate) fn problems(schema: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if fine::is_fine(schema) {
        return causes;
    }
    if written::is_readable(schema) {
        causes = structural::problems(schema, path);
        if causes.is_empty() {
            causes = defaults::problems(schema, &structural::Path::Root(path));
        }
    }
    causes.extend(written::problems(schema, path));
    causes
}

/// A compiled structural schema of one kind.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Arc<Node>,
    has_rules: bool,
}

impl Schema {
    /// Compiles `openAPIV3Schema`.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let (root, has_rules) = compile::compile(schema)?;
        Ok(Self { root: Arc::new(root), has_rules })
    }

    /// The part of the schema for one top-level field; `None` if it has no such field.
    pub fn at<'a>(&'a self, field: &'a str) -> Option<FieldSchema<'a>> {
        // They are so few that they are sooner walked than searched.
        let (_, node) = self.root.properties.iter().find(|(name, _)| **name == *field)?;
        Some(FieldSchema { path: field, ..self.part(node) })
    }

    /// True if top-level fields the schema does not name are kept.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.root.preserves_unknown
    }

    /// The top-level fields every object must have.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.root.required.iter().map(|field| &**field)
    }

    /// Removes what the schema does not name. The object's own `apiVersion`, `kind` and `metadata`
    /// are left alone.
    pub fn prune(&self, object: &mut Value) {
        self.whole().prune(object);
    }

    /// Puts in the defaults of absent fields.
    pub fn default(&self, object: &mut Value) {
        self.whole().default(object);
    }

    /// Everything that is wrong with a whole object. `old` is the stored one in an update: what is
    /// invalid but unchanged is accepted.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        self.whole().validate(object, old)
    }

    /// Everything that is wrong with the parts of an object that a write has changed: part, new
    /// value, old value. `more` is what else is wrong with it; rules are asked only of an object
    /// that is otherwise right.
    pub fn validate_parts<'a>(
        &self,
        parts: impl IntoIterator<Item = (FieldSchema<'a>, &'a Value, Option<&'a Value>)>,
        more: Vec<Cause>,
    ) -> Vec<Cause> {
        validate::parts(&parts.into_iter().collect::<Vec<_>>(), more, self.has_rules)
    }

    /// Paths of fields that `prune` would remove, for strict field validation.
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        self.whole().unknown_fields(object)
    }

    fn whole(&self) -> FieldSchema<'_> {
        self.part(&self.root)
    }

    fn part<'a>(&self, node: &'a Node) -> FieldSchema<'a> {
        FieldSchema {
            node,
            path: "",
            has_rules: self.has_rules,
            by_itself: false,
            known_sound: false,
        }
    }
}

/// One top-level field of a [`Schema`]; does to a subtree what the schema does to the whole.
#[derive(Clone, Copy, Debug)]
pub struct FieldSchema<'a> {
    node: &'a Node,
    path: &'a str,
    has_rules: bool,
    by_itself: bool,
    known_sound: bool,
}

impl FieldSchema<'_> {
    /// The same for a write to a subresource: messages then name fields from here on, causes still
    /// from the top.
    pub fn by_itself(self) -> Self {
        Self { by_itself: true, ..self }
    }

    /// The same for a value of which [`Part::is_sound`] has been asked: if it is, rules alone are
    /// left to be validated.
    pub fn known_sound(self, known_sound: bool) -> Self {
        Self { known_sound, ..self }
    }

    /// Is it certain that the value would be neither pruned nor defaulted, and that nothing but
    /// rules could be wrong with it? True of nearly all that is written, and quickly seen.
    pub fn is_sound(&self, value: &Value) -> bool {
        let is_sound = sound::is_sound(self.node, value);
        debug_assert!(!is_sound || self.is_left_alone(value), "the slower walks agree: {value}");
        is_sound
    }

    /// Can validation find anything? Not in a sound value of which no rule speaks.
    pub fn can_be_wrong(&self) -> bool {
        !self.known_sound || self.node.holds.rules
    }

    /// The same as [`Part::is_sound`], seen slowly.
    fn is_left_alone(&self, value: &Value) -> bool {
        let mut completed = value.clone();
        self.prune(&mut completed);
        self.default(&mut completed);
        completed == *value
            && validate::parts(&[(*self, value, None)], Vec::new(), false).is_empty()
    }

    /// Removes what the schema does not name; touches nothing if there is nothing to remove.
    pub fn prune(&self, value: &mut Value) {
        prune::prune(self.node, value);
    }

    /// Puts in the defaults of absent fields.
    pub fn default(&self, value: &mut Value) {
        prune::default(self.node, value);
    }

    /// The value this field gets when it is absent, if it has a default.
    pub fn default_value(&self) -> Option<&Value> {
        self.node.default.as_ref()
    }

    /// Everything that is wrong with the value.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<Cause> {
        validate::parts(&[(*self, value, old)], Vec::new(), self.has_rules)
    }

    /// Paths of fields that `prune` would remove.
    pub fn unknown_fields(&self, value: &Value) -> Vec<String> {
        prune::unknown_fields(self.node, self.path, value)
    }
}

/// One compiled level of a schema.
#[derive(Debug, Default)]
struct Node {
    kind: Option<JsonType>,
    demand: Demand,
    nullable: bool,
    preserves_unknown: bool,
    /// The value is itself a Kubernetes object: `apiVersion`, `kind`, `metadata` are kept.
    is_resource: bool,
    /// Sorted by name.
    properties: Vec<(Box<str>, Node)>,
    additional: Additional,
    items: Option<Box<Node>>,
    list: ListKind,
    required: Vec<Box<str>>,
    /// A field is required that no property describes.
    requires_unnamed: bool,
    /// An object without this field lacks something: it is required, or has a default.
    is_needed: bool,
    /// How many of the properties are needed.
    needed: usize,
    default: Option<Value>,
    /// What is worth a walk from here.
    holds: Holds,
    checks: Option<Box<Checks>>,
    rules: Vec<Rule>,
}

impl Node {
    /// Finds the schemas of the fields of an object.
    fn children(&self) -> Children<'_> {
        Children { node: self, properties: &self.properties }
    }

    /// The schema of one field that is named.
    fn property(&self, name: &str) -> Option<&Node> {
        let found = self.properties.binary_search_by(|(known, _)| (**known).cmp(name));
        found.ok().map(|at| &self.properties[at].1)
    }
}

/// The schemas of the fields of one object, asked for in the order of their names: fields and
/// properties are both sorted, so one walk serves all.
struct Children<'a> {
    node: &'a Node,
    /// Those that may still come.
    properties: &'a [(Box<str>, Node)],
}

impl<'a> Children<'a> {
    /// The schema of the next field.
    fn find(&mut self, name: &str) -> Option<&'a Node> {
        while let Some(((property, child), rest)) = self.properties.split_first() {
            match (**property).cmp(name) {
                Ordering::Less => self.properties = rest,
                Ordering::Equal => return Some(child),
                Ordering::Greater => break,
            }
        }
        match &self.node.additional {
            Additional::Each(each) => Some(each),
            Additional::None | Additional::Any => None,
        }
    }
}

/// What stands somewhere in a level or below it. Most have nothing of it, and are not walked.
#[derive(Clone, Copy, Debug, Default)]
struct Holds {
    /// Values for absent fields.
    defaults: bool,
    /// Lists whose items must be unique.
    unique_lists: bool,
    /// Validation rules.
    rules: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntegerOrString,
}

/// What is demanded of a text, a number or a flag besides its type.
#[derive(Clone, Copy, Debug, Default)]
enum Demand {
    Nothing,
    /// That a text has this format.
    Format(format::Test),
    /// More than can be seen at a glance.
    #[default]
    More,
}

#[derive(Debug, Default)]
enum Additional {
    /// Other fields are unknown.
    #[default]
    None,
    /// Any other field is fine.
    Any,
    /// Other fields follow this schema.
    Each(Box<Node>),
}

#[derive(Debug, Default, PartialEq, Eq)]
enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<Box<str>>),
}

/// Constraints on values. Most nodes have none.
#[derive(Debug, Default)]
struct Checks {
    choices: Vec<Value>,
    pattern: Option<(Box<str>, regex_lite::Regex)>,
    format: Option<(Box<str>, format::Test)>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    multiple_of: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    one_of: Vec<Node>,
    not: Option<Node>,
}

impl Checks {
    /// Does it hold other schemas that the value is measured by? Hardly any does.
    fn has_alternatives(&self) -> bool {
        let lists = [&self.all_of, &self.any_of, &self.one_of];
        self.not.is_some() || lists.iter().any(|list| !list.is_empty())
    }
}
