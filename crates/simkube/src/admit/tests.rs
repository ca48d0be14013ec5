//! Tables: what the server adds to an object and what it refuses. The expected values were read
//! from a real API server of version 1.35.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::SimCluster;
use crate::behave::Behaviours;
use crate::error::ApiError;
use crate::kinds::KindId;
use crate::request::Request;

fn cluster() -> SimCluster {
    SimCluster::new(Behaviours::default(), Timestamp::UNIX_EPOCH)
}

fn create(kind: KindId, body: Value) -> Result<Value, ApiError> {
    let mut cluster = cluster();
    let mut body = body;
    body["metadata"]["name"] = json!("x");
    let request = Request::create(kind, "default", body);
    let reply = cluster.call(&request, Timestamp::UNIX_EPOCH)?;
    Ok(reply.to_json(cluster.kinds()))
}

fn replica_set(pod_spec: Value) -> Value {
    json!({"spec": {"selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod_spec}}})
}

/// The first container of a template, as the server stores it.
fn container(container: Value) -> Value {
    let names = json!({"name": "c", "image": "web:1"});
    let with_names = crate::patch::merged(&names, container);
    let made = create(KindId::REPLICA_SET, replica_set(json!({"containers": [with_names]})));
    made.unwrap()["spec"]["template"]["spec"]["containers"][0].clone()
}

#[test]
fn a_template_gets_the_servers_defaults() {
    let made = create(
        KindId::REPLICA_SET,
        replica_set(json!({"containers": [{"name": "c", "image": "web:1"}],
            "nodeSelector": {}, "tolerations": [], "hostPID": false, "volumes": null})),
    );
    let made = made.unwrap();
    assert_eq!(made["spec"]["replicas"], 1);
    assert_eq!(
        made["spec"]["template"]["spec"],
        json!({
            "containers": [{
                "name": "c", "image": "web:1", "imagePullPolicy": "IfNotPresent", "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {},
            "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
        })
    );
}

#[test]
fn containers_are_completed_and_written_in_the_servers_form() {
    let cases = [
        ("no tag", json!({"image": "repo:5000/web"}), "imagePullPolicy", json!("Always")),
        ("latest", json!({"image": "web:latest"}), "imagePullPolicy", json!("Always")),
        ("a digest", json!({"image": "web@sha256:00"}), "imagePullPolicy", json!("IfNotPresent")),
        (
            "ports",
            json!({"ports": [{"containerPort": 80, "hostPort": 0}]}),
            "ports",
            json!([{"containerPort": 80, "protocol": "TCP"}]),
        ),
        (
            "a probe",
            json!({"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 0,
                "initialDelaySeconds": 0}}),
            "readinessProbe",
            json!({"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "failureThreshold": 3,
                "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}),
        ),
        (
            "a grpc probe",
            json!({"livenessProbe": {"grpc": {"port": 1}}}),
            "livenessProbe",
            json!({"grpc": {"port": 1, "service": ""}, "failureThreshold": 3, "periodSeconds": 10,
                "successThreshold": 1, "timeoutSeconds": 1}),
        ),
        (
            "hooks",
            json!({"lifecycle": {"preStop": {"httpGet": {"port": 1}},
                "postStart": {"sleep": {"seconds": 1}}}}),
            "lifecycle",
            json!({"preStop": {"httpGet": {"port": 1, "path": "/", "scheme": "HTTP"}},
                "postStart": {"sleep": {"seconds": 1}}}),
        ),
        (
            "environment",
            json!({"env": [{"name": "A", "value": ""},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]}),
            "env",
            json!([{"name": "A"},
                {"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v1",
                    "fieldPath": "metadata.name"}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"divisor": "0",
                    "resource": "limits.cpu"}}}]),
        ),
        (
            "quantities",
            json!({"resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"},
                "requests": {"cpu": 0.5}}}),
            "resources",
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}),
        ),
        (
            "flags that say nothing, and one that does",
            json!({"stdin": false, "securityContext": {"privileged": false, "capabilities": {}}}),
            "securityContext",
            json!({"privileged": false, "capabilities": {}}),
        ),
    ];
    for (what, written, field, expected) in cases {
        assert_eq!(container(written)[field], expected, "{what}");
    }
}

#[test]
fn volumes_are_completed() {
    let cases = [
        (json!({}), json!({"emptyDir": {}})),
        (
            json!({"secret": {"secretName": "x"}}),
            json!({"secret": {"secretName": "x", "defaultMode": 420}}),
        ),
        (
            json!({"configMap": {"name": "x", "items": []}}),
            json!({"configMap": {"name": "x", "defaultMode": 420}}),
        ),
        (json!({"hostPath": {"path": "/x"}}), json!({"hostPath": {"path": "/x", "type": ""}})),
        (
            json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
            json!({"projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}}),
        ),
        (
            json!({"downwardAPI": {"items": [
                {"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]}}),
            json!({"downwardAPI": {"defaultMode": 420, "items": [
                {"path": "a", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}]}}),
        ),
    ];
    for (mut written, mut expected) in cases {
        written["name"] = json!("v");
        expected["name"] = json!("v");
        let pod = json!({"containers": [{"name": "c", "image": "web:1"}], "volumes": [written]});
        let made = create(KindId::REPLICA_SET, replica_set(pod)).unwrap();
        assert_eq!(made["spec"]["template"]["spec"]["volumes"][0], expected);
    }
}

#[test]
fn a_pod_gets_more_than_a_template() {
    let pod = json!({"spec": {"hostNetwork": true, "serviceAccountName": "a", "containers": [
        {"name": "c", "image": "web:1", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}}}]}});
    let made = create(KindId::POD, pod).unwrap();
    let spec = &made["spec"];
    assert_eq!(spec["containers"][0]["ports"][0]["hostPort"], 80);
    assert_eq!(spec["containers"][0]["resources"]["requests"], json!({"cpu": "1"}));
    assert_eq!(spec["enableServiceLinks"], true);
    assert_eq!((&spec["priority"], &spec["serviceAccount"]), (&json!(0), &json!("a")));
    assert_eq!(spec["tolerations"].as_array().unwrap().len(), 2);
    assert_eq!(made["status"], json!({"phase": "Pending", "qosClass": "Burstable"}));
}

#[test]
fn services_get_what_their_type_needs() {
    let cases = [
        (
            "inside",
            json!({"selector": {"a": "b"}, "ports": [{"port": 80}]}),
            json!({"clusterIPs": true, "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack", "selector": {"a": "b"}, "type": "ClusterIP",
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                "sessionAffinity": "None"}),
        ),
        (
            "without an address or a selector",
            json!({"clusterIP": "None", "ports": [{"port": 80}]}),
            json!({"clusterIPs": true, "internalTrafficPolicy": "Cluster",
                "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack",
                "type": "ClusterIP", "sessionAffinity": "None",
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}),
        ),
        (
            "another name",
            json!({"type": "ExternalName", "externalName": "a.b"}),
            json!({"type": "ExternalName", "externalName": "a.b", "sessionAffinity": "None"}),
        ),
    ];
    for (what, spec, expected) in cases {
        let made = create(KindId::SERVICE, json!({"spec": spec})).unwrap();
        let mut spec = made["spec"].clone();
        if let Some(map) = spec.as_object_mut()
            && let Some(address) = map.remove("clusterIP")
        {
            assert_eq!(map["clusterIPs"], json!([address]), "{what}");
            map.insert("clusterIPs".to_owned(), json!(true));
        }
        assert_eq!(spec, expected, "{what}");
        assert_eq!(made["status"], json!({"loadBalancer": {}}), "{what}");
    }
}

#[test]
fn texts_of_a_secret_are_coded_and_empty_data_is_dropped() {
    let secret = create(KindId::SECRET, json!({"stringData": {"a": "b"}})).unwrap();
    assert_eq!((&secret["data"], &secret["type"]), (&json!({"a": "Yg=="}), &json!("Opaque")));
    assert_eq!(secret.get("stringData"), None);
    let config = create(KindId::CONFIG_MAP, json!({"data": {}})).unwrap();
    assert_eq!(config.get("data"), None);
}

#[test]
fn a_job_is_told_apart_by_its_uid() {
    let job = json!({"spec": {"template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "web:1"}]}}}});
    let made = create(KindId::JOB, job).unwrap();
    let uid = &made["metadata"]["uid"];
    let labels = &made["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&labels["batch.kubernetes.io/controller-uid"], uid);
    assert_eq!(&made["metadata"]["labels"], labels);
    assert_eq!(made["spec"]["backoffLimit"], 6);
}

#[test]
fn what_makes_no_sense_is_refused_by_field() {
    let containers = json!({"containers": [{"name": "c", "image": "web:1"}]});
    let with = |path: &str, value: Value| {
        let mut body = replica_set(containers.clone());
        *body.pointer_mut(path).unwrap() = value;
        body
    };
    let template = |spec: Value| with("/spec/template/spec", spec);
    let mut negative = replica_set(containers.clone());
    negative["spec"]["replicas"] = json!(-1);
    let cases = [
        ("a negative number", negative, "Invalid spec.replicas"),
        (
            "a selector that selects others",
            with("/spec/selector", json!({"matchLabels": {"app": "y"}})),
            "Invalid spec.template.metadata.labels",
        ),
        ("a selector that selects all", with("/spec/selector", json!({})), "Invalid spec.selector"),
        ("no containers", template(json!({})), "Required spec.template.spec.containers"),
        (
            "no image",
            template(json!({"containers": [{"name": "c"}]})),
            "Required spec.template.spec.containers[0].image",
        ),
        (
            "one name twice",
            template(json!({"containers": [
                {"name": "c", "image": "i"}, {"name": "c", "image": "i"}]})),
            "Duplicate spec.template.spec.containers[1].name",
        ),
        (
            "pods that end",
            template(json!({"restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i"}]})),
            "NotSupported spec.template.spec.restartPolicy",
        ),
    ];
    for (what, body, expected) in cases {
        assert_eq!(refused(KindId::REPLICA_SET, body), [expected], "{what}");
    }
}

#[test]
fn what_names_are_made_from_is_checked_too() {
    let cases = [
        ("Bad_", vec!["metadata.name", "metadata.generateName"]),
        ("good-", vec![]),
        ("-", vec!["metadata.name", "metadata.generateName"]),
        ("é-", vec!["metadata.name"]),
    ];
    for (base, fields) in cases {
        let body = json!({"metadata": {"generateName": base}});
        let request = Request::create(KindId::CONFIG_MAP, "default", body);
        let found = match cluster().call(&request, Timestamp::UNIX_EPOCH) {
            Ok(_) => Vec::new(),
            Err(refusal) => {
                refusal.details.unwrap().causes.into_iter().map(|one| one.field).collect()
            }
        };
        assert_eq!(found, fields, "{base}");
    }
}

#[test]
fn services_need_ports_in_range() {
    let cases = [
        ("no ports", json!({}), vec!["Required spec.ports"]),
        ("out of range", json!({"ports": [{"port": 70_000}]}), vec!["Invalid spec.ports[0].port"]),
        (
            "two without names",
            json!({"ports": [{"port": 1}, {"port": 2}]}),
            vec!["Required spec.ports[0].name", "Required spec.ports[1].name"],
        ),
    ];
    for (what, spec, expected) in cases {
        assert_eq!(refused(KindId::SERVICE, json!({"spec": spec})), expected, "{what}");
    }
}

/// The causes of a refusal, each as reason and field.
fn refused(kind: KindId, body: Value) -> Vec<String> {
    let error = create(kind, body).unwrap_err();
    assert_eq!((error.code, error.reason), (422, "Invalid"));
    let causes = &error.details.unwrap().causes;
    let short = |reason: &'static str| reason.trim_start_matches("FieldValue");
    causes.iter().map(|one| format!("{} {}", short(one.reason), one.field)).collect()
}

#[test]
fn what_must_stay_stays() {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "web:1"}]}});
    let mut set = replica_set(json!({"containers": [{"name": "c", "image": "web:1"}]}));
    set["metadata"] = json!({"name": "p"});
    let service = json!({"metadata": {"name": "p"}, "spec": {"ports": [{"port": 80}]}});
    let frozen = json!({"metadata": {"name": "p"}, "immutable": true, "data": {"a": "1"}});
    let cases = [
        (KindId::POD, &pod, json!({"spec": {"restartPolicy": "Never"}}), Some("spec")),
        (KindId::POD, &pod, json!({"spec": {"activeDeadlineSeconds": 5}}), None),
        (
            KindId::REPLICA_SET,
            &set,
            json!({"spec": {"selector": {"matchLabels": {"app": "x", "b": "c"}},
                "template": {"metadata": {"labels": {"b": "c"}}}}}),
            Some("spec.selector"),
        ),
        (
            KindId::SERVICE,
            &service,
            json!({"spec": {"clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"]}}),
            Some("spec.clusterIPs[0]"),
        ),
        (KindId::CONFIG_MAP, &frozen, json!({"data": {"a": "2"}}), Some("data")),
        (KindId::CONFIG_MAP, &frozen, json!({"metadata": {"labels": {"a": "2"}}}), None),
    ];
    for (kind, body, patch, expected) in cases {
        let mut cluster = cluster();
        let request = Request::create(kind, "default", body.clone());
        cluster.call(&request, Timestamp::UNIX_EPOCH).unwrap();
        let request = Request::merge(kind, "default", "p", patch.clone());
        let result = cluster.call(&request, Timestamp::UNIX_EPOCH);
        let field = result.err().map(|error| error.details.unwrap().causes[0].field.clone());
        assert_eq!(field.as_deref(), expected, "{patch}");
    }
}
