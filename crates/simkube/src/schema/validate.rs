//! Everything that is wrong with a value, in the API server's words.

use std::fmt;

use serde_json::Value;

use super::{Additional, Cause, Checks, Demand, FieldSchema, JsonType, ListKind, Node};

const BLOCKED: &str = "some validation rules were not checked because the object was invalid; \
                       correct the existing errors to complete validation";

/// A part of an object with its new and its old value.
type Changed<'a> = (FieldSchema<'a>, &'a Value, Option<&'a Value>);

/// Validates parts of one object. With an old value, errors in unchanged places are forgiven.
pub fn parts(parts: &[Changed<'_>], more: Vec<Cause>, has_rules: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (part, value, old) in parts.iter().filter(|(part, ..)| !part.known_sound) {
        causes.extend(shape_and_lists(part, value, *old));
    }
    causes.extend(more);
    if !has_rules {
        return causes;
    }
    if causes.iter().any(is_blocking) {
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: null: {BLOCKED}"),
            field: "<nil>".into(),
        });
        return causes;
    }
    for (part, value, old) in parts {
        let mut found = Found::new(part);
        found.rules(part.node, &root(part), value, *old);
        causes.extend(found.causes);
    }
    causes
}

fn shape_and_lists(part: &FieldSchema, value: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut found = Found::new(part);
    found.shape(part.node, &root(part), value, None);
    if !found.causes.is_empty() && old.is_some() {
        // Comparing with the old value costs: only when there is something to forgive.
        found = Found { forgiving: true, ..Found::new(part) };
        found.shape(part.node, &root(part), value, old);
    }
    found.lists(part.node, &root(part), value);
    found.causes
}

fn root<'a>(part: &FieldSchema<'a>) -> Path<'a> {
    if part.path.is_empty() { Path::Root } else { Path::Field(&Path::Root, part.path) }
}

fn is_blocking(cause: &Cause) -> bool {
    matches!(
        cause.reason,
        "FieldValueNotSupported"
            | "FieldValueRequired"
            | "FieldValueTooLong"
            | "FieldValueTooMany"
            | "FieldValueTypeInvalid"
    )
}

/// A path that costs nothing until it is printed.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
    /// An entry of a map, where list and rule errors name it by key.
    Key(&'a Path<'a>, &'a str),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Index(parent, at) => write!(f, "{parent}[{at}]"),
            Self::Key(parent, key) => write!(f, "{parent}[{key}]"),
        }
    }
}

struct Found {
    causes: Vec<Cause>,
    forgiving: bool,
    /// How much of a path messages leave out: all up to the subresource that is written.
    shown_from: usize,
}

impl Found {
    fn new(part: &FieldSchema) -> Self {
        let shown_from = if part.by_itself { part.path.len() + 1 } else { 0 };
        Self { causes: Vec::new(), forgiving: false, shown_from }
    }

    fn shape(&mut self, node: &Node, path: &Path, value: &Value, old: Option<&Value>) {
        if self.forgiving && old == Some(value) {
            return;
        }
        if value.is_null() && node.nullable {
            return;
        }
        if let Some(kind) = node.kind
            && !kind.accepts(value)
        {
            let expected = kind.name();
            let actual = type_name(value);
            self.type_invalid(path, &format!("{actual:?}"), expected, actual);
        }
        if let Some(checks) = &node.checks {
            self.checks(checks, path, value);
        }
        match value {
            Value::Object(fields) => {
                // An object within an object must say what it is.
                let is_embedded = node.is_resource && !matches!(path, Path::Root);
                let of_embedded: &[&str] = if is_embedded { &["apiVersion", "kind"] } else { &[] };
                let required = node.required.iter().map(|name| &**name);
                for name in required.chain(of_embedded.iter().copied()) {
                    if !fields.contains_key(name) {
                        self.add(&Path::Field(path, name), "FieldValueRequired", "Required value");
                    }
                }
                let mut children = node.children();
                for (name, value) in fields {
                    // The metadata that every object has is checked by the server itself.
                    let is_checked = node.is_resource && name == "metadata";
                    let child = children.find(name).filter(|_| !is_checked);
                    if let Some(child) = child.filter(|child| !child.is_fine(value)) {
                        let old = old.and_then(|old| old.get(name));
                        self.shape(child, &Path::Field(path, name), value, old);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(each) = &node.items {
                    for (at, item) in items.iter().enumerate() {
                        let old = old.and_then(|old| counterpart(node, item, old));
                        self.shape(each, &Path::Index(path, at), item, old);
                    }
                }
            }
            _ => {}
        }
    }

    fn checks(&mut self, checks: &Checks, path: &Path, value: &Value) {
        if !checks.choices.is_empty() && !checks.choices.contains(value) {
            let choices: Vec<String> = checks.choices.iter().map(quoted).collect();
            let message = format!(
                "Unsupported value: {}: supported values: {}",
                shown(value),
                choices.join(", ")
            );
            self.add(path, "FieldValueNotSupported", &message);
        }
        match value {
            Value::String(text) => self.text(checks, path, value, text),
            Value::Number(number) => {
                self.number(checks, path, value, number.as_f64().unwrap_or_default());
            }
            Value::Array(items) => {
                let count = items.len() as u64;
                self.too_few(path, count, checks.min_items, "items");
                self.too_many(path, count, checks.max_items);
            }
            Value::Object(fields) => {
                let count = fields.len() as u64;
                self.too_few(path, count, checks.min_properties, "properties");
                self.too_many(path, count, checks.max_properties);
            }
            Value::Null | Value::Bool(_) => {}
        }
        self.alternatives(checks, path, value);
    }

    /// Of length and pattern, only the first that is wrong is told.
    fn text(&mut self, checks: &Checks, path: &Path, value: &Value, text: &str) {
        let length = || text.chars().count() as u64;
        if let Some(most) = checks.max_length
            && length() > most
        {
            let message = format!("Too long: may not be more than {most} bytes");
            self.add(path, "FieldValueTooLong", &message);
        } else if let Some(least) = checks.min_length
            && length() < least
        {
            self.invalid(path, value, &format!("should be at least {least} chars long"));
        } else if let Some((pattern, regex)) = &checks.pattern
            && !regex.is_match(text)
        {
            self.invalid(path, value, &format!("should match '{pattern}'"));
        }
        if let Some((name, test)) = &checks.format
            && !test(text)
        {
            self.type_invalid(path, &shown(value), name, text);
        }
    }

    fn number(&mut self, checks: &Checks, path: &Path, value: &Value, number: f64) {
        if let Some(most) = checks.maximum
            && (number > most || (checks.exclusive_maximum && number >= most))
        {
            let or_equal = if checks.exclusive_maximum { "" } else { " or equal to" };
            self.invalid(path, value, &format!("should be less than{or_equal} {most}"));
        }
        if let Some(least) = checks.minimum
            && (number < least || (checks.exclusive_minimum && number <= least))
        {
            let or_equal = if checks.exclusive_minimum { "" } else { " or equal to" };
            self.invalid(path, value, &format!("should be greater than{or_equal} {least}"));
        }
        if let Some(step) = checks.multiple_of
            && (number / step).fract() != 0.0
        {
            self.invalid(path, value, &format!("should be a multiple of {step}"));
        }
    }

    /// The server names no field here, and adds what is wrong with the first alternative.
    fn alternatives(&mut self, checks: &Checks, path: &Path, value: &Value) {
        if !checks.has_alternatives() {
            return;
        }
        for one in &checks.all_of {
            self.shape(one, path, value, None);
        }
        let causes_of = |one: &Node| {
            let mut found =
                Found { causes: Vec::new(), forgiving: false, shown_from: self.shown_from };
            found.shape(one, path, value, None);
            found.causes
        };
        let any: Vec<Vec<Cause>> = checks.any_of.iter().map(causes_of).collect();
        let one: Vec<Vec<Cause>> = checks.one_of.iter().map(causes_of).collect();
        let is_forbidden = checks.not.as_ref().is_some_and(|not| causes_of(not).is_empty());
        if !any.is_empty() && !any.iter().any(Vec::is_empty) {
            self.no_alternative(path, "must validate at least one schema (anyOf)");
            self.causes.extend(any.into_iter().next().unwrap_or_default());
        }
        match one.iter().filter(|causes| causes.is_empty()).count() {
            0 if !one.is_empty() => {
                let text = "must validate one and only one schema (oneOf). Found none valid";
                self.no_alternative(path, text);
                self.causes.extend(one.into_iter().next().unwrap_or_default());
            }
            0 | 1 => {}
            many => {
                let text = "must validate one and only one schema (oneOf). Found";
                self.no_alternative(path, &format!("{text} {many} valid alternatives"));
            }
        }
        if is_forbidden {
            self.no_alternative(path, "must not validate the schema (not)");
        }
    }

    fn no_alternative(&mut self, path: &Path, text: &str) {
        self.causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: \"\": \"{}\" {text}", self.shown_path(path)),
            field: "<nil>".into(),
        });
    }

    /// Items of sets and of lists with keys must be unique.
    fn lists(&mut self, node: &Node, path: &Path, value: &Value) {
        if !node.holds.unique_lists {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(child) = node.property(name) {
                        self.lists(child, &Path::Field(path, name), value);
                    } else if let Additional::Each(each) = &node.additional {
                        self.lists(each, &Path::Key(path, name), value);
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let is_repeated = match &node.list {
                        ListKind::Atomic => false,
                        ListKind::Set => items[..at].contains(item),
                        ListKind::Map(keys) => {
                            items[..at].iter().any(|one| same_keys(keys, one, item))
                        }
                    };
                    if is_repeated {
                        let message = format!("Duplicate value: {}", duplicate(&node.list, item));
                        self.add(&Path::Index(path, at), "FieldValueDuplicate", &message);
                    }
                    if let Some(each) = &node.items {
                        self.lists(each, &Path::Index(path, at), item);
                    }
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, node: &Node, path: &Path, value: &Value, old: Option<&Value>) {
        if value.is_null() || !node.holds.rules {
            return;
        }
        for rule in &node.rules {
            if let Some(message) = rule.broken(value, old) {
                self.add(path, rule.reason, &format!("Invalid value: {message}"));
            }
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(child) = node.property(name) {
                        self.rules(child, &Path::Field(path, name), value, old);
                    } else if let Additional::Each(each) = &node.additional {
                        self.rules(each, &Path::Key(path, name), value, old);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(each) = &node.items {
                    for (at, item) in items.iter().enumerate() {
                        let old = old.and_then(|old| counterpart(node, item, old));
                        self.rules(each, &Path::Index(path, at), item, old);
                    }
                }
            }
            _ => {}
        }
    }

    fn too_few(&mut self, path: &Path, count: u64, least: Option<u64>, what: &str) {
        if let Some(least) = least
            && count < least
        {
            let text = format!("should have at least {least} {what}");
            self.invalid(path, &Value::from(count), &text);
        }
    }

    fn too_many(&mut self, path: &Path, count: u64, most: Option<u64>) {
        if let Some(most) = most
            && count > most
        {
            let items = if most == 1 { "item" } else { "items" };
            let message = format!("Too many: {count}: must have at most {most} {items}");
            self.add(path, "FieldValueTooMany", &message);
        }
    }

    fn invalid(&mut self, path: &Path, value: &Value, text: &str) {
        let message = format!("Invalid value: {}: {}", shown(value), self.in_body(path, text));
        self.add(path, "FieldValueInvalid", &message);
    }

    fn type_invalid(&mut self, path: &Path, shown: &str, expected: &str, actual: &str) {
        let text = self.in_body(path, &format!("must be of type {expected}: {actual:?}"));
        let message = format!("Invalid value: {shown}: {text}");
        self.add(path, "FieldValueTypeInvalid", &message);
    }

    fn in_body(&self, path: &Path, text: &str) -> String {
        format!("{} in body {text}", self.shown_path(path))
    }

    fn shown_path(&self, path: &Path) -> String {
        path.to_string().get(self.shown_from..).unwrap_or_default().to_owned()
    }

    fn add(&mut self, path: &Path, reason: &'static str, message: &str) {
        self.causes.push(Cause { reason, message: message.to_owned(), field: path.to_string() });
    }
}

impl Node {
    /// Is it certain at a glance that nothing is wrong with a value? True of most.
    #[inline]
    pub fn is_fine(&self, value: &Value) -> bool {
        let is_of_kind = match value {
            Value::String(_) => {
                matches!(self.kind, Some(JsonType::String | JsonType::IntegerOrString))
            }
            Value::Bool(_) => self.kind == Some(JsonType::Boolean),
            Value::Number(_) => self.kind.is_some_and(|kind| kind.accepts(value)),
            _ => false,
        };
        is_of_kind
            && match (self.demand, value) {
                (Demand::Nothing, _) => true,
                (Demand::Format(test), Value::String(text)) => test(text),
                _ => false,
            }
    }
}

impl JsonType {
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Integer => is_integer(value),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::IntegerOrString => value.is_string() || is_integer(value),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntegerOrString => "integer,string",
        }
    }
}

/// The old item that a list with keys knows to be the same one.
fn counterpart<'a>(node: &Node, item: &Value, old: &'a Value) -> Option<&'a Value> {
    let ListKind::Map(keys) = &node.list else {
        return None;
    };
    old.as_array()?.iter().find(|one| same_keys(keys, one, item))
}

pub fn same_keys(keys: &[Box<str>], left: &Value, right: &Value) -> bool {
    keys.iter().all(|key| left.get(&**key) == right.get(&**key))
}

fn duplicate(list: &ListKind, item: &Value) -> String {
    match list {
        ListKind::Map(keys) => {
            let named =
                keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
            Value::Object(named.collect()).to_string()
        }
        ListKind::Set | ListKind::Atomic => shown(item),
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as error messages show it: JSON, which quotes texts as Go does.
fn shown(value: &Value) -> String {
    value.to_string()
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        other => format!("{:?}", other.to_string()),
    }
}
