//! Tables for pruning, defaulting, validating and the rules.

use serde_json::{Value, json};

use super::Schema;

fn schema() -> Schema {
    Schema::compile(&json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {
                        "type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"
                    },
                    "replicas": {"type": "integer", "minimum": 0, "maximum": 10},
                    "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0},
                    "mode": {"type": "string", "enum": ["Fast", "Slow"]},
                    "port": {
                        "x-kubernetes-int-or-string": true,
                        "anyOf": [{"type": "integer"}, {"type": "string"}]
                    },
                    "since": {"type": "string", "format": "date-time"},
                    "note": {"type": "string", "nullable": true},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "tags": {
                        "type": "array", "x-kubernetes-list-type": "set", "maxItems": 3,
                        "items": {"type": "string"}
                    },
                    "embedded": {
                        "type": "object", "x-kubernetes-embedded-resource": true,
                        "properties": {"spec": {"type": "object"}}
                    },
                    "ports": {
                        "type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {"type": "object", "required": ["port"], "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"}
                        }}
                    },
                    "selector": {
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                        "x-kubernetes-validations": [
                            {"rule": "self == oldSelf", "message": "selector is immutable"}
                        ]
                    },
                    "either": {
                        "type": "object",
                        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]
                    }
                }
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
        }
    }))
    .unwrap()
}

#[test]
fn pruning_keeps_what_the_schema_names() {
    let cases = [
        ("an unknown field goes", json!({"name": "ab", "x": 1}), json!({"name": "ab"})),
        (
            "inside lists too",
            json!({"ports": [{"port": 1, "x": 2}]}),
            json!({"ports": [{"port": 1}]}),
        ),
        (
            "preserved below the mark",
            json!({"free": {"x": {"y": 1}}}),
            json!({"free": {"x": {"y": 1}}}),
        ),
        ("map entries stay", json!({"labels": {"a": "b"}}), json!({"labels": {"a": "b"}})),
        ("null where none is allowed goes", json!({"mode": null}), json!({})),
        ("null where it is allowed stays", json!({"note": null}), json!({"note": null})),
        (
            "an embedded object keeps its metadata",
            json!({"embedded": {"kind": "A", "metadata": {"name": "n"}, "x": 1}}),
            json!({"embedded": {"kind": "A", "metadata": {"name": "n"}}}),
        ),
    ];
    for (what, mut spec, expected) in cases {
        schema().at("spec").unwrap().prune(&mut spec);
        assert_eq!(spec, expected, "{what}");
    }
    let mut object =
        json!({"metadata": {"name": "a", "labels": {}}, "spec": {"name": "ab"}, "x": 1});
    assert_eq!(schema().unknown_fields(&object), ["x"]);
    schema().prune(&mut object);
    assert_eq!(object, json!({"metadata": {"name": "a", "labels": {}}, "spec": {"name": "ab"}}));
    let unknown = json!({"ports": [{"port": 1, "x": 2}], "y": {"z": 1}});
    assert_eq!(
        schema().at("spec").unwrap().unknown_fields(&unknown),
        ["spec.ports[0].x", "spec.y"]
    );
}

#[test]
fn defaults_are_put_in_where_a_field_is_absent() {
    let mut spec = json!({"ports": [
        {"port": 1}, {"port": 2, "protocol": null}, {"port": 3, "protocol": "UDP"}
    ]});
    let part = schema();
    let part = part.at("spec").unwrap();
    part.prune(&mut spec);
    part.default(&mut spec);
    let protocols: Vec<&Value> =
        spec["ports"].as_array().unwrap().iter().map(|port| &port["protocol"]).collect();
    assert_eq!(protocols, ["TCP", "TCP", "UDP"]);
}

/// Spec, field and reason of the first cause; below it the message.
const REFUSED: &str = r#"
{} | spec.name | Required
    Required value
{"name": 1} | spec.name | TypeInvalid
    Invalid value: "integer": spec.name in body must be of type string: "integer"
{"name": "a"} | spec.name | Invalid
    Invalid value: "a": spec.name in body should be at least 2 chars long
{"name": "abcdef"} | spec.name | TooLong
    Too long: may not be more than 5 bytes
{"name": "A1"} | spec.name | Invalid
    Invalid value: "A1": spec.name in body should match '^[a-z]+$'
{"name": "ab", "replicas": -1} | spec.replicas | Invalid
    Invalid value: -1: spec.replicas in body should be greater than or equal to 0
{"name": "ab", "replicas": 11} | spec.replicas | Invalid
    Invalid value: 11: spec.replicas in body should be less than or equal to 10
{"name": "ab", "replicas": 1.5} | spec.replicas | TypeInvalid
    Invalid value: "number": spec.replicas in body must be of type integer: "number"
{"name": "ab", "ratio": 0} | spec.ratio | Invalid
    Invalid value: 0: spec.ratio in body should be greater than 0
{"name": "ab", "mode": "Odd"} | spec.mode | NotSupported
    Unsupported value: "Odd": supported values: "Fast", "Slow"
{"name": "ab", "port": true} | spec.port | TypeInvalid
    Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"
{"name": "ab", "since": "noon"} | spec.since | TypeInvalid
    Invalid value: "noon": spec.since in body must be of type date-time: "noon"
{"name": "ab", "labels": {"a": 1}} | spec.labels.a | TypeInvalid
    Invalid value: "integer": spec.labels.a in body must be of type string: "integer"
{"name": "ab", "tags": ["a", "b", "c", "d"]} | spec.tags | TooMany
    Too many: 4: must have at most 3 items
{"name": "ab", "tags": ["a", "a"]} | spec.tags[1] | Duplicate
    Duplicate value: "a"
{"name": "ab", "ports": [{"port": 1}, {"port": 1}]} | spec.ports[1] | Duplicate
    Duplicate value: {"port":1}
{"name": "ab", "ports": [{}]} | spec.ports[0].port | Required
    Required value
{"name": "ab", "either": {}} | <nil> | Invalid
    Invalid value: "": "spec.either" must validate one and only one schema (oneOf). Found none valid
"#;

#[test]
fn validation_speaks_as_the_api_server_does() {
    let mut lines = REFUSED.lines().filter(|line| !line.is_empty());
    while let (Some(line), Some(message)) = (lines.next(), lines.next()) {
        let [spec, field, reason] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}: expected three cells");
        };
        let spec: Value = serde_json::from_str(spec).unwrap();
        let cause = schema().validate(&json!({"spec": spec}), None).remove(0);
        assert_eq!((&*cause.field, &*cause.message), (field, message.trim()), "{line}");
        assert_eq!(cause.reason, format!("FieldValue{reason}"), "{line}");
    }
    let good = json!({
        "name": "ab", "port": 8080, "since": "2026-01-02T03:04:05Z", "note": null,
        "either": {"a": "x"},
    });
    assert_eq!(schema().validate(&json!({"spec": good}), None), []);
}

#[test]
fn what_is_sound_is_neither_changed_nor_refused() {
    let sound = [
        json!({"name": "ab"}),
        json!({"name": "ab", "note": null, "replicas": 10, "ratio": 0.5, "mode": "Fast"}),
        json!({"name": "ab", "port": 80, "since": "2026-01-01T00:00:00Z", "tags": ["a", "b"]}),
        json!({"name": "ab", "port": "http", "free": {"x": {"y": null}}, "labels": {"a": "b"}}),
        json!({"name": "ab", "ports": [
            {"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]}),
    ];
    let schema = schema();
    let part = schema.at("spec").unwrap();
    for spec in sound {
        assert!(part.is_sound(&spec), "{spec}");
        let mut completed = spec.clone();
        part.prune(&mut completed);
        part.default(&mut completed);
        assert_eq!(completed, spec);
        assert_eq!(part.validate(&spec, None), []);
    }
    let unsound = [
        ("an unknown field", json!({"name": "ab", "x": 1})),
        ("one before those that are known", json!({"a": 1, "name": "ab"})),
        ("a null", json!({"name": "ab", "mode": null})),
        ("no default", json!({"name": "ab", "ports": [{"port": 1}]})),
    ];
    for (what, spec) in unsound {
        assert!(!part.is_sound(&spec), "{what}");
    }
    for line in REFUSED.lines().filter(|line| line.starts_with('{')) {
        let (spec, _) = line.split_once(" | ").unwrap();
        assert!(!part.is_sound(&serde_json::from_str(spec).unwrap()), "{spec}");
    }
}

#[test]
fn a_status_write_names_fields_from_the_status_on_in_its_messages() {
    let schema = schema();
    let part = schema.at("status").unwrap().by_itself();
    let cause = part.validate(&json!({"phase": 1}), None).remove(0);
    assert_eq!(cause.field, "status.phase");
    let message = r#"Invalid value: "integer": phase in body must be of type string: "integer""#;
    assert_eq!(cause.message, message);
}

#[test]
fn rules_are_not_asked_of_a_broken_object() {
    let causes = schema().at("spec").unwrap().validate(&json!({"name": 1}), None);
    assert_eq!(causes.len(), 2);
    assert_eq!(causes[1].field, "<nil>");
}

#[test]
fn what_was_invalid_before_and_is_unchanged_is_accepted() {
    let old = json!({"name": "TOOLONG", "replicas": 99});
    let mut new = old.clone();
    new["mode"] = json!("Fast");
    let schema = schema();
    let part = schema.at("spec").unwrap();
    assert_eq!(part.validate(&new, Some(&old)), []);
    new["replicas"] = json!(98);
    assert_eq!(part.validate(&new, Some(&old)).len(), 1);
}

#[test]
fn a_transition_rule_compares_with_the_stored_object() {
    let schema = schema();
    let part = schema.at("spec").unwrap();
    let old = json!({"name": "ab", "selector": {"a": "1"}});
    let new = json!({"name": "ab", "selector": {"a": "2"}});
    assert_eq!(part.validate(&new, None), []);
    assert_eq!(part.validate(&old, Some(&old)), []);
    assert_eq!(part.validate(&new, Some(&json!({"name": "ab"}))), [], "nothing to compare with");
    let causes = part.validate(&new, Some(&old));
    assert_eq!(causes[0].field, "spec.selector");
    assert_eq!(causes[0].message, "Invalid value: selector is immutable");
}

#[test]
fn simple_rules_are_evaluated_and_others_refused_at_installation() {
    let compile = |rule: &str| {
        Schema::compile(&json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{"rule": rule}]
        }}}))
    };
    let spec = json!({"min": 1, "max": 3, "names": ["a"], "kind": "A"});
    let cases = [
        ("self.min <= self.max", true),
        ("self.min > self.max || self.kind == 'A'", true),
        ("!has(self.absent) && size(self.names) == 1", true),
        ("self.kind in ['B', \"C\"]", false),
        ("self.names.size() > 1", false),
        ("self.min == -1", false),
        ("has(self.kind) ? self.kind == 'A' : false", true),
        ("self.names[0] == 'a'", true),
        ("self.absent == 1", false),
    ];
    for (rule, holds) in cases {
        let causes = compile(rule).unwrap().validate(&json!({"spec": spec.clone()}), None);
        assert_eq!(causes.is_empty(), holds, "{rule}: {causes:?}");
    }
    for rule in ["self.names.all(n, n != '')", "self.min + 1 == 2", "other == 1", "self.x ==", ""] {
        assert!(compile(rule).is_err(), "{rule}");
    }
}

#[test]
fn a_schema_that_is_not_structural_is_refused() {
    let cases = [
        ("a property without a type", json!({"type": "object", "properties": {"a": {}}})),
        ("an unknown type", json!({"type": "object", "properties": {"a": {"type": "text"}}})),
        ("a list without items", json!({"type": "object", "properties": {"a": {"type": "array"}}})),
        ("a root that is no object", json!({"type": "string"})),
        (
            "a bad pattern",
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
        ),
        (
            "a list map without keys",
            json!({"type": "object", "properties": {"a": {
            "type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}}}),
        ),
    ];
    for (what, schema) in cases {
        assert!(Schema::compile(&schema).is_err(), "{what}");
    }
}
