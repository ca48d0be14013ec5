//! Writes that fail: a refusal is final, everything else is tried again.

use super::*;

fn spec() -> Value {
    json!({ "templates": [template("a", json!({ "service": {} }))], "duration": "10s",
        "analyses": [{ "name": "n", "templateName": "errors" }] })
}

/// The change | what it is about.
fn writes() -> [(&'static str, Kind, &'static str); 5] {
    [
        ("create", kinds::REPLICA_SET, "study-a"),
        ("create", kinds::SERVICE, "study-a"),
        ("patch", kinds::REPLICA_SET, "study-a"),
        ("create", kinds::ANALYSIS_RUN, "study-n"),
        ("patch", kinds::ANALYSIS_RUN, "study-n"),
    ]
}

#[test]
fn a_conflict_or_a_lost_answer_never_ends_an_experiment() {
    for class in [Class::Stale, Class::Throttled, Class::Unreachable, Class::Unknown, Class::Gone] {
        for (verb, kind, name) in writes() {
            let what = format!("{class:?} {verb} {} {name}", kind.name);
            let mut play = Play::new(spec());
            play.refuse(verb, kind, name, class, "not now");
            play.go(120);
            assert!(play.refusals.is_empty(), "{what}: it was tried");
            assert_eq!(play.status().phase, "Successful", "{what}");
            assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 0);
            assert!(play.object("Service", "study-a").is_none(), "{what}");
        }
    }
}

#[test]
fn a_refusal_ends_it_in_the_servers_words() {
    let expected = [
        "Failed to create ReplicaSet for template 'a': no quota",
        "Failed to create Service study-a for template 'a': cannot create service: no quota",
        "Unable to scale ReplicaSet for template 'a' to desired replica count '1': no quota",
        "Failed to create AnalysisRun for analysis 'n': no quota",
    ];
    for ((verb, kind, name), message) in writes().into_iter().zip(expected) {
        let mut play = Play::new(spec());
        play.refuse(verb, kind, name, Class::Denied, "no quota");
        play.go(120);
        assert_eq!((&*play.status().phase, &*play.status().message), ("Error", message));
        let sets = play.objects.iter().filter(|((kind, _), _)| kind == "ReplicaSet");
        assert!(sets.into_iter().all(|(_, set)| set["spec"]["replicas"] == 0), "{message}");
        assert!(play.object("Service", "study-a").is_none(), "{message}");
    }
}

#[test]
fn the_events_of_a_refusal_name_what_was_refused() {
    let mut play = Play::new(spec());
    play.refuse("create", kinds::REPLICA_SET, "study-a", Class::Denied, "no quota");
    play.settle();
    let expected = [
        "ReplicaSetCreateError Failed to create new replica set \"study-a\": no quota",
        "TemplateError Template 'a' transitioned from  -> Error: Failed to create ReplicaSet for \
         template 'a': no quota",
    ];
    assert_eq!(play.events[..2], expected);
    let mut play = Play::new(spec());
    play.refuse("patch", kinds::REPLICA_SET, "study-a", Class::Denied, "no quota");
    play.settle();
    let told = "ReplicaSetUpdateError Failed to scale study-a up: no quota".to_owned();
    assert!(play.events.contains(&told), "{:?}", play.events);
}

#[test]
fn a_name_that_another_has_is_told() {
    let foreign = json!({ "metadata": { "name": "study-a" } });
    let cases = [
        (
            kinds::REPLICA_SET,
            "Failed to create ReplicaSet for template 'a': replicasets.apps \"study-a\" already \
             exists",
        ),
        (
            kinds::SERVICE,
            "Failed to create Service study-a for template 'a': service study-a already exists \
             and is not owned by experiment template a",
        ),
    ];
    for (kind, message) in cases {
        let mut play = Play::new(spec());
        play.refuse("create", kind.clone(), "study-a", Class::Exists, "already exists");
        play.foreign.insert("study-a".to_owned(), foreign.clone());
        play.go(120);
        assert_eq!((&*play.status().phase, &*play.status().message), ("Error", message));
        // It is gone by the time it is read.
        let mut play = Play::new(spec());
        play.refuse("create", kind, "study-a", Class::Exists, "already exists");
        play.go(120);
        assert_eq!(play.status().phase, "Successful");
    }
}

#[test]
fn the_clean_up_is_tried_again_until_it_is_allowed() {
    let mut play = Play::new(spec());
    play.go(10);
    assert_eq!(play.status().phase, "Successful");
    play.refuse("patch", kinds::REPLICA_SET, "study-a", Class::Denied, "a webhook says no");
    play.refuse("delete", kinds::SERVICE, "study-a", Class::Denied, "a webhook says no");
    play.go(120);
    assert!(play.refusals.is_empty(), "both were tried");
    assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 0);
    assert!(play.object("Service", "study-a").is_none());
    assert_eq!((&*play.status().phase, &*play.pods("a").status), ("Successful", "Successful"));
}

#[test]
fn a_run_that_may_not_be_ended_is_an_error_of_its_analysis() {
    let mut play = Play::new({
        let mut spec = spec();
        spec["analyses"][0]["requiredForCompletion"] = json!(true);
        spec
    });
    play.settle();
    play.refuse("patch", kinds::ANALYSIS_RUN, "study-n", Class::Denied, "no");
    play.spec(|spec| spec.terminate = true);
    play.settle();
    assert_eq!((&*play.run("n").phase, &*play.run("n").message), ("Error", "no"));
    assert_eq!(play.status().phase, "Error");
}

#[test]
fn a_uid_that_is_another_owners_is_not_ours() {
    let twin = json!({ "metadata": { "name": "study-a",
        "annotations": { "experiment.argoproj.io/name": "study",
            "experiment.argoproj.io/template-name": "a" },
        "ownerReferences": [{ "controller": true, "uid": Uid::default().to_string() }] } });
    let mut play = Play::new(spec());
    play.refuse("create", kinds::REPLICA_SET, "study-a", Class::Exists, "already exists");
    play.foreign.insert("study-a".to_owned(), twin);
    play.settle();
    assert_eq!(play.status().phase, "Error", "an Experiment of the same name that is gone");
}
