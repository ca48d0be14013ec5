//! Tables: what each verb does, and how it refuses.

mod custom;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::behave::Behaviours;
use crate::error::ApiError;
use crate::kinds::KindId;
use crate::request::{Options, PatchKind, Reply, Request, Subresource, Verb};
use crate::{Content, SimCluster};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn cluster() -> SimCluster {
    SimCluster::new(Behaviours::default(), at(0))
}

fn make(cluster: &mut SimCluster, kind: KindId, body: Value) -> Value {
    let reply = cluster.call(&Request::create(kind, "default", body), at(0)).unwrap();
    reply.to_json(cluster.kinds())
}

fn call(cluster: &mut SimCluster, request: &Request) -> Result<Value, ApiError> {
    let reply: Reply = cluster.call(request, at(1))?;
    Ok(reply.to_json(cluster.kinds()))
}

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"a": "1"}})
}

fn replica_set() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "web:1"}]}}}})
}

fn put(kind: KindId, name: &str, body: Value) -> Request {
    Request::new(Verb::Update, kind, "default", name).with_body(body)
}

fn delete(kind: KindId, name: &str, options: Options) -> Request {
    let mut request = Request::new(Verb::Delete, kind, "default", name);
    request.options = options;
    request
}

/// Code, reason and the fields named.
fn refused(result: Result<Value, ApiError>) -> (u16, &'static str, Vec<String>) {
    let error = result.unwrap_err();
    let causes = error.details.iter().flat_map(|details| &details.causes);
    (error.code, error.reason, causes.map(|cause| cause.field.clone()).collect())
}

#[test]
fn a_new_object_gets_what_only_the_server_knows() {
    let mut cluster = cluster();
    let made = make(&mut cluster, KindId::REPLICA_SET, replica_set());
    let meta = &made["metadata"];
    assert_eq!(meta["namespace"], "default");
    assert_eq!(meta["generation"], 1);
    assert_eq!(meta["creationTimestamp"], "2027-01-15T08:00:00Z");
    assert_eq!(meta["resourceVersion"], cluster.version().to_string());
    assert_eq!(meta["uid"].as_str().unwrap().len(), 36);
    assert_eq!(made["status"], json!({"replicas": 0}));
    assert_eq!(made["apiVersion"], "apps/v1");
}

#[test]
fn what_cannot_be_created_is_refused_in_kubernetes_words() {
    let mut cluster = cluster();
    make(&mut cluster, KindId::CONFIG_MAP, config_map("there"));
    let cases = [
        (
            "exists",
            "default",
            config_map("there"),
            (409, "AlreadyExists", r#"configmaps "there" already exists"#),
        ),
        (
            "no namespace",
            "nowhere",
            config_map("a"),
            (404, "NotFound", r#"namespaces "nowhere" not found"#),
        ),
        (
            "no name",
            "default",
            json!({}),
            (
                422,
                "Invalid",
                "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is \
                 required",
            ),
        ),
        (
            "another namespace in the body",
            "default",
            json!({"metadata": {"name": "a", "namespace": "b"}}),
            (
                400,
                "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ),
        ),
        (
            "another version in the body",
            "default",
            json!({"apiVersion": "v2", "metadata": {"name": "a"}}),
            (
                400,
                "BadRequest",
                "the API version in the data (v2) does not match the expected API version (v1)",
            ),
        ),
        (
            "labels that are no texts",
            "default",
            json!({"metadata": {"name": "a", "labels": {"a": 1}}}),
            (400, "BadRequest", "metadata.labels: expected a string, found 1"),
        ),
        (
            "a version of its own",
            "default",
            json!({"metadata": {"name": "a", "resourceVersion": "1"}}),
            (500, "", "resourceVersion should not be set on objects to be created"),
        ),
    ];
    for (what, namespace, body, expected) in cases {
        let request = Request::create(KindId::CONFIG_MAP, namespace, body);
        let error = cluster.call(&request, at(1)).unwrap_err();
        assert_eq!((error.code, error.reason, error.message.as_str()), expected, "{what}");
    }
}

#[test]
fn names_and_labels_follow_their_rules() {
    let meta = |name: &str, key: &str, value: &str| {
        let labels = json!({key: value});
        json!({"metadata": {"name": name, "labels": labels}})
    };
    let long = "x".repeat(64);
    let name: &[&str] = &["metadata.name"];
    let labels: &[&str] = &["metadata.labels"];
    let cases: [(&str, KindId, Value, &[&str]); 9] = [
        ("all good", KindId::CONFIG_MAP, meta("a.b-c", "x.io/a_b", "V.1"), &[]),
        ("an empty value", KindId::CONFIG_MAP, meta("a", "a", ""), &[]),
        ("capitals", KindId::CONFIG_MAP, meta("A", "a", "b"), name),
        ("ends with a dash", KindId::CONFIG_MAP, meta("a-", "a", "b"), name),
        ("a value with a blank", KindId::CONFIG_MAP, meta("a", "a", "b c"), labels),
        ("a value too long", KindId::CONFIG_MAP, meta("a", "a", &long), labels),
        ("a key with two slashes", KindId::CONFIG_MAP, meta("a", "a/b/c", "d"), labels),
        ("a service with a dot", KindId::SERVICE, meta("a.b", "a", "b"), name),
        ("a service that begins with a digit", KindId::SERVICE, meta("1a", "a", "b"), name),
    ];
    for (what, kind, mut body, fields) in cases {
        if kind == KindId::SERVICE {
            body["spec"] = json!({"ports": [{"port": 80}]});
        }
        let request = Request::create(kind, "default", body);
        let seen = match cluster().call(&request, at(1)) {
            Ok(_) => Vec::new(),
            Err(error) => refused(Err(error)).2,
        };
        assert_eq!(seen, fields, "{what}");
    }
}

#[test]
fn a_write_that_changes_nothing_is_no_write() {
    let mut cluster = cluster();
    let made = make(&mut cluster, KindId::REPLICA_SET, replica_set());
    let version = cluster.version();
    let nothing = [
        Request::merge(KindId::REPLICA_SET, "default", "web", json!({})),
        Request::merge(KindId::REPLICA_SET, "default", "web", json!({"spec": {"replicas": 2}})),
        Request::merge(KindId::REPLICA_SET, "default", "web", json!({"status": {"replicas": 9}})),
        put(KindId::REPLICA_SET, "web", made.clone()),
        put(KindId::REPLICA_SET, "web", replica_set()),
    ];
    for request in nothing {
        assert_eq!(call(&mut cluster, &request).unwrap(), made, "{request:?}");
    }
    assert_eq!(cluster.version(), version);
}

#[test]
fn generation_counts_changes_of_what_is_wanted() {
    let mut cluster = cluster();
    make(&mut cluster, KindId::REPLICA_SET, replica_set());
    let rows = [
        ("a label", json!({"metadata": {"labels": {"a": "b"}}}), Subresource::None, 1),
        ("the spec", json!({"spec": {"replicas": 3}}), Subresource::None, 2),
        ("the status", json!({"status": {"replicas": 3}}), Subresource::Status, 2),
        ("the spec by the wrong door", json!({"spec": {"replicas": 9}}), Subresource::Status, 2),
    ];
    for (what, patch, subresource, generation) in rows {
        let request = Request::merge(KindId::REPLICA_SET, "default", "web", patch).on(subresource);
        let after = call(&mut cluster, &request).unwrap();
        assert_eq!(after["metadata"]["generation"], generation, "{what}");
    }
    let after = cluster.get(KindId::REPLICA_SET, "default", "web").unwrap();
    assert_eq!((&after.spec["replicas"], &after.status["replicas"]), (&json!(3), &json!(3)));
}

#[test]
fn only_the_newest_version_can_be_replaced() {
    let mut cluster = cluster();
    let first = make(&mut cluster, KindId::CONFIG_MAP, config_map("a"));
    let mut second = first.clone();
    second["data"]["a"] = json!("2");
    call(&mut cluster, &put(KindId::CONFIG_MAP, "a", second)).unwrap();
    let stale = "the object has been modified; please apply your changes to the latest version \
                 and try again";
    let stale = format!(r#"Operation cannot be fulfilled on configmaps "a": {stale}"#);
    let old = first["metadata"]["resourceVersion"].clone();
    let cases = [
        put(KindId::CONFIG_MAP, "a", first.clone()),
        Request::merge(
            KindId::CONFIG_MAP,
            "default",
            "a",
            json!({"metadata": {"resourceVersion": old}, "data": {"a": "3"}}),
        ),
    ];
    for request in cases {
        let error = cluster.call(&request, at(1)).unwrap_err();
        assert_eq!((error.code, error.reason), (409, "Conflict"));
        assert_eq!(error.message, stale);
    }
    let unconditional = put(KindId::CONFIG_MAP, "a", config_map("a"));
    assert!(call(&mut cluster, &unconditional).is_ok(), "no version, no condition");
}

#[test]
fn an_update_keeps_identity_and_refuses_another() {
    let mut cluster = cluster();
    let made = make(&mut cluster, KindId::CONFIG_MAP, config_map("a"));
    let mut other = config_map("a");
    other["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    other["metadata"]["generation"] = json!(7);
    let after = call(&mut cluster, &put(KindId::CONFIG_MAP, "a", other)).unwrap();
    assert_eq!(after["metadata"], made["metadata"], "the server's fields stay");
    let mut namesake = config_map("a");
    namesake["metadata"]["uid"] = json!("another");
    let result = call(&mut cluster, &put(KindId::CONFIG_MAP, "a", namesake));
    assert_eq!(refused(result).1, "Conflict");
    let patch = json!({"metadata": {"uid": "another"}});
    let result = call(&mut cluster, &Request::merge(KindId::CONFIG_MAP, "default", "a", patch));
    assert_eq!(refused(result), (422, "Invalid", vec!["metadata.uid".to_owned()]));
    let result = call(&mut cluster, &put(KindId::CONFIG_MAP, "a", config_map("b")));
    assert_eq!(refused(result).0, 400);
    let result = call(&mut cluster, &put(KindId::CONFIG_MAP, "gone", config_map("gone")));
    assert_eq!(refused(result).0, 404);
}

#[test]
fn all_patch_languages_reach_the_same_object() {
    let patches = [
        (PatchKind::Merge, json!({"metadata": {"labels": {"x": "y"}}, "spec": {"replicas": 5}})),
        (
            PatchKind::Json,
            json!([{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}},
                {"op": "replace", "path": "/spec/replicas", "value": 5}]),
        ),
        (
            PatchKind::Strategic,
            json!({"metadata": {"labels": {"x": "y"}}, "spec": {"replicas": 5}}),
        ),
    ];
    let mut results = Vec::new();
    for (language, patch) in patches {
        let mut cluster = cluster();
        make(&mut cluster, KindId::REPLICA_SET, replica_set());
        let request = Request::new(Verb::Patch(language), KindId::REPLICA_SET, "default", "web");
        results.push(call(&mut cluster, &request.with_body(patch)).unwrap());
    }
    assert_eq!(results[0]["spec"]["replicas"], 5);
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

#[test]
fn a_deletion_keeps_its_conditions() {
    let mut cluster = cluster();
    let made = make(&mut cluster, KindId::CONFIG_MAP, config_map("a"));
    let uid = Options { expect_uid: Some("other".into()), ..Options::default() };
    let version = Options { expect_version: Some(1), ..Options::default() };
    for options in [uid, version] {
        let result = call(&mut cluster, &delete(KindId::CONFIG_MAP, "a", options));
        assert_eq!(refused(result).1, "Conflict");
    }
    let done = call(&mut cluster, &delete(KindId::CONFIG_MAP, "a", Options::default())).unwrap();
    assert_eq!(done["status"], "Success");
    assert_eq!(done["details"]["uid"], made["metadata"]["uid"]);
    assert_eq!(done["details"]["kind"], "configmaps");
    let again = call(&mut cluster, &delete(KindId::CONFIG_MAP, "a", Options::default()));
    assert_eq!(refused(again).0, 404);
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_gone() {
    let mut cluster = cluster();
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = json!(["x.io/one"]);
    make(&mut cluster, KindId::CONFIG_MAP, body);
    let marked = call(&mut cluster, &delete(KindId::CONFIG_MAP, "a", Options::default())).unwrap();
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2027-01-15T08:00:01Z");
    let version = cluster.version();
    call(&mut cluster, &delete(KindId::CONFIG_MAP, "a", Options::default())).unwrap();
    assert_eq!(cluster.version(), version, "a second deletion changes nothing");
    let again = Request::create(KindId::CONFIG_MAP, "default", config_map("a"));
    let message = cluster.call(&again, at(1)).unwrap_err().message;
    assert_eq!(message, r#"object is being deleted: configmaps "a" already exists"#);
    let add = json!({"metadata": {"finalizers": ["x.io/one", "x.io/two"]}});
    let result = call(&mut cluster, &Request::merge(KindId::CONFIG_MAP, "default", "a", add));
    assert_eq!(refused(result), (422, "Invalid", vec!["metadata.finalizers".to_owned()]));
    let clear = json!({"metadata": {"finalizers": null}});
    call(&mut cluster, &Request::merge(KindId::CONFIG_MAP, "default", "a", clear)).unwrap();
    assert!(cluster.get(KindId::CONFIG_MAP, "default", "a").is_none());
    let last = cluster.last_write().unwrap();
    assert_eq!(last.change, crate::Change::Deleted);
}

#[test]
fn a_dry_run_answers_and_changes_nothing() {
    let mut cluster = cluster();
    make(&mut cluster, KindId::CONFIG_MAP, config_map("a"));
    make(&mut cluster, KindId::NAMESPACE, json!({"metadata": {"name": "other"}}));
    let version = cluster.version();
    let mut requests = [
        Request::create(KindId::CONFIG_MAP, "default", config_map("b")),
        Request::merge(KindId::CONFIG_MAP, "default", "a", json!({"data": {"a": "2"}})),
        Request::new(Verb::Delete, KindId::CONFIG_MAP, "default", "a"),
        Request::new(Verb::Delete, KindId::NAMESPACE, "", "other"),
    ];
    for request in &mut requests {
        request.options.dry_run = true;
        call(&mut cluster, request).unwrap();
    }
    assert_eq!(cluster.version(), version);
    assert!(cluster.get(KindId::CONFIG_MAP, "default", "b").is_none());
}

#[test]
fn lists_are_selected_and_cut_into_pages() {
    let mut cluster = cluster();
    for name in ["a", "b", "c", "d", "e"] {
        make(&mut cluster, KindId::CONFIG_MAP, config_map(name));
    }
    let names = |cluster: &mut SimCluster, options: Options| {
        let mut request = Request::new(Verb::List, KindId::CONFIG_MAP, "default", "");
        request.options = options;
        let reply = cluster.call(&request, at(1)).unwrap();
        let Content::List(list) = reply.content else { panic!("a list was asked for") };
        let names: Vec<_> = list.items.iter().map(|one| one.meta.name.to_string()).collect();
        (names.concat(), list.remaining, list.continue_token)
    };
    let by_label = Options { label_selector: Some("app in (a,c)".into()), ..Options::default() };
    assert_eq!(names(&mut cluster, by_label).0, "ac");
    let by_field =
        Options { field_selector: Some("metadata.name!=a".into()), ..Options::default() };
    assert_eq!(names(&mut cluster, by_field).0, "bcde");
    let first = Options { limit: Some(2), ..Options::default() };
    let (page, remaining, token) = names(&mut cluster, first);
    assert_eq!((page.as_str(), remaining), ("ab", Some(3)));
    // What happens in between is for the next list.
    call(&mut cluster, &Request::new(Verb::Delete, KindId::CONFIG_MAP, "default", "d")).unwrap();
    make(&mut cluster, KindId::CONFIG_MAP, config_map("f"));
    let rest = Options { continue_token: Some(token.into()), ..Options::default() };
    assert_eq!(names(&mut cluster, rest), ("cde".to_owned(), None, String::new()));
}

#[test]
fn lists_refuse_what_they_cannot_answer() {
    let mut cluster = cluster();
    cluster.compact();
    let cases = [
        (
            "a field nobody can select by",
            Options { field_selector: Some("data.a=1".into()), ..Options::default() },
            400,
        ),
        (
            "a broken selector",
            Options { label_selector: Some("a in".into()), ..Options::default() },
            400,
        ),
        (
            "a version of the future",
            Options { resource_version: Some(9_999), ..Options::default() },
            504,
        ),
        (
            "a version of the past that is forgotten, exactly",
            Options { resource_version: Some(1), exact_version: true, ..Options::default() },
            410,
        ),
        (
            "a page of a list that is forgotten",
            Options { continue_token: Some("1.default/a".into()), ..Options::default() },
            410,
        ),
        (
            "a token it did not make",
            Options { continue_token: Some("nonsense".into()), ..Options::default() },
            400,
        ),
    ];
    for (what, options, code) in cases {
        let mut request = Request::new(Verb::List, KindId::CONFIG_MAP, "default", "");
        request.options = options;
        assert_eq!(cluster.call(&request, at(1)).unwrap_err().code, code, "{what}");
    }
}

#[test]
fn a_collection_is_deleted_by_its_selector() {
    let mut cluster = cluster();
    for name in ["a", "b"] {
        make(&mut cluster, KindId::CONFIG_MAP, config_map(name));
    }
    let mut request = Request::new(Verb::DeleteCollection, KindId::CONFIG_MAP, "default", "");
    request.options.label_selector = Some("app=a".into());
    let reply = cluster.call(&request, at(1)).unwrap();
    assert_eq!(reply.as_list().unwrap().items.len(), 1);
    assert!(cluster.get(KindId::CONFIG_MAP, "default", "a").is_none());
    assert!(cluster.get(KindId::CONFIG_MAP, "default", "b").is_some());
}

#[test]
fn scale_reads_and_writes_the_number_of_replicas() {
    let mut cluster = cluster();
    make(&mut cluster, KindId::REPLICA_SET, replica_set());
    let get = Request::new(Verb::Get, KindId::REPLICA_SET, "default", "web").on(Subresource::Scale);
    let scale = call(&mut cluster, &get).unwrap();
    assert_eq!(scale["spec"], json!({"replicas": 2}));
    assert_eq!(scale["status"], json!({"replicas": 0, "selector": "app=web"}));
    let patch =
        Request::merge(KindId::REPLICA_SET, "default", "web", json!({"spec": {"replicas": 4}}));
    let after = call(&mut cluster, &patch.on(Subresource::Scale)).unwrap();
    assert_eq!(after["spec"], json!({"replicas": 4}));
    let stored = cluster.get(KindId::REPLICA_SET, "default", "web").unwrap();
    assert_eq!((stored.spec["replicas"].as_i64(), stored.meta.generation), (Some(4), 2));
    let bad =
        Request::merge(KindId::REPLICA_SET, "default", "web", json!({"spec": {"replicas": -1}}));
    assert_eq!(refused(call(&mut cluster, &bad.on(Subresource::Scale))).0, 422);
}

#[test]
fn an_eviction_obeys_the_disruption_budget() {
    let mut cluster = cluster();
    let pod = json!({"metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
    make(&mut cluster, KindId::POD, pod);
    let budget = json!({"metadata": {"name": "b"}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    make(&mut cluster, KindId::POD_DISRUPTION_BUDGET, budget);
    cluster.settle(at(0));
    cluster.settle(at(1));
    let evict = Request::new(Verb::Create, KindId::POD, "default", "p").on(Subresource::Eviction);
    let error = cluster.call(&evict, at(2)).unwrap_err();
    assert_eq!((error.code, error.reason), (429, "TooManyRequests"));
    let gone = Request::new(Verb::Delete, KindId::POD_DISRUPTION_BUDGET, "default", "b");
    cluster.call(&gone, at(3)).unwrap();
    cluster.call(&evict, at(4)).unwrap();
    assert!(cluster.get(KindId::POD, "default", "p").unwrap().meta.deleting.is_some());
}

#[test]
fn a_binding_puts_a_pod_on_a_node_once() {
    let mut cluster = cluster();
    let pod = json!({"metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
    make(&mut cluster, KindId::POD, pod);
    let bind = Request::new(Verb::Create, KindId::POD, "default", "p")
        .on(Subresource::Binding)
        .with_body(json!({"target": {"kind": "Node", "name": "n"}}));
    cluster.call(&bind, at(1)).unwrap();
    let pod = cluster.get(KindId::POD, "default", "p").unwrap();
    assert_eq!(pod.field("spec.nodeName").as_deref(), Some("n"));
    assert_eq!(cluster.call(&bind, at(1)).unwrap_err().code, 409);
}

#[test]
fn malformed_bodies_are_refused_and_never_panic() {
    let mut cluster = cluster();
    make(&mut cluster, KindId::REPLICA_SET, replica_set());
    let junk = [
        json!(null),
        json!("text"),
        json!([1]),
        json!({"metadata": 1}),
        json!({"metadata": {"name": "x", "ownerReferences": [1]}}),
        json!({"metadata": {"name": "x", "finalizers": "f"}}),
        json!({"metadata": {"name": "x", "creationTimestamp": "yesterday"}}),
        json!({"metadata": {"name": "x"}, "spec": "s", "status": 3}),
        json!({"metadata": {"name": "x"}, "spec": {"template": "t", "selector": [], "ports": 1,
            "strategy": "s", "names": 7, "versions": {}, "replicas": "many"}}),
        json!({"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": ["c"],
            "volumes": [1], "tolerations": "t"}}, "ports": [1], "containers": [null],
            "versions": [1]}}),
    ];
    let kinds: Vec<KindId> = cluster.kinds().served().map(|(kind, _)| kind).collect();
    for body in junk {
        for kind in &kinds {
            let namespace = if cluster.kinds().get(*kind).namespaced { "default" } else { "" };
            let create = Request::create(*kind, namespace, body.clone());
            drop(cluster.clone().call(&create, at(1)).map(|_| ()));
        }
        for verb in [
            Verb::Update,
            Verb::Patch(PatchKind::Merge),
            Verb::Patch(PatchKind::Json),
            Verb::Patch(PatchKind::Strategic),
        ] {
            for side in [Subresource::None, Subresource::Status, Subresource::Scale] {
                let request = Request::new(verb, KindId::REPLICA_SET, "default", "web");
                let request = request.on(side).with_body(body.clone());
                let mut copy = cluster.clone();
                drop(copy.call(&request, at(1)).map(|_| ()));
                copy.settle(at(2));
            }
        }
    }
}
