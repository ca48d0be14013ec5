//! Tables for the three kinds of patch.

use serde_json::{Value, json};

use super::{Keys, PatchError, merged, strategic};

#[test]
fn a_merge_patch_follows_rfc_7386() {
    let cases = [
        ("a field is replaced", json!({"a": 1}), json!({"a": 2}), json!({"a": 2})),
        ("a field is added", json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
        ("null removes", json!({"a": 1, "b": 2}), json!({"a": null}), json!({"b": 2})),
        ("null for an absent field does nothing", json!({}), json!({"a": null}), json!({})),
        ("lists are replaced whole", json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
        (
            "maps merge",
            json!({"a": {"b": 1}}),
            json!({"a": {"c": 2}}),
            json!({"a": {"b": 1, "c": 2}}),
        ),
        ("a map over a scalar", json!({"a": 1}), json!({"a": {"b": null}}), json!({"a": {}})),
        (
            "nulls in a new map vanish",
            json!({}),
            json!({"a": {"b": null, "c": 1}}),
            json!({"a": {"c": 1}}),
        ),
        ("a scalar replaces everything", json!({"a": 1}), json!(3), json!(3)),
    ];
    for (what, target, patch, expected) in cases {
        assert_eq!(merged(&target, patch), expected, "{what}");
    }
}

#[test]
fn a_json_patch_follows_rfc_6902() {
    let document = || json!({"a": {"b": 1, "c/d": 2}, "list": [1, 2, 3]});
    let cases = [
        (
            "add a field",
            json!([{"op": "add", "path": "/a/x", "value": 9}]),
            json!({"a": {"b": 1, "c/d": 2, "x": 9}, "list": [1, 2, 3]}),
        ),
        (
            "add inside a list, at its end, and by a negative position",
            json!([
                {"op": "add", "path": "/list/1", "value": 7},
                {"op": "add", "path": "/list/-", "value": 8},
                {"op": "remove", "path": "/list/-1"}
            ]),
            json!({"a": {"b": 1, "c/d": 2}, "list": [1, 7, 2, 3]}),
        ),
        (
            "an absent field is replaced as if it were there",
            json!([{"op": "replace", "path": "/new", "value": 5}]),
            json!({"a": {"b": 1, "c/d": 2}, "list": [1, 2, 3], "new": 5}),
        ),
        (
            "escaped pointers",
            json!([{"op": "replace", "path": "/a/c~1d", "value": 5}]),
            json!({"a": {"b": 1, "c/d": 5}, "list": [1, 2, 3]}),
        ),
        (
            "positions are read generously, and what is absent is copied as null",
            json!([
                {"op": "replace", "path": "/list/01", "value": 7},
                {"op": "replace", "path": "/list/-1", "value": 9},
                {"op": "copy", "from": "/a/none", "path": "/a/b"}
            ]),
            json!({"a": {"b": null, "c/d": 2}, "list": [1, 7, 9]}),
        ),
        (
            "move, copy and test",
            json!([
                {"op": "test", "path": "/a/b", "value": 1},
                {"op": "move", "from": "/a/b", "path": "/moved"},
                {"op": "copy", "from": "/moved", "path": "/copied"},
                {"op": "test", "path": "/absent", "value": null}
            ]),
            json!({"a": {"c/d": 2}, "list": [1, 2, 3], "moved": 1, "copied": 1}),
        ),
    ];
    for (what, patch, expected) in cases {
        let mut target = document();
        super::json(&mut target, patch.as_array().unwrap()).unwrap();
        assert_eq!(target, expected, "{what}");
    }
}

#[test]
fn a_failing_json_patch_changes_nothing() {
    let cases = [
        ("a missing parent", json!({"op": "add", "path": "/x/y", "value": 1})),
        ("removing what is absent", json!({"op": "remove", "path": "/x"})),
        ("replacing an absent position", json!({"op": "replace", "path": "/list/0", "value": 1})),
        ("a failed test", json!({"op": "test", "path": "/a", "value": 2})),
        ("an unknown operation", json!({"op": "frob", "path": "/a"})),
        ("a position behind the end", json!({"op": "add", "path": "/list/9", "value": 1})),
        ("moving what is absent", json!({"op": "move", "from": "/x", "path": "/y"})),
        ("a pointer without a slash", json!({"op": "add", "path": "a", "value": 1})),
        ("adding the whole", json!({"op": "add", "path": "", "value": {}})),
        ("replacing the whole by a number", json!({"op": "replace", "path": "", "value": 1})),
        ("testing the end of a list", json!({"op": "test", "path": "/list/-", "value": null})),
        ("removing the end of a list", json!({"op": "remove", "path": "/list/-"})),
        ("testing below nothing", json!({"op": "test", "path": "/x/y", "value": null})),
        ("copying from below nothing", json!({"op": "copy", "from": "/x/y", "path": "/z"})),
        ("moving into itself", json!({"op": "move", "from": "/first", "path": "/first/in"})),
        ("a position before the start", json!({"op": "add", "path": "/list/-2", "value": 1})),
    ];
    for (what, operation) in cases {
        let before = json!({"a": 1, "list": []});
        let mut target = before.clone();
        let patch = [json!({"op": "add", "path": "/first", "value": 1}), operation];
        let error = super::json(&mut target, &patch).unwrap_err();
        assert!(matches!(error, PatchError::DoesNotApply(_)), "{what}: {error:?}");
        assert_eq!(target, before, "{what}");
    }
}

fn patched(mut target: Value, patch: Value) -> Value {
    strategic(&mut target, &patch, &Keys::BUILT_IN).unwrap();
    target
}

#[test]
fn strategic_lists_merge_by_key() {
    let a = || json!({"name": "a", "image": "a:1", "ports": [{"containerPort": 80}]});
    let b = || json!({"name": "b", "image": "b:1"});
    let pod = || json!({"spec": {"containers": [a(), b()]}});
    let cases = [
        (
            "a known name is merged in place",
            json!({"spec": {"containers": [{"name": "b", "image": "b:2"}]}}),
            json!([a(), {"name": "b", "image": "b:2"}]),
        ),
        (
            "a new name goes first",
            json!({"spec": {"containers": [{"name": "c", "image": "c:1"}]}}),
            json!([{"name": "c", "image": "c:1"}, a(), b()]),
        ),
        (
            "an order asked for is kept",
            json!({"spec": {
                "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
                "containers": [{"name": "c", "image": "c:1"}]
            }}),
            json!([a(), b(), {"name": "c", "image": "c:1"}]),
        ),
        (
            "an order alone reorders",
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}),
            json!([b(), a()]),
        ),
        (
            "an element is deleted by its key",
            json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
            json!([{"name": "b", "image": "b:1"}]),
        ),
        (
            "a list is replaced on request",
            json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "z", "image": "z:1"}]}}),
            json!([{"name": "z", "image": "z:1"}]),
        ),
        (
            "ports of a container merge by containerPort",
            json!({"spec": {"containers": [
                {"name": "a", "ports": [{"containerPort": 80, "name": "http"}]}
            ]}}),
            json!([
                {"name": "a", "image": "a:1", "ports": [{"containerPort": 80, "name": "http"}]},
                b()
            ]),
        ),
    ];
    for (what, patch, expected) in cases {
        assert_eq!(patched(pod(), patch)["spec"]["containers"], expected, "{what}");
    }
}

#[test]
fn strategic_directives_steer_maps_and_scalar_lists() {
    let cases = [
        (
            "a map is replaced",
            json!({"spec": {"selector": {"a": "1", "b": "2"}}}),
            json!({"spec": {"selector": {"$patch": "replace", "c": "3"}}}),
            json!({"spec": {"selector": {"c": "3"}}}),
        ),
        (
            "a map is deleted",
            json!({"spec": {"selector": {"a": "1"}, "x": 1}}),
            json!({"spec": {"selector": {"$patch": "delete"}}}),
            json!({"spec": {"x": 1}}),
        ),
        (
            "only retained keys survive",
            json!({"spec": {"strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}
            }}}),
            json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
            json!({"spec": {"strategy": {"type": "Recreate"}}}),
        ),
        (
            "finalizers are a set",
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"finalizers": ["c", "a"]}}),
            json!({"metadata": {"finalizers": ["c", "a", "b"]}}),
        ),
        (
            "scalars are deleted by name",
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
            json!({"metadata": {"finalizers": ["b"]}}),
        ),
        (
            "lists without a key are replaced",
            json!({"spec": {"tolerations": [{"key": "a"}]}}),
            json!({"spec": {"tolerations": [{"key": "b"}]}}),
            json!({"spec": {"tolerations": [{"key": "b"}]}}),
        ),
        (
            "directives never reach a new field",
            json!({}),
            json!({"spec": {
                "$setElementOrder/containers": [{"name": "a"}],
                "containers": [{"name": "a", "x": null}]
            }}),
            json!({"spec": {"containers": [{"name": "a"}]}}),
        ),
    ];
    for (what, target, patch, expected) in cases {
        assert_eq!(patched(target, patch), expected, "{what}");
    }
}

#[test]
fn a_strategic_patch_that_cannot_be_read_is_refused() {
    let cases = [
        ("not an object", json!([1]), true),
        (
            "retained keys must cover the patch",
            json!({"spec": {"$retainKeys": ["a"], "b": 1}}),
            true,
        ),
        ("an unknown directive", json!({"spec": {"$patch": "frob"}}), false),
        ("an element without its key", json!({"spec": {"containers": [{"image": "a"}]}}), false),
    ];
    for (what, patch, malformed) in cases {
        let mut target = json!({"spec": {"containers": [{"name": "a"}]}});
        let before = target.clone();
        let error = strategic(&mut target, &patch, &Keys::BUILT_IN).unwrap_err();
        assert_eq!(matches!(error, PatchError::Malformed(_)), malformed, "{what}: {error:?}");
        assert_eq!(target, before, "{what}");
    }
}
