//! The schema of the plugin protocol, and whether lines fit it: as much of JSON Schema as it uses, and a
//! word that is not known here fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::docs::root;

/// What results must fit, by interface and method; all others may be anything.
const RESULTS: [(&str, &str, &str); 7] = [
    ("step", "Run", "stepResult"),
    ("step", "Terminate", "stepResult"),
    ("step", "Abort", "stepResult"),
    ("metric", "Run", "measurement"),
    ("metric", "Resume", "measurement"),
    ("metric", "Terminate", "measurement"),
    ("router", "VerifyWeight", "verified"),
];

/// The methods of each interface, beside those of all.
const METHODS: [(&str, &[&str]); 4] = [
    ("", &["InitPlugin", "Type", "Quit"]),
    ("step", &["Run", "Terminate", "Abort"]),
    ("metric", &["Run", "Resume", "Terminate", "GetMetadata", "GarbageCollect"]),
    (
        "router",
        &[
            "UpdateHash",
            "SetWeight",
            "VerifyWeight",
            "SetHeaderRoute",
            "SetMirrorRoute",
            "RemoveManagedRoutes",
        ],
    ),
];

/// What the check calls to see whether that is an error of the call alone.
const NO_METHOD: &str = "NoSuchMethod";

pub struct Schema(Value);

impl Schema {
    pub fn read() -> Self {
        let path = root().join("docs/plugin-protocol.schema.json");
        Schema(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    }

    pub fn definition(&self, name: &str) -> &Value {
        &self.0["$defs"][name]
    }

    /// The methods that a plugin of this interface has.
    pub fn methods(&self, kind: &str) -> Vec<String> {
        let known = &self.definition("request")["properties"]["method"]["enum"];
        let known = known.as_array().unwrap();
        let of = |(interface, _): &&(&str, &[&str])| interface.is_empty() || *interface == kind;
        let all = METHODS.iter().filter(of).flat_map(|(_, methods)| *methods);
        all.map(|method| {
            assert!(known.iter().any(|one| one == method), "{method} is in the schema");
            (*method).to_owned()
        })
        .collect()
    }

    /// Why a line is none of the protocol.
    pub fn wrong(&self, line: &Value) -> Option<String> {
        self.misfit(&self.0, line)
    }

    /// All lines of a file fit, and those that are none of `greeting` fit this definition. Returns the
    /// methods that are called. Answers are matched with the requests in `in` beside the file.
    pub fn fits(&self, path: &Path, definition: &str, kind: &str) -> BTreeSet<String> {
        let read = |path: &Path| -> Vec<Value> {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let requests = read(&path.with_file_name("in"));
        // A plugin is started more than once, and each time its calls are counted from 1.
        let (mut calls, mut start) = (BTreeMap::new(), 0);
        for request in &requests {
            let method = request["method"].as_str().unwrap().to_owned();
            start += usize::from(method == "InitPlugin");
            calls.insert((start, request["id"].as_u64().unwrap()), method);
        }
        let (mut seen, mut start) = (0, 0);
        for line in read(path) {
            if line["method"] == NO_METHOD {
                assert!(self.wrong(&line).is_some(), "a fault that is played deliberately");
                continue;
            }
            assert_eq!(self.wrong(&line), None, "{line:.300}");
            if line.get("protocol").is_some() {
                start += 1;
                continue;
            }
            seen += 1;
            assert_eq!(self.misfit(self.definition(definition), &line), None, "{line:.300}");
            let result = line.get("result").filter(|_| definition == "answer");
            let method = line["id"].as_u64().and_then(|id| calls.get(&(start, id)));
            let wanted = RESULTS.iter().find(|(interface, name, _)| {
                *interface == kind && method.is_some_and(|method| method == name)
            });
            if let (Some(result), Some((_, method, wanted))) = (result, wanted) {
                let wrong = self.misfit(self.definition(wanted), result);
                assert_eq!(wrong, None, "{method}: {result}");
            }
        }
        assert!(seen > 10, "{}: {seen} lines", path.display());
        calls.into_values().collect()
    }

    /// Why a value does not fit a schema.
    fn misfit(&self, schema: &Value, value: &Value) -> Option<String> {
        schema.as_object().unwrap().iter().find_map(|(word, rule)| {
            let is_fine = match word.as_str() {
                "$schema" | "$defs" | "title" | "description" | "format" => true,
                "$ref" => {
                    let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                    return self.misfit(self.definition(name), value);
                }
                "oneOf" => {
                    let fits = |one: &&Value| self.misfit(one, value).is_none();
                    rule.as_array().unwrap().iter().filter(fits).count() == 1
                }
                "anyOf" => {
                    let fits = |one: &Value| self.misfit(one, value).is_none();
                    rule.as_array().unwrap().iter().any(fits)
                }
                "not" => self.misfit(rule, value).is_some(),
                "const" => rule == value,
                "enum" => rule.as_array().unwrap().contains(value),
                "minimum" => value.as_i64().is_none_or(|value| value >= rule.as_i64().unwrap()),
                "type" => {
                    let kinds = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
                    kinds.iter().any(|kind| is_of(kind.as_str().unwrap(), value))
                }
                "required" => rule.as_array().unwrap().iter().all(|field| {
                    !value.is_object() || value.get(field.as_str().unwrap()).is_some()
                }),
                "properties" => {
                    let fields = rule.as_object().unwrap().iter();
                    let found = fields.filter_map(|(name, rule)| Some((rule, value.get(name)?)));
                    return found.into_iter().find_map(|(rule, value)| self.misfit(rule, value));
                }
                "additionalProperties" => {
                    let fields = value.as_object().into_iter().flatten();
                    return fields.into_iter().find_map(|(_, value)| self.misfit(rule, value));
                }
                other => panic!("{other} is not known to this test"),
            };
            (!is_fine).then(|| format!("{word}: expected {rule}, found {value:.200}"))
        })
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is not known to this test"),
    }
}
