//! What is wrong with the templates of an analysis, in the contract's words.

use serde_json::{Value, json};

use super::at;
use super::fixture::Fixture;

fn metric(name: &str) -> Value {
    json!({ "name": name, "provider": { "web": { "url": "x" } } })
}

/// Who uses the template `t`, the template (nothing for none), and what is wrong with it.
fn cases() -> Vec<(&'static str, Value, &'static str)> {
    let lists = |metrics: Value| json!({ "metrics": metrics });
    let every = |count: Value| {
        let mut metric = metric("m");
        (metric["interval"], metric["count"]) = (json!("1m"), count);
        json!({ "metrics": [metric] })
    };
    let nested = |name: &str| {
        let named = json!([{ "templateName": name, "clusterScope": true }]);
        json!({ "metrics": [metric("m")], "templates": named })
    };
    let asks = |args: Value| json!({ "args": args, "metrics": [metric("m")] });
    let endless =
        "AnalysisTemplate t has metric m which runs indefinitely. Invalid value for count:";
    vec![
        ("step", json!(null), "\"t\": AnalysisTemplate 't' not found"),
        ("pre", json!(null), "\"t\": AnalysisTemplate 't' not found"),
        ("step", nested("far"), "\"far\": ClusterAnalysisTemplate 'far' not found"),
        (
            "step",
            lists(json!([metric("m"), metric("m")])),
            "names: two metrics have the same name 'm'",
        ),
        ("background", asks(json!([{ "name": "a" }])), "names: args.a was not resolved"),
        ("step", asks(json!([{ "name": "given" }])), ""),
        ("step", every(json!(null)), endless.leak_with(" <nil>")),
        ("post", every(json!(0)), endless.leak_with(" 0")),
        ("step", every(json!(3)), ""),
        (
            "step",
            every(json!("{{args.given}}")),
            "\"t\": AnalysisTemplate t: failed to resolve {{args.given}}",
        ),
        ("background", every(json!(null)), ""),
        (
            "step",
            asks(
                json!([{ "name": "given", "value": "v", "valueFrom": { "fieldRef": { "fieldPath": "x" } } }]),
            ),
            "\"t\": AnalysisTemplate t: arg 'given' has both Value and ValueFrom fields",
        ),
        (
            "step",
            json!({ "metrics": [metric("m")], "dryRun": [{ "metricName": "dry" }] }),
            "names: two Dry-Run metric rules have the same name 'dry'",
        ),
    ]
}

trait LeakWith {
    fn leak_with(self, end: &str) -> &'static str;
}

impl LeakWith for &'static str {
    fn leak_with(self, end: &str) -> &'static str {
        format!("\"t\": {self}{end}").leak()
    }
}

fn fixture(user: &str) -> (Fixture, &'static str) {
    let analysis = json!({
        "templates": [{ "templateName": "t" }],
        "args": [{ "name": "given", "value": "v" }],
        "dryRun": [{ "metricName": "dry" }],
    });
    match user {
        "step" => {
            let steps = json!([{ "setWeight": 20 }, { "analysis": analysis }]);
            (Fixture::canary(1, steps), "canary.steps[1].analysis")
        }
        "background" => {
            let mut fixture = Fixture::canary(1, json!([]));
            fixture.patch_spec(json!({ "strategy": { "canary": { "analysis": analysis } } }));
            (fixture, "canary.analysis")
        }
        "pre" => {
            let strategy = json!({ "prePromotionAnalysis": analysis });
            (Fixture::blue_green(1, strategy), "blueGreen.prePromotionAnalysis")
        }
        _ => {
            let strategy = json!({ "postPromotionAnalysis": analysis });
            (Fixture::blue_green(1, strategy), "blueGreen.postPromotionAnalysis")
        }
    }
}

#[test]
fn a_template_that_cannot_be_used_is_named_and_heals_by_itself() {
    for (user, template, wrong) in cases() {
        let (mut fixture, path) = fixture(user);
        if !template.is_null() {
            fixture.add_template("t", template.clone());
        }
        fixture.settle(at(0));
        let status = fixture.status();
        let message = status["message"].as_str().unwrap_or_default();
        if wrong.is_empty() {
            assert_eq!(status["phase"], "Healthy", "{user} {template}: {message}");
            continue;
        }
        let wrong = wrong.replace("names", "\"templateNames: [t]\"");
        let expected = format!(
            "InvalidSpec: The Rollout \"web\" is invalid: spec.strategy.{path}.templates: \
             Invalid value: {wrong}"
        );
        assert_eq!(message, expected, "{user} {template}");
        assert_eq!(status["phase"], "Degraded", "{user}");
        fixture.replace_template("t", json!({ "metrics": [metric("good")] }));
        fixture.settle(at(1));
        assert_eq!(fixture.status()["phase"], "Healthy", "{user}: {}", fixture.status());
    }
}

#[test]
fn a_value_that_cannot_be_found_is_told_before_the_run_is_made() {
    let field =
        |path: &str| json!([{ "name": "a", "valueFrom": { "fieldRef": { "fieldPath": path } } }]);
    let analysis =
        |path: &str| json!({ "templates": [{ "templateName": "t" }], "args": field(path) });
    let steps = json!([{ "setWeight": 20 }, { "analysis": analysis("spec.nothing") }]);
    let mut fixture = Fixture::canary(5, steps)
        .with_template("t", json!({ "args": [{ "name": "a" }], "metrics": [metric("m")] }));
    fixture.settle(at(0));
    assert_eq!(fixture.status()["phase"], "Healthy", "it may appear until then");
    fixture.set_image("v2");
    fixture.settle(at(10));
    let message = fixture.status()["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with("invalid path spec.nothing in rollout"), "{message}");
    assert_eq!((fixture.sizes(), fixture.runs()), (vec![4, 1], vec![]), "the old version serves");
    let steps = json!([{ "setWeight": 20 }, { "analysis": analysis("spec.replicas") }]);
    fixture.patch_spec(json!({ "strategy": { "canary": { "steps": steps } } }));
    fixture.settle(at(20));
    assert_eq!(fixture.runs(), ["2-1 -"]);
    assert_eq!(fixture.named_run("2-1")["spec"]["args"], json!([{ "name": "a", "value": "5" }]));
}
