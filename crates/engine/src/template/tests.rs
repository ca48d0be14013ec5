//! Hashes, vector by vector.

use serde_json::{Value, json};

use super::*;

/// What Go would write.
fn encoded(template: &Value, dialect: Dialect) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes, dialect, &FieldType::Struct(order::PodTemplateSpec), Some(template));
    String::from_utf8(bytes).unwrap()
}

/// What is special | hash without a collision count | with 0 | with 1 | the bytes Go writes.
const VECTORS: &str = include_str!("tests/vectors.txt");

fn bytes_of(vector: &str) -> &'static str {
    let mut rows = VECTORS.lines().filter(|row| row.starts_with(vector));
    rows.next().and_then(|row| row.splitn(5, " | ").last()).unwrap()
}

#[test]
fn hashes_are_those_of_argo_rollouts() {
    for row in VECTORS.lines() {
        let columns: Vec<&str> = row.splitn(5, " | ").collect();
        let [what, none, zero, one, text] = columns[..] else { panic!("five columns: {row}") };
        let template = serde_json::from_str(text).unwrap();
        assert_eq!(encoded(&template, Dialect::Current), text, "{what}");
        for (collisions, hash) in [(None, none), (Some(0), zero), (Some(1), one)] {
            if hash != "-" {
                assert_eq!(pod_template_hash(&template, collisions), hash, "{what} {collisions:?}");
            }
        }
    }
}

#[test]
fn releases_before_1_9_wrote_a_null_creation_timestamp() {
    let text = bytes_of("small");
    let template = serde_json::from_str(text).unwrap();
    let expected = text.replacen(r#"{"labels"#, r#"{"creationTimestamp":null,"labels"#, 1);
    assert_eq!(encoded(&template, Dialect::Legacy), expected);
    assert_eq!(legacy_pod_template_hash(&template, None), "7d8bf98878");
}

#[test]
fn a_template_is_encoded_as_go_stores_it() {
    let typed = json!({
        "metadata": {
            "creationTimestamp": null, "labels": {"app": "guestbook"},
            "annotations": {"x": "<a>&b"}
        },
        "spec": {
            "containers": [{
                "name": "guestbook", "image": "nginx:1.25", "command": [], "unknown": 1,
                "ports": [{"name": "http", "containerPort": 8080, "hostPort": 0}],
                "env": [{"name": "A", "value": ""}, {"name": "B", "value": null}],
                "resources": {
                    "limits": {"cpu": 1}, "requests": {"cpu": 0.1, "memory": "1024Mi"}
                },
                "readinessProbe": {"httpGet": {"path": "/", "port": "http"}}
            }],
            "terminationGracePeriodSeconds": 30, "nodeSelector": {"b": "2", "a": "1"},
            "hostNetwork": false, "volumes": []
        }
    });
    assert_eq!(encoded(&typed, Dialect::Current), bytes_of("escapes"));
}

#[test]
fn fields_that_are_always_written_have_their_zero() {
    let spec = json!({
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {},
                "preferredDuringSchedulingIgnoredDuringExecution": [{}]
            },
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 2}]}
        },
        "ephemeralContainers": [{
            "name": "debug", "targetContainerName": "c", "lifecycle": {"preStop": {"httpGet": {}}}
        }],
        "volumes": [
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"dataSource": {}}}}},
            {"name": "s", "scaleIO": {"gateway": "g"}},
            {"name": "p", "projected": {}}
        ]
    });
    let expected = concat!(
        r#"{"metadata":{},"spec":{"volumes":["#,
        r#"{"name":"e","ephemeral":{"volumeClaimTemplate":{"metadata":{},"spec":{"resources":{},"#,
        r#""dataSource":{"apiGroup":null,"kind":"","name":""}}}}},"#,
        r#"{"name":"s","scaleIO":{"gateway":"g","system":"","secretRef":null}},"#,
        r#"{"name":"p","projected":{"sources":null}}],"#,
        r#""containers":null,"#,
        r#""ephemeralContainers":[{"name":"debug","resources":{},"#,
        r#""lifecycle":{"preStop":{"httpGet":{"port":0}}},"targetContainerName":"c"}],"#,
        r#""affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":"#,
        r#"{"nodeSelectorTerms":null},"preferredDuringSchedulingIgnoredDuringExecution":"#,
        r#"[{"weight":0,"preference":{}}]},"podAffinity":{"#,
        r#""preferredDuringSchedulingIgnoredDuringExecution":"#,
        r#"[{"weight":2,"podAffinityTerm":{"topologyKey":""}}]}}}}"#
    );
    assert_eq!(encoded(&json!({"spec": spec}), Dialect::Current), expected);
}

#[test]
fn two_spellings_of_the_same_cpu_share_a_hash() {
    let template = |limit: &str, request: Value| {
        json!({"spec": {"containers": [{
            "name": "c", "resources": {"limits": {"cpu": limit}, "requests": {"cpu": request}}
        }]}})
    };
    assert_eq!(
        pod_template_hash(&template("2000m", json!("150m")), None),
        pod_template_hash(&template("2", json!(0.15)), None)
    );
}

#[test]
fn step_hashes_are_those_of_argo_rollouts() {
    let cases = [
        ("no steps", json!(null), "5ffbfbbd64"),
        ("an empty list of steps", json!([]), "5ffbfbbd64"),
        (
            "weights and pauses",
            json!([
                {"setWeight": 20}, {"pause": {}}, {"setWeight": 40},
                {"pause": {"duration": 10}}, {"pause": {"duration": "1h"}}
            ]),
            "6d846f5bb9",
        ),
        (
            "an analysis",
            json!([{"analysis": {"templates": [{"templateName": "a"}]}}]),
            "6b86b64488",
        ),
    ];
    for (what, steps, hash) in cases {
        assert_eq!(step_hash(&steps), hash, "{what}");
    }
}

#[test]
fn older_step_hashes_differ_only_where_older_releases_wrote_otherwise() {
    let plain = json!([{"setWeight": 20}, {"pause": {"duration": 10}}]);
    assert_eq!(older_step_hashes(&plain), Vec::<String>::new());

    // 1.6 to 1.8 wrote empty metadata; before and after there was none.
    let analysis = json!([{"analysis": {"templates": [{"templateName": "a"}]}}]);
    assert_eq!(older_step_hashes(&analysis), ["694d4dcdc4"]);

    // An explicit false was dropped until 1.8, which leaves the two hashes above.
    let local =
        json!([{"analysis": {"templates": [{"templateName": "a", "clusterScope": false}]}}]);
    assert_eq!(older_step_hashes(&local), ["694d4dcdc4", "6b86b64488"]);

    // 1.7 writes an experiment as today, 1.6 without metadata.
    let experiment = json!([{"experiment": {"templates": [{"name": "a", "specRef": "stable"}]}}]);
    let template = r#"{"name":"a","specRef":"stable","metadata":{}}"#;
    let hash_of = |rest: &str| {
        let mut hash = Fnv32::default();
        hash.put(format!(r#"[{{"experiment":{{"templates":[{template}]{rest}}}}}]"#).as_bytes());
        safe_text(hash)
    };
    assert_eq!(step_hash(&experiment), hash_of(r#","analysisRunMetadata":{}"#));
    assert_eq!(older_step_hashes(&experiment), [hash_of("")]);
}

#[test]
fn other_steps_were_always_written_as_they_are_today() {
    let current = order::CanaryStep.fields;
    for older in [order::CanaryStepOf17, order::CanaryStepOf16, order::CanaryStepOf15] {
        let unchanged = |fields: &'static [order::Field]| {
            let fields = fields.iter().filter(|field| !CHANGED_STEPS.contains(&field.key));
            fields.map(|field| match field.kind {
                FieldType::Struct(kind) => (field.key, Some(kind.fields.len())),
                _ => (field.key, None),
            })
        };
        assert!(unchanged(current).eq(unchanged(older.fields)));
    }
}

#[test]
fn every_kind_of_step_is_encoded_in_order() {
    let steps = json!({
        "plugin": {"config": {"b": 1, "a": {}}, "name": "p"},
        "setMirrorRoute": {"percentage": 0, "name": "m", "match": [{
            "headers": {"h": {"regex": "r"}}, "path": {"prefix": "/"}, "method": {"exact": "GET"}
        }]},
        "setHeaderRoute": {
            "match": [{"headerValue": {"exact": "v"}, "headerName": "n"}], "name": "h"
        },
        "setCanaryScale": {"matchTrafficWeight": false, "replicas": 0},
        "analysis": {
            "analysisRunMetadata": {}, "measurementRetention": [{"limit": 3, "metricName": "m"}],
            "args": [{"name": "x", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "f"}}}]
        },
        "experiment": {
            "duration": "1h", "templates": [{"specRef": "canary", "name": "a", "service": {}}]
        },
        "setWeight": 0
    });
    let mut bytes = Vec::new();
    write(&mut bytes, Dialect::Current, &FieldType::Struct(order::CanaryStep), Some(&steps));
    let expected = concat!(
        r#"{"setWeight":0,"experiment":{"templates":[{"name":"a","specRef":"canary","#,
        r#""metadata":{},"service":{}}],"duration":"1h","analysisRunMetadata":{}},"#,
        r#""analysis":{"args":[{"name":"x","valueFrom":{"fieldRef":{"fieldPath":"f"}}}],"#,
        r#""measurementRetention":[{"metricName":"m","limit":3}],"analysisRunMetadata":{}},"#,
        r#""setCanaryScale":{"replicas":0},"#,
        r#""setHeaderRoute":{"name":"h","match":[{"headerName":"n","#,
        r#""headerValue":{"exact":"v"}}]},"#,
        r#""setMirrorRoute":{"name":"m","match":[{"method":{"exact":"GET"},"path":{"prefix":"/"},"#,
        r#""headers":{"h":{"regex":"r"}}}],"percentage":0},"#,
        r#""plugin":{"name":"p","config":{"a":{},"b":1}}}"#
    );
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}
