//! What the executor answers, and what no answer may hold.

use gradus_engine::ask::{ListOf, PodsOf};
use gradus_engine::decision::Kind;
use gradus_engine::uid::Uid;
use serde_json::json;

use super::*;
use crate::cluster::{PostedEvent, Write, Written};

/// A cluster with a Secret, a ConfigMap and two pods of different owners.
struct Few;

fn frame(value: Value) -> Frame {
    serde_json::from_value(value).unwrap()
}

impl Cluster for Few {
    async fn write(&self, _: Write) -> Result<Written, WriteError> {
        unreachable!("nobody writes here")
    }

    async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        unreachable!("answers are read whole")
    }

    async fn read_whole(&self, target: &ObjectRef) -> Result<Option<Value>, WriteError> {
        let metadata = json!({ "name": target.name, "managedFields": [{}] });
        Ok((&*target.name != "none").then(|| json!({ "metadata": metadata, "data": { "a": "b" } })))
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Frame>, WriteError> {
        assert_eq!(&*listing.namespace, "shop");
        let pod = |name: &str, owner: &str| {
            let owner = json!({ "kind": "ReplicaSet", "uid": owner, "controller": true });
            frame(json!({ "metadata": { "name": name, "ownerReferences": [owner] } }))
        };
        Ok(vec![pod("mine", "set"), pod("foreign", "another")])
    }

    async fn post(&self, _: &PostedEvent) -> Result<(), WriteError> {
        unreachable!("nobody posts here")
    }
}

fn target(kind: &'static str, name: &str) -> ObjectRef {
    ObjectRef::new(Kind::new("", "v1", kind, "things"), &"shop".into(), &name.into())
}

#[tokio::test]
async fn an_object_is_read_with_its_data_but_of_a_secret_nothing_is_shown() {
    let cases = [
        ("a ConfigMap", target("ConfigMap", "web"), json!("b")),
        ("a Secret", target("Secret", "web"), Value::Null),
    ];
    for (what, target, data) in cases {
        let Ok(Reply::Object(Some(object))) = read(&Few, &Question::Read(target)).await else {
            panic!("{what} is there")
        };
        assert_eq!(object["data"]["a"], data, "{what}");
        assert_eq!(object["metadata"], json!({ "name": "web" }), "{what}");
    }
    let absent = read(&Few, &Question::Read(target("ConfigMap", "none"))).await;
    assert_eq!(absent, Ok(Reply::Object(None)));
}

#[tokio::test]
async fn pods_are_those_that_the_replica_set_controls() {
    let set = target("ReplicaSet", "web-1");
    let uid: Uid = serde_json::from_value(json!("set")).unwrap();
    let pods = Question::Pods(PodsOf { set, uid, hash: "h".into() });
    let Ok(Reply::Pods(pods)) = read(&Few, &pods).await else { panic!("pods are listed") };
    let names: Vec<&str> = pods.iter().map(|pod| &*pod.name).collect();
    assert_eq!(names, ["mine"]);
    let list = ListOf { kind: kinds::POD, namespace: "shop".into(), labels: "".into() };
    let Ok(Reply::Objects(all)) = read(&Few, &Question::List(list)).await else {
        panic!("all are listed")
    };
    assert_eq!(all.len(), 2);
}
