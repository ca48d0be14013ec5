//! Can the metric server of a simulation answer what a metric asks?

use gradus_api::analysis::Metric;
use gradus_promql::Query;
use gradus_simkube::traffic;
use regex_lite::Regex;

/// Why it cannot; none where it can, and for Jobs, which are run.
pub fn unanswerable(metric: &Metric) -> Option<String> {
    let provider = &metric.provider;
    if provider.job.is_some() {
        return None;
    }
    let Some(prometheus) = &provider.prometheus else {
        let is_own = provider.web.as_ref().is_some_and(|web| web.url.contains("/traffic"));
        return (!is_own).then(|| "only Prometheus is simulated".to_owned());
    };
    // An argument is filled in when the run is made: a text, or the number of a duration.
    let argument = Regex::new(r"\{\{[^}]*\}\}").expect("the pattern is well formed");
    let query = match Query::parse(&argument.replace_all(&prometheus.query, "1")) {
        Ok(query) => query,
        Err(error) => return Some(error.to_string()),
    };
    let mut names = query.selectors().into_iter().filter_map(|selector| selector.name());
    let unknown = names.find(|name| !traffic::knows(name));
    unknown.map(|name| format!("no series is named {name:?} in a simulation"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_simulation_cannot_answer_has_a_reason() {
        let prometheus = |query: &str| json!({ "prometheus": { "query": query } });
        let requests = "sum(rate(http_requests_total{app=\"{{args.app}}\"}[1m]))";
        let cases = [
            ("a job", json!({ "job": { "spec": {} } }), None),
            ("requests", prometheus(requests), None),
            ("a duration", prometheus("sum(rate(istio_requests_total[{{args.minutes}}m]))"), None),
            (
                "another series",
                prometheus("rate(orders_total[1m])"),
                Some("no series is named \"orders_total\" in a simulation"),
            ),
            (
                "another function",
                prometheus("deriv(up[1m])"),
                Some("the function deriv is not supported here"),
            ),
            (
                "another provider",
                json!({ "datadog": { "query": "x" } }),
                Some("only Prometheus is simulated"),
            ),
            ("the document", json!({ "web": { "url": "http://x/traffic" } }), None),
        ];
        for (what, provider, expected) in cases {
            let metric = json!({ "name": "a", "provider": provider });
            let metric = serde_json::from_value(metric).unwrap();
            assert_eq!(unanswerable(&metric).as_deref(), expected, "{what}");
        }
    }
}
