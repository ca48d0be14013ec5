//! What people are told of a run.

use super::*;

fn texts(play: &Play) -> Vec<String> {
    told(&play.world.run).into_iter().map(|metric| metric.text).collect()
}

#[test]
fn the_metric_that_decided_is_told_with_value_condition_and_query() {
    let query = "sum(rate(errors{app=\"{{args.app}}\"}[1m]))\n  / sum(rate(requests[1m]))";
    let provider = json!({ "prometheus": { "address": "http://p:9090", "query": query } });
    let fields = json!({ "name": "errors", "successCondition": "result[0] < 0.05",
        "interval": "10s", "count": 3, "provider": provider });
    let mut spec = one(fields);
    spec["args"] = json!([{ "name": "app", "value": "shop" }]);
    let answer = |value: &str| {
        format!(
            "{{\"status\":\"success\",\"data\":{{\"resultType\":\"vector\",\"result\":\
             [{{\"metric\":{{}},\"value\":[1,\"{value}\"]}}]}}}}"
        )
    };
    let mut play = Play::new(spec, &format!("{} {}", answer("0.01"), answer("0.2")));
    let asked = "; successCondition result[0] < 0.05; asked: Prometheus http://p:9090 \
                 sum(rate(errors{app=\"shop\"}[1m])) / sum(rate(requests[1m]))";
    assert_eq!(texts(&play), [format!("metric errors is not measured yet{asked}")]);
    play.go(30);
    let decided = "metric errors is Failed (1 good, 1 bad): value [0.2] at 1970-01-01T00:16:50Z";
    assert_eq!(texts(&play), [format!("{decided}{asked}")]);
    assert!(told(&play.world.run)[0].is_against);
}

#[test]
fn what_does_not_count_and_what_is_out_of_order_is_told_too() {
    let mut spec = one(json!({ "consecutiveErrorLimit": 0 }));
    spec["dryRun"] = json!([{ "metricName": "m" }]);
    let mut play = Play::new(spec, "E");
    play.go(30);
    let found = told(&play.world.run).remove(0);
    let expected = "metric m is Error (1 out of order), which does not count (dryRun): no value at \
                    1970-01-01T00:16:40Z (";
    assert!(found.text.starts_with(expected), "{}", found.text);
    assert!(found.text.ends_with("; successCondition result >= 1; asked: Web http://w {$}"));
    assert!(!found.is_against);
    let play = Play::new(json!({ "metrics": [] }), "");
    assert_eq!(texts(&play), [""; 0], "its message says what is wrong");
}
