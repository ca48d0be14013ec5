//! When do two templates ask for the same pods?

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn live(template: &Value) -> u128 {
    normalized_digest(template, None, TemplateSide::Live)
}

fn desired(template: &Value) -> u128 {
    normalized_digest(template, None, TemplateSide::Desired)
}

/// What a user writes.
fn written() -> Value {
    json!({
        "metadata": {"labels": {"app": "shop"}},
        "spec": {
            "serviceAccountName": "shop",
            "containers": [{
                "name": "web", "image": "shop:v1", "ports": [{"containerPort": 8080}],
                "env": [{"name": "EMPTY", "value": ""}],
                "resources": {"requests": {"cpu": "0.1", "memory": "1024Mi"}},
                "readinessProbe": {"httpGet": {"port": 8080}}
            }],
            "volumes": [{"name": "tmp"}]
        }
    })
}

/// What the API server makes of it in a ReplicaSet.
fn stored() -> Value {
    json!({
        "metadata": {
            "creationTimestamp": null,
            "labels": {"app": "shop", "rollouts-pod-template-hash": "5b4d8854fd"}
        },
        "spec": {
            "containers": [{
                "name": "web", "image": "shop:v1", "imagePullPolicy": "IfNotPresent",
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "env": [{"name": "EMPTY"}],
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
                "readinessProbe": {
                    "httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1,
                    "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3
                },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"
            }],
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {},
            "serviceAccount": "shop", "serviceAccountName": "shop",
            "terminationGracePeriodSeconds": 30, "volumes": [{"name": "tmp", "emptyDir": {}}]
        }
    })
}

fn injected_term(stable: &str) -> Value {
    json!({
        "labelSelector": {"matchExpressions": [
            {"key": "rollouts-pod-template-hash", "operator": "In", "values": [stable]}
        ]},
        "namespaces": ["shop"], "topologyKey": "kubernetes.io/hostname"
    })
}

#[test]
fn what_the_api_server_stores_equals_what_the_user_wrote() {
    assert_eq!(desired(&written()), live(&stored()));
    assert_eq!(desired(&stored()), live(&stored()), "as after undo");
}

#[test]
fn what_a_user_changes_makes_a_difference() {
    let cases = [
        ("image", "/spec/containers/0/image", json!("shop:v2")),
        ("label", "/metadata/labels/app", json!("store")),
        ("request", "/spec/containers/0/resources/requests/cpu", json!("101m")),
        ("port", "/spec/containers/0/ports/0/containerPort", json!(8081)),
        ("port by name", "/spec/containers/0/readinessProbe/httpGet/port", json!("8080")),
        ("variable", "/spec/containers/0/env/0/value", json!("x")),
        ("volume", "/spec/volumes/0", json!({"name": "tmp", "emptyDir": {"medium": "Memory"}})),
        ("service account", "/spec/serviceAccountName", json!("other")),
    ];
    for (what, path, value) in cases {
        let mut changed = written();
        *changed.pointer_mut(path).unwrap() = value;
        assert_ne!(desired(&changed), desired(&written()), "{what}");
    }
}

#[test]
fn zero_and_missing_differ_only_where_zero_is_an_answer() {
    let with = |key: &str, value: Value| {
        let mut template = written();
        template["spec"][key] = value;
        desired(&template)
    };
    let same = [
        ("hostNetwork", json!(false)),
        ("nodeSelector", json!({})),
        ("tolerations", json!(null)),
        ("securityContext", json!({})),
        ("affinity", json!({})),
        ("affinity", json!({"podAntiAffinity": {}})),
        ("fieldOfTheFuture", json!(1)),
    ];
    for (key, value) in same {
        assert_eq!(with(key, value.clone()), desired(&written()), "{key}: {value}");
    }
    for (key, value) in [
        ("automountServiceAccountToken", json!(false)),
        ("priority", json!(0)),
        ("terminationGracePeriodSeconds", json!(0)),
        ("hostNetwork", json!(true)),
    ] {
        assert_ne!(with(key, value.clone()), desired(&written()), "{key}: {value}");
    }
}

#[test]
fn defaults_of_containers_count_as_given() {
    let message = json!({"name": "c", "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent"});
    let cases = [
        ("nothing", json!({}), json!({})),
        ("termination message", json!({}), message),
        ("pull policy", json!({"image": "a"}), json!({"image": "a", "imagePullPolicy": "Always"})),
        (
            "port",
            json!({"ports": [{"containerPort": 80}]}),
            json!({"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
        ),
        (
            "field",
            json!({"env": [{"valueFrom": {"fieldRef": {"fieldPath": "f"}}}]}),
            json!({"env": [{"valueFrom": {"fieldRef": {"fieldPath": "f", "apiVersion": "v1"}}}]}),
        ),
        (
            "file",
            json!({"env": [{"valueFrom": {"fileKeyRef": {}}}]}),
            json!({"env": [{"valueFrom": {"fileKeyRef": {"optional": false}}}]}),
        ),
        (
            "probe",
            json!({"livenessProbe": {"httpGet": {"port": 80}, "failureThreshold": 0}}),
            json!({"livenessProbe": {
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3
            }}),
        ),
        (
            "grpc probe",
            json!({"startupProbe": {"grpc": {"port": 1}}}),
            json!({"startupProbe": {"grpc": {"port": 1, "service": ""}}}),
        ),
        (
            "hook",
            json!({"lifecycle": {"preStop": {"httpGet": {"port": 1}}}}),
            json!({"lifecycle": {"preStop": {
                "httpGet": {"port": 1, "path": "/", "scheme": "HTTP"}
            }}}),
        ),
        (
            "resources finer than milli",
            json!({"resources": {"limits": {"cpu": "100.5m"}}}),
            json!({"resources": {"limits": {"cpu": "101m"}}}),
        ),
    ];
    for (what, mut given, mut stored) in cases {
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            given["name"] = json!("c");
            stored["name"] = json!("c");
            let with = |container: &Value| desired(&json!({"spec": {list: [container]}}));
            assert_eq!(with(&given), with(&stored), "{what} of {list}");
        }
    }
}

#[test]
fn defaults_of_volumes_count_as_given() {
    let token = json!({"serviceAccountToken": {"path": "p"}});
    let cases = [
        ("no source", json!({}), json!({"emptyDir": {}})),
        ("no source but a null", json!({"nfs": null}), json!({"emptyDir": {}})),
        ("secret", json!({"secret": {}}), json!({"secret": {"defaultMode": 420}})),
        ("config map", json!({"configMap": {}}), json!({"configMap": {"defaultMode": 420}})),
        (
            "downward API",
            json!({"downwardAPI": {"items": [{"fieldRef": {}}]}}),
            json!({"downwardAPI": {"items": [{"fieldRef": {"apiVersion": "v1"}}],
                "defaultMode": 420}}),
        ),
        (
            "projected",
            json!({"projected": {"sources": [token]}}),
            json!({"projected": {"sources": [
                {"serviceAccountToken": {"path": "p", "expirationSeconds": 3600}}
            ], "defaultMode": 420}}),
        ),
        ("host path", json!({"hostPath": {}}), json!({"hostPath": {"type": ""}})),
        ("iscsi", json!({"iscsi": {}}), json!({"iscsi": {"iscsiInterface": "default"}})),
        (
            "rbd",
            json!({"rbd": {"user": "me"}}),
            json!({"rbd": {"user": "me", "pool": "rbd", "keyring": "/etc/ceph/keyring"}}),
        ),
        (
            "azure disk",
            json!({"azureDisk": {"fsType": ""}}),
            json!({"azureDisk": {"fsType": "", "cachingMode": "ReadWrite", "readOnly": false,
                "kind": "Shared"}}),
        ),
        (
            "scaleIO",
            json!({"scaleIO": {}}),
            json!({"scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"}}),
        ),
        (
            "claim template",
            json!({"ephemeral": {"volumeClaimTemplate": {}}}),
            json!({"ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}}),
        ),
        (
            "image",
            json!({"image": {"reference": "data:v1"}}),
            json!({"image": {"reference": "data:v1", "pullPolicy": "IfNotPresent"}}),
        ),
    ];
    let with = |volume: &Value| desired(&json!({"spec": {"volumes": [volume]}}));
    for (what, given, stored) in cases {
        assert_eq!(with(&given), with(&stored), "{what}");
    }
    let another_mode = json!({"configMap": {"defaultMode": 0}});
    assert_ne!(with(&another_mode), with(&json!({"configMap": {}})), "a mode of zero is a mode");
    let sized = |size: &str| with(&json!({"emptyDir": {"sizeLimit": size}}));
    assert_ne!(sized("100.5m"), sized("101m"), "what is no resource list is not rounded");
}

#[test]
fn the_order_of_a_list_is_significant() {
    let with = |names: [&str; 2]| {
        let containers = names.map(|name| json!({"name": name}));
        desired(&json!({"spec": {"containers": containers}}))
    };
    assert_ne!(with(["a", "b"]), with(["b", "a"]));
}

#[test]
fn the_deprecated_service_account_is_only_another_spelling() {
    let with = |key: &str| desired(&json!({"spec": {key: "shop"}}));
    assert_eq!(with("serviceAccount"), with("serviceAccountName"));
}

#[test]
fn ephemeral_metadata_is_undone_on_the_live_side() {
    let mut template = stored();
    template["metadata"]["labels"]["role"] = json!("canary");
    template["metadata"]["annotations"] = json!({"note": "x"});
    let recorded = r#"{"labels":{"role":"canary"},"annotations":{"note":"x"}}"#;
    let digest = |recorded, side| normalized_digest(&template, recorded, side);
    assert_eq!(digest(Some(recorded), TemplateSide::Live), desired(&written()));
    assert_ne!(digest(None, TemplateSide::Live), desired(&written()));
    assert_eq!(
        digest(Some("{"), TemplateSide::Live),
        digest(None, TemplateSide::Live),
        "unreadable is none"
    );
    assert_eq!(digest(Some(recorded), TemplateSide::Desired), digest(None, TemplateSide::Desired));
}

#[test]
fn an_injected_anti_affinity_term_is_undone_on_the_live_side_and_named() {
    let weighted = json!({"weight": 5, "podAffinityTerm": injected_term("abc")});
    let own = json!({"topologyKey": "zone"});
    let cases = [
        ("required", json!({REQUIRED: [injected_term("abc")]}), None),
        ("preferred", json!({PREFERRED: [weighted]}), None),
        (
            "beside the user's own",
            json!({REQUIRED: [own, injected_term("abc")]}),
            Some(json!({REQUIRED: [own]})),
        ),
    ];
    for (what, injected, users) in cases {
        let mut template = stored();
        template["spec"]["affinity"] = json!({"podAntiAffinity": injected});
        let mut original = written();
        if let Some(users) = users {
            original["spec"]["affinity"] = json!({"podAntiAffinity": users});
        }
        assert_eq!(live(&template), desired(&original), "{what}");
        assert_ne!(desired(&template), desired(&original), "{what}: written by the user it stays");
        assert_eq!(injected_stable_hash(&template).as_deref(), Some("abc"), "{what}");
    }
}

#[test]
fn a_users_own_terms_are_not_taken_for_injected_ones() {
    for term in [json!({"topologyKey": "k"}), json!({"labelSelector": null}), json!(null)] {
        let anti_affinity = json!({REQUIRED: [term]});
        let template = json!({"spec": {"affinity": {"podAntiAffinity": anti_affinity}}});
        assert_eq!(injected_stable_hash(&template), None, "{term}");
        assert_eq!(live(&template), desired(&template), "{term}");
    }
}

#[test]
fn what_is_no_template_has_a_digest_all_the_same() {
    assert_eq!(live(&json!(null)), live(&json!({})));
    assert_eq!(live(&json!({})), live(&json!({"metadata": {}, "spec": {}})));
    assert_eq!(injected_stable_hash(&json!([])), None);
}

/// Keys of pods and containers whose empty value says nothing.
const EMPTIES: [(&str, &str); 8] = [
    ("/spec", "nodeSelector"),
    ("/spec", "tolerations"),
    ("/spec", "initContainers"),
    ("/spec", "hostname"),
    ("/metadata", "annotations"),
    ("/spec/containers/0", "command"),
    ("/spec/containers/0", "workingDir"),
    ("/spec/containers/0", "stdin"),
];

proptest! {
    #[test]
    fn empties_never_change_the_digest(
        picks in prop::collection::vec((0..EMPTIES.len(), 0..4usize), 0..8)
    ) {
        let mut template = written();
        for (pick, shape) in picks {
            let (place, key) = EMPTIES[pick];
            let empty = [json!(null), json!([]), json!({}), json!("")][shape].clone();
            template.pointer_mut(place).unwrap()[key] = empty;
        }
        prop_assert_eq!(desired(&template), desired(&written()));
    }

    #[test]
    fn the_order_of_keys_never_changes_the_digest(
        keys in prop::collection::btree_map("[a-z]{1,6}", "[a-z]{0,6}", 0..8),
        seed in any::<u64>(),
    ) {
        let mut shuffled: Vec<_> = keys.iter().collect();
        shuffled.sort_by_key(|(key, _)| {
            key.bytes().fold(seed, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
        });
        let written = |pairs: Vec<(&String, &String)>| {
            let pairs: Vec<String> =
                pairs.iter().map(|(key, value)| format!("{key:?}:{value:?}")).collect();
            let text = format!(r#"{{"metadata":{{"labels":{{{}}}}}}}"#, pairs.join(","));
            serde_json::from_str::<Value>(&text).unwrap()
        };
        prop_assert_eq!(desired(&written(keys.iter().collect())), desired(&written(shuffled)));
    }

    #[test]
    fn a_changed_image_changes_the_digest(
        one in "[a-z]{1,9}:v[0-9]",
        other in "[a-z]{1,9}:v[0-9]",
    ) {
        prop_assume!(one != other);
        let with = |image: &str| {
            let mut template = written();
            template["spec"]["containers"][0]["image"] = json!(image);
            desired(&template)
        };
        prop_assert_ne!(with(&one), with(&other));
    }
}
