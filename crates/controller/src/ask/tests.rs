//! What the executor answers, and what no answer may hold.

mod bad_answers;

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
async fn an_object_is_read_with_its_data_but_of_a_secret_the_keys_alone_are_shown() {
    let cases = [
        ("a ConfigMap", target("ConfigMap", "web"), json!("b")),
        ("a Secret", target("Secret", "web"), json!("")),
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

/// A cluster that panics where one object is read, and never answers where several are.
struct Broken {
    /// May something outside be changed?
    permits: bool,
}

impl Cluster for Broken {
    async fn write(&self, _: Write) -> Result<Written, WriteError> {
        unreachable!("nobody writes here")
    }

    async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        panic!("this read panics")
    }

    async fn read_whole(&self, _: &ObjectRef) -> Result<Option<Value>, WriteError> {
        panic!("this read panics")
    }

    async fn permit(&self) -> Result<(), WriteError> {
        let message = "not the leader".to_owned();
        let refused = WriteError { class: Class::Unreachable, message, retry_after_secs: None };
        self.permits.then_some(()).ok_or(refused)
    }

    async fn list(&self, _: &Listing) -> Result<Vec<Frame>, WriteError> {
        std::future::pending().await
    }

    async fn post(&self, _: &PostedEvent) -> Result<(), WriteError> {
        unreachable!("nobody posts here")
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_panics_or_hangs_costs_its_own_answer_alone() {
    let executor = Executor::new(Broken { permits: true }, None, None);
    let list = ListOf { kind: kinds::POD, namespace: "shop".into(), labels: "".into() };
    let panics = Inquiry::of(Question::Read(target("ConfigMap", "web")), Effect::Reads);
    let hangs = Inquiry::of(Question::List(list), Effect::Reads);
    let random = Inquiry::of(Question::Random(4), Effect::Reads);
    let began = tokio::time::Instant::now();
    let (panicked, hung, drawn) =
        tokio::join!(executor.answer(&panics), executor.answer(&hangs), executor.answer(&random));
    assert_eq!(panicked.unwrap().unwrap_err().message, "it panicked");
    assert_eq!(hung.unwrap().unwrap_err().message, "no answer within 60 s");
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    assert!(
        matches!(drawn, Some(Ok(Reply::Random(bytes))) if bytes.len() == 4),
        "others are answered"
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_or_a_list_beside_the_questions_is_contained_as_they_are() {
    let executor = Executor::new(Broken { permits: true }, None, None);
    let listing = Listing { kind: kinds::POD, namespace: "shop".into(), labels: String::new() };
    let object = target("ConfigMap", "web");
    let (settled, surveyed) = tokio::join!(executor.settle(&object), executor.survey(&listing));
    let (settled, surveyed) = (settled.unwrap_err(), surveyed.unwrap_err());
    assert_eq!((settled.class, &*settled.message), (Class::Unreachable, "it panicked"));
    assert_eq!(surveyed.message, "no answer within 600 s");
}

#[tokio::test]
async fn what_acts_goes_through_the_door_of_the_writes() {
    let question = || Question::Read(target("ConfigMap", "web"));
    for (permits, effect, said) in [
        (false, Effect::Acts, None),
        (true, Effect::Acts, Some("it panicked")),
        (false, Effect::Reads, Some("it panicked")),
    ] {
        let executor = Executor::new(Broken { permits }, None, None);
        let answer = executor.answer(&Inquiry::of(question(), effect)).await;
        let answer = answer.map(|answer| answer.unwrap_err().message);
        assert_eq!(answer.as_deref(), said, "{permits} {effect:?}: nobody is asked");
    }
}
