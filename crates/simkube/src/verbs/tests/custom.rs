//! Custom kinds: installed by a definition, then as good as built in.

use serde_json::{Value, json};

use super::{at, call, cluster, put, refused};
use crate::kinds::KindId;
use crate::request::{FieldValidation, PatchKind, Request, Subresource, Verb};
use crate::{Change, SimCluster};

/// A kind `Thing`, with or without a status subresource.
fn definition(has_status: bool) -> Value {
    let subresources = if has_status {
        json!({"status": {}, "scale": {"specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"}})
    } else {
        json!({})
    };
    json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "subresources": subresources,
                    "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"],
                        "properties": {
                            "spec": {"type": "object", "required": ["size"], "properties": {
                                "size": {"type": "integer", "minimum": 0},
                                "mode": {"type": "string", "default": "slow"},
                            }},
                            "status": {"type": "object", "properties": {
                                "size": {"type": "integer"}, "selector": {"type": "string"},
                            }},
                        }}}},
                {"name": "v2", "served": true, "storage": false, "subresources": subresources,
                    "schema": {"openAPIV3Schema": {"type": "object",
                        "x-kubernetes-preserve-unknown-fields": true}}},
            ],
        },
    })
}

fn with_things(has_status: bool) -> (SimCluster, KindId) {
    let mut cluster = cluster();
    let request = Request::create(KindId::CUSTOM_RESOURCE_DEFINITION, "", definition(has_status));
    cluster.call(&request, at(0)).unwrap();
    let kind = cluster.kinds().by_name("example.com/v1", "Thing").unwrap();
    (cluster, kind)
}

fn thing(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"},
        "spec": spec})
}

#[test]
fn a_definition_is_established_and_names_its_kind() {
    let (cluster, kind) = with_things(true);
    let stored = cluster.get(KindId::CUSTOM_RESOURCE_DEFINITION, "", "things.example.com").unwrap();
    assert_eq!(stored.status["conditions"][1]["type"], "Established");
    assert_eq!(stored.status["acceptedNames"]["singular"], "thing");
    let kind = cluster.kinds().get(kind);
    assert_eq!((&*kind.list_kind, kind.short_names.concat()), ("ThingList", "th".to_owned()));
}

#[test]
fn broken_definitions_are_refused() {
    let cases = [
        ("the wrong name", "/metadata/name", json!("x.example.com"), "metadata.name"),
        ("no such scope", "/spec/scope", json!("World"), "spec.scope"),
        (
            "no schema",
            "/spec/versions/0/schema",
            json!({}),
            "spec.versions[0].schema.openAPIV3Schema",
        ),
    ];
    for (what, path, value, field) in cases {
        let mut body = definition(true);
        *body.pointer_mut(path).unwrap() = value;
        let request = Request::create(KindId::CUSTOM_RESOURCE_DEFINITION, "", body);
        let result = call(&mut cluster(), &request);
        assert_eq!(refused(result), (422, "Invalid", vec![field.to_owned()]), "{what}");
    }
}

#[test]
fn objects_are_pruned_defaulted_and_checked() {
    let (mut cluster, kind) = with_things(true);
    let mut body = thing(json!({"size": 1, "unknown": true}));
    body["status"] = json!({"size": 9});
    let made = call(&mut cluster, &Request::create(kind, "default", body)).unwrap();
    assert_eq!(made["spec"], json!({"size": 1, "mode": "slow"}));
    assert_eq!(made.get("status"), None, "status has its own door");
    let cases: [(&str, Value, &[&str]); 4] = [
        ("too small", json!({"size": -1}), &["spec.size", ".spec.size"]),
        ("missing", json!({}), &["spec.size"]),
        ("the wrong type", json!({"size": "big"}), &["spec.size", ".spec.size"]),
        ("no spec", json!(null), &["spec"]),
    ];
    for (what, spec, fields) in cases {
        let mut body = thing(spec);
        body["metadata"]["name"] = json!("other");
        let (code, _, seen) = refused(call(&mut cluster, &Request::create(kind, "default", body)));
        assert_eq!(code, 422, "{what}");
        assert_eq!(seen, fields, "{what}: the schema's word, then that of the scale subresource");
    }
}

#[test]
fn unknown_fields_are_told_or_refused_on_request() {
    let (mut cluster, kind) = with_things(true);
    let mut request = Request::create(kind, "default", thing(json!({"size": 1, "typo": 2})));
    request.options.field_validation = FieldValidation::Strict;
    let error = cluster.call(&request, at(1)).unwrap_err();
    assert_eq!(error.code, 400);
    assert!(error.message.ends_with("strict decoding error: unknown field \"spec.typo\""));
    request.options.field_validation = FieldValidation::Warn;
    let reply = cluster.call(&request, at(1)).unwrap();
    assert_eq!(reply.warnings, ["unknown field \"spec.typo\""]);
}

#[test]
fn spec_and_status_have_a_door_each() {
    let (mut cluster, kind) = with_things(true);
    call(&mut cluster, &Request::create(kind, "default", thing(json!({"size": 1})))).unwrap();
    let rows = [
        // what, door, generation, size wanted, size seen
        ("by the main door", Subresource::None, 2, json!(5), Value::Null),
        ("by the status door", Subresource::Status, 2, json!(5), json!(5)),
    ];
    for (what, door, generation, wanted, seen) in rows {
        let patch = json!({"metadata": {"labels": {"door": format!("{door:?}")}},
            "spec": {"size": 5}, "status": {"size": 5, "junk": 1}});
        let after = call(&mut cluster, &Request::merge(kind, "default", "t", patch).on(door));
        let after = after.unwrap();
        assert_eq!(after["metadata"]["generation"], generation, "{what}");
        assert_eq!(after["spec"]["size"], wanted, "{what}");
        assert_eq!(after["status"]["size"], seen, "{what}");
        assert_eq!(after["metadata"]["labels"]["door"], "None", "{what}: labels by the main door");
    }
}

#[test]
fn without_a_status_door_every_change_counts() {
    let (mut cluster, kind) = with_things(false);
    let mut body = thing(json!({"size": 1}));
    body["status"] = json!({"size": 1});
    let made = call(&mut cluster, &Request::create(kind, "default", body)).unwrap();
    assert_eq!(made["status"], json!({"size": 1}));
    let patch = json!({"status": {"size": 2}});
    let request = Request::merge(kind, "default", "t", patch);
    let after = call(&mut cluster, &request).unwrap();
    assert_eq!(after["metadata"]["generation"], 2);
    let result = call(&mut cluster, &request.on(Subresource::Status));
    assert_eq!(refused(result).0, 404);
}

#[test]
fn an_update_must_name_its_version_and_strategic_patches_are_refused() {
    let (mut cluster, kind) = with_things(true);
    call(&mut cluster, &Request::create(kind, "default", thing(json!({"size": 1})))).unwrap();
    let result = call(&mut cluster, &put(kind, "t", thing(json!({"size": 2}))));
    assert_eq!(refused(result), (422, "Invalid", vec!["metadata.resourceVersion".to_owned()]));
    let patch = Request::new(Verb::Patch(PatchKind::Strategic), kind, "default", "t");
    assert_eq!(refused(call(&mut cluster, &patch.with_body(json!({})))).0, 415);
}

#[test]
fn a_custom_kind_scales_by_its_own_paths() {
    let (mut cluster, kind) = with_things(true);
    call(&mut cluster, &Request::create(kind, "default", thing(json!({"size": 1})))).unwrap();
    let patch = Request::merge(kind, "default", "t", json!({"spec": {"replicas": 7}}));
    let scale = call(&mut cluster, &patch.on(Subresource::Scale)).unwrap();
    assert_eq!(scale["spec"]["replicas"], 7);
    assert_eq!(cluster.get(kind, "default", "t").unwrap().spec["size"], 7);
}

#[test]
fn versions_of_a_kind_are_views_of_the_same_object() {
    let (mut cluster, first) = with_things(true);
    let second = cluster.kinds().by_name("example.com/v2", "Thing").unwrap();
    call(&mut cluster, &Request::create(first, "default", thing(json!({"size": 1})))).unwrap();
    let get = Request::new(Verb::Get, second, "default", "t");
    let seen = call(&mut cluster, &get).unwrap();
    assert_eq!(seen["apiVersion"], "example.com/v2");
    assert_eq!(seen["spec"]["size"], 1);
    assert_eq!(cluster.list(second, "").count(), 1);
}

#[test]
fn a_definition_takes_its_objects_with_it() {
    let (mut cluster, kind) = with_things(true);
    call(&mut cluster, &Request::create(kind, "default", thing(json!({"size": 1})))).unwrap();
    let before = cluster.version();
    let name = "things.example.com";
    let request = Request::new(Verb::Delete, KindId::CUSTOM_RESOURCE_DEFINITION, "", name);
    call(&mut cluster, &request).unwrap();
    assert_eq!(cluster.kinds().by_name("example.com/v1", "Thing"), None);
    let gone: Vec<Change> =
        cluster.events_after(kind, before).unwrap().map(|event| event.change).collect();
    assert_eq!(gone, [Change::Deleted]);
    let again = Request::create(KindId::CUSTOM_RESOURCE_DEFINITION, "", definition(true));
    call(&mut cluster, &again).unwrap();
    assert_eq!(cluster.kinds().by_name("example.com/v1", "Thing"), Some(kind));
}

#[test]
fn a_definition_waits_for_the_objects_that_finalizers_hold() {
    let (mut cluster, kind) = with_things(true);
    let mut held = thing(json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["ex.dev/hold"]);
    call(&mut cluster, &Request::create(kind, "default", held)).unwrap();
    let (definitions, name) = (KindId::CUSTOM_RESOURCE_DEFINITION, "things.example.com");
    let delete = Request::new(Verb::Delete, definitions, "", name);
    call(&mut cluster, &delete).unwrap();
    let late = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "late"}, "spec": {"size": 1}});
    let refusal = call(&mut cluster, &Request::create(kind, "default", late)).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (403, "Forbidden"));
    assert!(cluster.get(kind, "default", "t").unwrap().meta.deleting.is_some());
    assert!(cluster.get(definitions, "", name).unwrap().meta.deleting.is_some());
    let clear = json!({"metadata": {"finalizers": null}});
    call(&mut cluster, &Request::merge(kind, "default", "t", clear)).unwrap();
    assert!(cluster.get(definitions, "", name).is_none(), "it goes with its last object");
    assert_eq!(cluster.kinds().by_name("example.com/v1", "Thing"), None);
}
