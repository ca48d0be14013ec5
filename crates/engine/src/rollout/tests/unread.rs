//! What is said of objects that cannot be read.

use serde_json::json;

use super::at;
use super::fixture::Fixture;
use crate::explain::sentence;
use crate::rollout::decide;
use crate::world::{Known, World};

#[test]
fn what_cannot_be_read_is_named() {
    type Lose = fn(&mut World, String);
    let cases: [(&str, Lose, &str); 7] = [
        ("sets", |it, words| it.replica_sets = Known::Unknown(words), "ReplicaSet default/*"),
        (
            "a Service",
            |it, words| drop(it.services.insert("canary".into(), Known::Unknown(words))),
            "Service default/canary",
        ),
        ("runs", |it, words| it.runs = Known::Unknown(words), "AnalysisRun default/*"),
        (
            "Experiments, which nobody needs here, and an Ingress",
            |it, words| {
                it.experiments = Known::Unknown(words.clone());
                it.routes[0].known = Known::Unknown(words);
            },
            "Ingress default/web",
        ),
        (
            "a template",
            |it, words| drop(it.templates.namespaced.insert("once".into(), Known::Unknown(words))),
            "AnalysisTemplate default/once",
        ),
        (
            "a Service and an Ingress: whichever is looked at first",
            |it, words| {
                it.routes[0].known = Known::Unknown(words.clone());
                it.services.insert("stable".into(), Known::Unknown(words));
            },
            "Service default/stable",
        ),
        (
            "an Ingress",
            |it, words| it.routes[0].known = Known::Unknown(words),
            "Ingress default/web",
        ),
    ];
    let templates = json!({ "templates": [{ "templateName": "once" }] });
    let strategy = json!({ "steps": [{ "pause": {} }], "analysis": templates });
    let metric = json!({ "name": "m", "provider": { "web": { "url": "x" } } });
    let mut fixture =
        Fixture::nginx(2, strategy).with_template("once", json!({ "metrics": [metric] }));
    fixture.settle(at(0));
    for (what, lose, object) in cases {
        for (words, told) in [("", "not listed yet"), ("it is forbidden", "it is forbidden")] {
            let mut world = fixture.world();
            lose(&mut world, words.to_owned());
            let decision = decide(&world, at(9));
            let why = &decision.why[0];
            assert!(!why.field.is_empty(), "{what}: what is read of it");
            let expected = format!("{object} cannot be read: {told}");
            assert!(sentence(why).starts_with(&expected), "{what}: {decision:?}");
            let said = decision.status.is_some();
            assert_eq!(said, !words.is_empty(), "{what}: the status has the server's words alone");
        }
    }
    let mut referring = Fixture::referring(1, "never", 1).world();
    referring.workload = Some(Known::Unknown(String::new()));
    let words = sentence(&decide(&referring, at(9)).why[0]);
    assert!(words.starts_with("Deployment default/web cannot be read: not listed yet"), "{words}");
}
