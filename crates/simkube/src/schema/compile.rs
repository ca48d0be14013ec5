//! From a CRD's `openAPIV3Schema` to compiled nodes, refusing what is not structural.

use serde_json::{Map, Value};

use super::rule::Rule;
use super::{Additional, Checks, Demand, Holds, JsonType, ListKind, Node, SchemaError, format};

/// What a schema can demand of a value besides its type and its format.
const DEMANDS: [&str; 17] = [
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// The compiled root, and whether any validation rule stands anywhere in it.
pub fn compile(schema: &Value) -> Result<(Node, bool), SchemaError> {
    let mut compiler = Compiler { has_rules: false };
    let mut root = compiler.node(schema, "openAPIV3Schema", true)?;
    if root.kind != Some(JsonType::Object) {
        return Err(problem("openAPIV3Schema.type", "must be object at the root"));
    }
    root.is_resource = true;
    Ok((root, compiler.has_rules))
}

/// A part of a schema, compiled by itself.
pub fn part(schema: &Value) -> Result<Node, SchemaError> {
    Compiler { has_rules: false }.node(schema, "", true)
}

struct Compiler {
    has_rules: bool,
}

impl Compiler {
    /// `structural` is false inside allOf, anyOf, oneOf and not, where types may be left out.
    fn node(&mut self, schema: &Value, path: &str, structural: bool) -> Result<Node, SchemaError> {
        let Value::Object(fields) = schema else {
            return Err(problem(path, "must be an object"));
        };
        let kind = kind(fields, path)?;
        let preserves_unknown = flag(fields, "x-kubernetes-preserve-unknown-fields");
        if structural && kind.is_none() && !preserves_unknown {
            return Err(problem(
                &format!("{path}.type"),
                "Required value: must not be empty for specified object fields",
            ));
        }
        let mut node = Node {
            kind,
            nullable: flag(fields, "nullable"),
            preserves_unknown,
            is_resource: flag(fields, "x-kubernetes-embedded-resource"),
            list: list_kind(fields, path)?,
            required: texts(fields.get("required")),
            default: fields.get("default").cloned(),
            checks: self.checks(fields, path)?,
            rules: self.rules(fields, path)?,
            ..Node::default()
        };
        self.children(&mut node, fields, path, structural)?;
        node.holds = holds(&node);
        let format = node.checks.as_ref().and_then(|checks| checks.format.as_ref());
        node.demand = match format {
            _ if demands_more(fields) => Demand::More,
            Some((_, test)) => Demand::Format(*test),
            None => Demand::Nothing,
        };
        Ok(node)
    }

    fn children(
        &mut self,
        node: &mut Node,
        fields: &Map<String, Value>,
        path: &str,
        structural: bool,
    ) -> Result<(), SchemaError> {
        for (name, schema) in
            fields.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let mut child = self.node(schema, &format!("{path}.properties[{name}]"), structural)?;
            let is_required = node.required.iter().any(|required| **required == **name);
            child.is_needed = is_required || child.default.is_some();
            node.properties.push((name.as_str().into(), child));
        }
        node.properties.sort_by(|(one, _), (other, _)| one.cmp(other));
        node.needed = node.properties.iter().filter(|(_, child)| child.is_needed).count();
        node.requires_unnamed = node.required.iter().any(|name| node.property(name).is_none());
        if let Some(schema) = fields.get("items") {
            node.items = Some(Box::new(self.node(schema, &format!("{path}.items"), structural)?));
        } else if structural && node.kind == Some(JsonType::Array) {
            return Err(problem(&format!("{path}.items"), "Required value: must be specified"));
        }
        node.additional = match fields.get("additionalProperties") {
            None | Some(Value::Bool(false)) => Additional::None,
            Some(Value::Bool(true)) => Additional::Any,
            Some(schema) => {
                let path = format!("{path}.additionalProperties");
                if structural && !node.properties.is_empty() {
                    return Err(problem(&path, "Forbidden: is mutual exclusive with properties"));
                }
                Additional::Each(Box::new(self.node(schema, &path, structural)?))
            }
        };
        Ok(())
    }

    fn checks(
        &mut self,
        fields: &Map<String, Value>,
        path: &str,
    ) -> Result<Option<Box<Checks>>, SchemaError> {
        // Only texts are measured by a format.
        let format = fields.get("format").and_then(Value::as_str);
        let format = format.filter(|_| fields.get("type").is_some_and(|kind| kind == "string"));
        if format.is_none() && !demands_more(fields) {
            return Ok(None);
        }
        let number = |name: &str| fields.get(name).and_then(Value::as_f64);
        let count = |name: &str| fields.get(name).and_then(Value::as_u64);
        let checks = Checks {
            choices: fields.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            pattern: pattern(fields, path)?,
            format: format.and_then(|name| Some((name.into(), format::test(name)?))),
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: flag(fields, "exclusiveMinimum"),
            exclusive_maximum: flag(fields, "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: self.alternatives(fields, "allOf", path)?,
            any_of: self.alternatives(fields, "anyOf", path)?,
            one_of: self.alternatives(fields, "oneOf", path)?,
            not: match fields.get("not") {
                Some(schema) => Some(self.node(schema, &format!("{path}.not"), false)?),
                None => None,
            },
        };
        Ok(Some(Box::new(checks)))
    }

    fn alternatives(
        &mut self,
        fields: &Map<String, Value>,
        name: &str,
        path: &str,
    ) -> Result<Vec<Node>, SchemaError> {
        let schemas = fields.get(name).and_then(Value::as_array).into_iter().flatten();
        schemas
            .enumerate()
            .map(|(at, schema)| self.node(schema, &format!("{path}.{name}[{at}]"), false))
            .collect()
    }

    fn rules(&mut self, fields: &Map<String, Value>, path: &str) -> Result<Vec<Rule>, SchemaError> {
        let rules = fields.get("x-kubernetes-validations").and_then(Value::as_array);
        let mut compiled = Vec::new();
        for (at, rule) in rules.into_iter().flatten().enumerate() {
            self.has_rules = true;
            compiled.push(Rule::compile(rule).map_err(|error| {
                problem(&format!("{path}.x-kubernetes-validations[{at}].rule"), &error)
            })?);
        }
        Ok(compiled)
    }
}

/// What stands in a node or below it.
fn holds(node: &Node) -> Holds {
    let here = Holds {
        defaults: node.default.is_some(),
        unique_lists: node.list != ListKind::Atomic,
        rules: !node.rules.is_empty(),
    };
    let each = match &node.additional {
        Additional::Each(each) => Some(&**each),
        Additional::None | Additional::Any => None,
    };
    let below =
        node.properties.iter().map(|(_, child)| child).chain(node.items.as_deref()).chain(each);
    below.map(|child| child.holds).fold(here, |all, more| Holds {
        defaults: all.defaults || more.defaults,
        unique_lists: all.unique_lists || more.unique_lists,
        rules: all.rules || more.rules,
    })
}

fn demands_more(fields: &Map<String, Value>) -> bool {
    DEMANDS.iter().any(|name| fields.contains_key(*name))
}

fn kind(fields: &Map<String, Value>, path: &str) -> Result<Option<JsonType>, SchemaError> {
    if flag(fields, "x-kubernetes-int-or-string") {
        return Ok(Some(JsonType::IntegerOrString));
    }
    Ok(Some(match fields.get("type").and_then(Value::as_str) {
        None | Some("") => return Ok(None),
        Some("object") => JsonType::Object,
        Some("array") => JsonType::Array,
        Some("string") => JsonType::String,
        Some("integer") => JsonType::Integer,
        Some("number") => JsonType::Number,
        Some("boolean") => JsonType::Boolean,
        Some(other) => {
            return Err(problem(
                &format!("{path}.type"),
                &format!(
                    "Unsupported value: {other:?}: supported values: \"array\", \"boolean\", \
                     \"integer\", \"number\", \"object\", \"string\""
                ),
            ));
        }
    }))
}

fn list_kind(fields: &Map<String, Value>, path: &str) -> Result<ListKind, SchemaError> {
    match fields.get("x-kubernetes-list-type").and_then(Value::as_str) {
        None | Some("atomic") => Ok(ListKind::Atomic),
        Some("set") => Ok(ListKind::Set),
        Some("map") => {
            let keys = texts(fields.get("x-kubernetes-list-map-keys"));
            if keys.is_empty() {
                return Err(problem(
                    &format!("{path}.x-kubernetes-list-map-keys"),
                    "Required value: must not be empty if x-kubernetes-list-type is map",
                ));
            }
            Ok(ListKind::Map(keys))
        }
        Some(other) => Err(problem(
            &format!("{path}.x-kubernetes-list-type"),
            &format!(
                "Unsupported value: {other:?}: supported values: \"atomic\", \"set\", \"map\""
            ),
        )),
    }
}

fn pattern(
    fields: &Map<String, Value>,
    path: &str,
) -> Result<Option<(Box<str>, regex_lite::Regex)>, SchemaError> {
    let Some(text) = fields.get("pattern").and_then(Value::as_str).filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    match regex_lite::Regex::new(text) {
        Ok(regex) => Ok(Some((text.into(), regex))),
        Err(error) => Err(problem(
            &format!("{path}.pattern"),
            &format!("Invalid value: {text:?}: must be a valid regular expression: {error}"),
        )),
    }
}

fn flag(fields: &Map<String, Value>, name: &str) -> bool {
    fields.get(name) == Some(&Value::Bool(true))
}

fn texts(list: Option<&Value>) -> Vec<Box<str>> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(Into::into).collect()
}

fn problem(path: &str, problem: &str) -> SchemaError {
    SchemaError { path: path.to_owned(), problem: problem.to_owned() }
}
