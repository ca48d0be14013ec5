//! What queries give over series whose values are known.

use gradus_promql::{
    Labels, Matcher, Point, Query, QueryError, Sample, Selector, Series, Source, Value, stale,
};

/// Series of a table.
struct Known(Vec<Series>);

impl Source for Known {
    fn select(&self, selector: &Selector, from: i64, to: i64) -> Vec<Series> {
        let selected = self.0.iter().filter(|one| selector.selects(&one.labels));
        let within = |one: &Series| Series {
            samples: one.samples.iter().filter(|s| from < s.at && s.at <= to).copied().collect(),
            ..one.clone()
        };
        selected.map(within).collect()
    }
}

fn labels(text: &str) -> Labels {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').expect("a label and its value");
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// A sample every ten seconds, from second 0 on.
fn series(text: &str, values: impl IntoIterator<Item = f64>) -> Series {
    let samples = (0..).zip(values).map(|(at, value)| Sample { at: at * 10_000, value });
    Series { labels: labels(text), samples: samples.collect() }
}

fn counter(text: &str, per_second: f64) -> Series {
    series(text, (0..61).map(|at| f64::from(at) * 10.0 * per_second))
}

fn known() -> Known {
    let ended = [1.0; 30].into_iter().chain([stale()]);
    Known(vec![
        counter("__name__=requests,app=web,code=200,pod=a", 8.0),
        counter("__name__=requests,app=web,code=500,pod=a", 2.0),
        counter("__name__=requests,app=web,code=200,pod=b", 10.0),
        counter("__name__=requests,app=api,code=200,pod=c", 1.0),
        counter("__name__=took_bucket,app=web,le=0.1", 5.0),
        counter("__name__=took_bucket,app=web,le=0.5", 9.0),
        counter("__name__=took_bucket,app=web,le=+Inf", 10.0),
        series("__name__=resets", [0.0, 100.0, 10.0, 20.0].into_iter().cycle().take(61)),
        series("__name__=up,app=web", [1.0; 61]),
        series("__name__=ended,app=old", ended),
        series("__name__=limit,app=web", [5.0; 61]),
    ])
}

/// Values in the order of their labels.
fn told(value: Value) -> String {
    let number = |number: f64| format!("{}", (number * 1e6).round() / 1e6);
    let all = |labels: &Labels| {
        let pairs: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(",")
    };
    match value {
        Value::Scalar(value) => number(value),
        Value::Vector(mut points) => {
            points.sort_by(|one, other| one.labels.cmp(&other.labels));
            let points = points.iter().map(|Point { labels, value }| {
                format!("{} {}", all(labels), number(*value)).trim().to_owned()
            });
            points.collect::<Vec<_>>().join("; ")
        }
        Value::Matrix(series) => format!("{} series", series.len()),
    }
}

/// A query, and what it gives at second 600.
const CASES: &str = r#"
1 + 2 * 3 ^ 2 % 5 | 4
-(2 - 5) | 3
1 > bool 2 | 0
up | __name__=up,app=web 1
up{app!="web"} |
ended |
ended offset 6m | __name__=ended,app=old 1
limit - up | app=web 4
-up | app=web -1
sum(rate(requests{app="web"}[1m])) | 20
sum by (code) (rate(requests{app="web"}[1m])) | code=200 18; code=500 2
sum without (code, pod) (rate(requests[1m])) | app=api 1; app=web 20
sum(rate(requests{code=~"5.."}[1m])) / sum(rate(requests{app="web"}[1m])) | 0.1
sum(increase(requests{app="web",code!~"5.*"}[2m])) | 2160
avg(rate(requests[1m])) | 5.25
max by (app) (rate(requests[1m])) | app=api 1; app=web 10
min(rate(requests[1m])) | 1
count(requests) | 4
irate(requests{pod="c"}[1m]) | app=api,code=200,pod=c 1
increase(resets[40s]) | 26.666667
histogram_quantile(0.5, sum by (le) (rate(took_bucket[1m]))) | 0.1
histogram_quantile(0.9, rate(took_bucket[1m])) | app=web 0.5
histogram_quantile(0.7, rate(took_bucket[1m])) | app=web 0.3
histogram_quantile(0.99, rate(took_bucket[1m])) | app=web 0.5
histogram_quantile(2, rate(took_bucket[1m])) | app=web inf
requests > 5000 | __name__=requests,app=web,code=200,pod=b 6000
requests > bool 5000 | app=api,code=200,pod=c 0; app=web,code=200,pod=a 0; app=web,code=200,pod=b 1; app=web,code=500,pod=a 0
rate(requests{pod="a"}[1m]) / ignoring(code) group_left sum by (app, pod) (rate(requests[1m])) | app=web,code=200,pod=a 0.8; app=web,code=500,pod=a 0.2
nothing or vector(0) | 0
sum(nothing) or on() vector(3) | 3
up and limit | __name__=up,app=web 1
up unless on(app) limit |
sum(nothing) / sum(requests) |
scalar(sum(requests{app="api"})) | 600
scalar(requests) | NaN
clamp_max(limit, 3) | app=web 3
avg_over_time(limit[1m]) | app=web 5
max_over_time(resets[40s]) | 100
time() | 600
requests{app="web"}[1m] | 3 series
0 / 0 | NaN
"#;

#[test]
fn queries_give_what_prometheus_gives() {
    let known = known();
    let mut wrong = Vec::new();
    for row in CASES.trim().lines() {
        let (text, expected) = row.rsplit_once('|').unwrap();
        let value = Query::parse(text.trim()).unwrap().instant(&known, 600_000).unwrap();
        let told = told(value);
        if told != expected.trim() {
            wrong.push(format!("{text}: {told}, expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let cases = [
        ("topk(3, requests)", "the aggregation topk is not supported here"),
        ("quantile(0.9, requests)", "the aggregation quantile is not supported here"),
        ("deriv(requests[1m])", "the function deriv is not supported here"),
        ("label_replace(up, \"a\", \"b\", \"c\", \"d\")", "a text is not supported here"),
        ("max_over_time(rate(requests[1m])[5m:1m])", "a subquery is not supported here"),
        ("up @ 5", "the modifier @ is not supported here"),
        ("up atan2 up", "the operator atan2 is not supported here"),
    ];
    for (text, expected) in cases {
        assert_eq!(Query::parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    for text in ["", "sum(", "up{", "rate(up)", "{}", "up +"] {
        let error = Query::parse(text).unwrap_err();
        assert!(matches!(error, QueryError::Invalid(_)), "{text}: {error}");
    }
}

#[test]
fn what_does_not_match_one_to_one_is_an_error() {
    let query = Query::parse("limit / on(app) requests").unwrap();
    let error = query.instant(&known(), 600_000).unwrap_err().to_string();
    assert!(error.contains("many-to-many matching not allowed"), "{error}");
}

#[test]
fn a_query_names_what_it_selects() {
    let query = Query::parse(r#"sum(rate(a{x="1"}[1m])) / on() group_left b or {__name__="c"}"#);
    let query = query.unwrap();
    let names: Vec<_> = query.selectors().iter().map(|one| one.name()).collect();
    assert_eq!(names, [Some("a"), Some("b"), Some("c")]);
    let labels: Vec<&str> = query.selectors()[0].matchers().iter().map(Matcher::label).collect();
    assert_eq!(labels, ["x", "__name__"]);
}

#[test]
fn a_range_has_a_value_at_every_step() {
    let query = Query::parse("sum by (code) (rate(requests{pod=\"a\"}[1m]))").unwrap();
    let found = query.range(&known(), (300_000, 360_000), 30_000).unwrap();
    let shape: Vec<_> = found.iter().map(|one| (one.labels.len(), one.samples.len())).collect();
    assert_eq!(shape, [(1, 3), (1, 3)]);
    for (range, step) in [((0, 1), 0), ((1, 0), 1), ((0, 11_000), 1)] {
        assert!(query.range(&known(), range, step).is_err(), "{range:?} {step}");
    }
}

#[test]
fn answers_are_those_of_the_api() {
    use gradus_promql::{Response, answer};
    use serde_json::json;
    let ask = |path: &str, fields: &str| {
        let fields = fields.split('&').filter_map(|pair| pair.split_once('='));
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let Response { status, body } = answer(&known(), path, &fields, 600_000).into();
        (status, body)
    };
    let (status, body) = ask("/api/v1/query", "query=limit");
    let metric = json!({ "__name__": "limit", "app": "web" });
    let result = json!([{ "metric": metric, "value": [600.0, "5"] }]);
    let data = json!({ "resultType": "vector", "result": result });
    assert_eq!((status, body), (200, json!({ "status": "success", "data": data })));
    let (status, body) = ask("/api/v1/query_range", "query=vector(1)/0&start=0&end=1&step=0.5");
    let values = json!([[0.0, "+Inf"], [0.5, "+Inf"], [1.0, "+Inf"]]);
    assert_eq!((status, &body["data"]["result"][0]["values"]), (200, &values));
    let (status, body) = ask("/api/v1/query", "query=1&time=2.5");
    assert_eq!((status, &body["data"]["result"]), (200, &json!([2.5, "1"])));
    for (path, fields, code, kind) in [
        ("/api/v1/query", "query=sum(", 400, "bad_data"),
        ("/api/v1/query", "query=topk(1, up)", 400, "bad_data"),
        ("/api/v1/query", "query=up&time=noon", 400, "bad_data"),
        ("/api/v1/query_range", "query=up", 400, "bad_data"),
        ("/api/v1/query_range", "query=up&start=0&end=1&step=0", 422, "execution"),
        ("/api/v1/series", "query=up", 404, "not_found"),
    ] {
        let (status, body) = ask(path, fields);
        assert_eq!((status, &body["errorType"]), (code, &json!(kind)), "{path} {fields}");
    }
}
