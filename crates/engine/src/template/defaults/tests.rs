use super::*;

fn defaulted(spec: Value) -> Value {
    let Value::Object(mut template) = json!({"spec": spec}) else { unreachable!() };
    apply(&mut template);
    let once = Value::Object(template.clone());
    apply(&mut template);
    assert_eq!(Value::Object(template), once, "twice is once");
    once["spec"].clone()
}

#[test]
fn a_bare_template_gets_what_every_pod_has() {
    let mut template = Map::new();
    apply(&mut template);
    let expected = json!({
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
        "schedulerName": "default-scheduler", "securityContext": {},
        "terminationGracePeriodSeconds": 30
    });
    assert_eq!(template["spec"], expected);
}

#[test]
fn what_is_given_stays_and_zero_stays_where_it_is_an_answer() {
    let spec = json!({
        "dnsPolicy": "Default", "restartPolicy": "", "schedulerName": "mine",
        "securityContext": {"runAsUser": 0}, "terminationGracePeriodSeconds": 0
    });
    let expected = json!({
        "dnsPolicy": "Default", "restartPolicy": "Always", "schedulerName": "mine",
        "securityContext": {"runAsUser": 0}, "terminationGracePeriodSeconds": 0
    });
    assert_eq!(defaulted(spec), expected);
}

#[test]
fn containers_of_every_list_get_their_defaults() {
    let given = json!({
        "name": "c", "image": "nginx",
        "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
        "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "f"}}},
            {"name": "B", "valueFrom": {"fileKeyRef": {"key": "k"}}}
        ],
        "livenessProbe": {"httpGet": {"port": 80}, "failureThreshold": 0},
        "readinessProbe": {"grpc": {"port": 1}, "periodSeconds": 5},
        "lifecycle": {"preStop": {"httpGet": {"path": "/bye", "port": 1}}}
    });
    let expected = json!({
        "name": "c", "image": "nginx", "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "ports": [
            {"containerPort": 80, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}
        ],
        "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "f", "apiVersion": "v1"}}},
            {"name": "B", "valueFrom": {"fileKeyRef": {"key": "k", "optional": false}}}
        ],
        "livenessProbe": {
            "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
            "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3
        },
        "readinessProbe": {
            "grpc": {"port": 1, "service": ""}, "timeoutSeconds": 1,
            "periodSeconds": 5, "successThreshold": 1, "failureThreshold": 3
        },
        "lifecycle": {"preStop": {"httpGet": {"path": "/bye", "port": 1, "scheme": "HTTP"}}}
    });
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        assert_eq!(defaulted(json!({list: [given]}))[list][0], expected, "{list}");
    }
}

#[test]
fn volumes_get_their_defaults() {
    let token = json!({"serviceAccountToken": {"path": "p"}});
    let cases = [
        ("no source", json!({}), json!({"emptyDir": {}})),
        ("no source but a null", json!({"nfs": null}), json!({"nfs": null, "emptyDir": {}})),
        ("secret", json!({"secret": {}}), json!({"secret": {"defaultMode": 420}})),
        (
            "a mode of zero is a mode",
            json!({"configMap": {"defaultMode": 0}}),
            json!({"configMap": {"defaultMode": 0}}),
        ),
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
    for (what, given, expected) in cases {
        assert_eq!(defaulted(json!({"volumes": [given]}))["volumes"][0], expected, "{what}");
    }
}

#[test]
fn what_is_no_object_is_left_alone() {
    for spec in [json!("text"), json!({"containers": [1, null], "volumes": {}})] {
        defaulted(spec);
    }
}
