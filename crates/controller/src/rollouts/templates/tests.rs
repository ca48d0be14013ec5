//! Which templates a Rollout sees, and which of their changes wake it.

use gradus_engine::ask::Recall;
use gradus_engine::frame::Frame;
use gradus_engine::rollout::Rollouts;
use serde_json::{Value, json};

use super::super::{RolloutIndex, Source};
use super::*;
use crate::watched::{Key, Reach, Watched};

fn frame(kind: &Kind, name: &str, spec: &Value) -> Frame {
    let namespace = if *kind == kinds::CLUSTER_ANALYSIS_TEMPLATE { "" } else { "default" };
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": namespace, "uid": name, "resourceVersion": "1" },
        "spec": spec,
    }))
    .unwrap()
}

fn analysis(template: &str) -> Value {
    json!({ "strategy": { "canary": { "steps": [
        { "analysis": { "templates": [{ "templateName": template }] } },
    ] } } })
}

/// `web` names `one`, which names the cluster's `two`, which names `three`; `shop` names `three`.
fn index() -> RolloutIndex {
    let mut index = RolloutIndex::default();
    let names = |name: &str, is_cluster: bool| json!({ "templates": [{ "templateName": name, "clusterScope": is_cluster }] });
    let objects = [
        (kinds::ROLLOUT, "web", analysis("one")),
        (kinds::ROLLOUT, "shop", analysis("three")),
        (kinds::ROLLOUT, "plain", json!({ "strategy": { "canary": {} } })),
        (kinds::ANALYSIS_TEMPLATE, "one", names("two", true)),
        (kinds::CLUSTER_ANALYSIS_TEMPLATE, "two", names("three", false)),
    ];
    for (kind, name, spec) in &objects {
        let source = source_of(kind);
        (Rollouts::shelf(&source).apply)(&mut index, kind, &frame(kind, name, spec));
    }
    index
}

fn source_of(kind: &Kind) -> Source {
    let sources = Rollouts::sources();
    sources.into_iter().find(|source| Rollouts::kind_of(source) == *kind).unwrap()
}

fn seen(index: &RolloutIndex, rollout: &str) -> Templates {
    let key = Key { namespace: "default".into(), name: rollout.into() };
    let none = BTreeMap::new();
    Rollouts::gather(index, &key, &none, &Recall::default()).unwrap().templates
}

fn names(keys: &[Key]) -> Vec<&str> {
    let mut names: Vec<&str> = keys.iter().map(|key| &*key.name).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_template_wakes_those_who_name_it_over_others_too() {
    let mut index = index();
    let cases = [
        (kinds::ANALYSIS_TEMPLATE, "three", vec!["shop", "web"]),
        (kinds::CLUSTER_ANALYSIS_TEMPLATE, "two", vec!["web"]),
        (kinds::ANALYSIS_TEMPLATE, "one", vec!["web"]),
        (kinds::CLUSTER_ANALYSIS_TEMPLATE, "three", vec![]),
        (kinds::ANALYSIS_TEMPLATE, "other", vec![]),
    ];
    for (kind, name, woken) in cases {
        let apply = Rollouts::shelf(&source_of(&kind)).apply;
        let found = apply(&mut index, &kind, &frame(&kind, name, &json!({})));
        assert_eq!(names(&found), woken, "{name} of {}", kind.name);
    }
    let one = ObjectRef::new(kinds::ANALYSIS_TEMPLATE, &"default".into(), &"one".into());
    let remove = Rollouts::shelf(&Source::AnalysisTemplates).remove;
    assert_eq!(names(&remove(&mut index, &one)), ["web"], "and its end");
}

#[test]
fn a_rollout_sees_what_it_names_through_others_there_or_not() {
    let mut index = index();
    let templates = seen(&index, "web");
    assert!(matches!(templates.namespaced["one"], Known::Present(_)));
    assert!(matches!(templates.cluster["two"], Known::Present(_)));
    assert_eq!(templates.namespaced["three"], Known::Absent);
    assert_eq!(seen(&index, "plain"), Templates::default());
    let unreadable = Reach::Unreadable("no");
    Rollouts::reach(&mut index, &Source::ClusterAnalysisTemplates, unreadable);
    assert_eq!(seen(&index, "web").cluster["two"], Known::Unknown("no".to_owned()));
}

#[test]
fn who_names_a_template_no_longer_is_not_concerned_by_it() {
    let mut index = TemplateIndex::default();
    let object = |namespace: &str, name: &str| {
        ObjectRef::new(kinds::ANALYSIS_TEMPLATE, &namespace.into(), &name.into())
    };
    let view = |named: Value| {
        TemplateView::read(&frame(
            &kinds::ANALYSIS_TEMPLATE,
            "outer",
            &json!({ "templates": named }),
        ))
    };
    let inner = json!([{ "templateName": "inner" }]);
    index.insert(object("default", "outer"), view(inner.clone()));
    index.insert(object("elsewhere", "outer"), view(inner));
    let concerned = index.concerned(&object("default", "inner"));
    let expected = ["inner", "outer"].map(|name| object("default", name));
    assert_eq!(concerned, BTreeSet::from(expected), "those of its namespace");
    index.insert(object("default", "outer"), view(json!([])));
    index.remove(&object("elsewhere", "outer"));
    assert_eq!(index.concerned(&object("default", "inner")).len(), 1);
    assert!(index.parents.is_empty());
}
