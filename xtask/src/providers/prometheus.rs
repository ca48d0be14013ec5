//! Prometheus of Debian over a page of ours: AnalysisRuns measure it, and each query is asked of it
//! and of our own PromQL over the same samples.

use std::{collections::BTreeMap, fs, path::Path, sync::atomic::Ordering, time::Instant};

use gradus_promql::{Labels, Millis, Sample, Selector, Series, Source};
use http::Request;
use kube::{Client, Config};
use serde_json::{Value, json};

use super::{Case, ProvidersError, page, page::Page};
use crate::{
    Failure, ports,
    process::{Process, Recipe},
    summary::Summary,
};

/// So many times, a second apart, the page is read before anything is asked: more than the longest range
/// and its longest window, for versions of Prometheus extrapolate the beginning of a counter differently.
const READS: u64 = 24;

/// Queries whose answers must be the same. All moments lie between two scrapes.
const QUERIES: &[&str] = &[
    "up",
    "http_requests_total",
    "http_requests_total{code!~\"5..\",pod=\"a\"}",
    "http_requests_total{pod=~\"a|c\"}",
    "rate(http_requests_total[5s])",
    "rate(http_requests_total[10s])",
    "increase(http_requests_total[8s])",
    "irate(http_requests_total[10s])",
    "delta(warmth[6s])",
    "sum(rate(http_requests_total{code!~\"5..\"}[10s])) / sum(rate(http_requests_total[10s]))",
    "sum by (pod) (rate(http_requests_total[10s]))",
    "sum without (code, instance) (http_requests_total)",
    "sum by (pod) (rate(http_requests_total{code=\"500\"}[8s])) / sum by (pod) (rate(http_requests_total[8s]))",
    "avg(warmth)",
    "min by (job) (warmth)",
    "max(warmth)",
    "count(http_requests_total > 0)",
    "avg_over_time(warmth[7s])",
    "min_over_time(warmth[7s])",
    "max_over_time(warmth[7s])",
    "sum_over_time(warmth[7s])",
    "count_over_time(warmth[7s])",
    "histogram_quantile(0.95, sum by (le) (rate(latency_seconds_bucket[10s])))",
    "histogram_quantile(0.2, latency_seconds_bucket)",
    "rate(latency_seconds_sum[10s]) / rate(latency_seconds_count[10s])",
    "warmth > 3",
    "warmth > bool 3",
    "warmth and on (pod) http_requests_total{code=\"500\"}",
    "warmth unless on (pod) (http_requests_total{code=\"500\"} > 0)",
    "warmth or up",
    "-warmth + 2 ^ 3 % 5",
    "warmth offset 3s",
    "scalar(up) * 2",
    "vector(1)",
    "0 / 0",
    "absent_metric",
    "sum(absent_metric) / sum(absent_metric)",
];

/// A running Prometheus; dropping it ends it.
pub struct Running {
    _process: Process,
    _page: Page,
    port: u16,
    client: Client,
}

/// A client of a server on this port of loopback.
pub fn client_of(port: u16) -> Result<Client, Failure> {
    let mut config = Config::new(format!("http://127.0.0.1:{port}").parse()?);
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Starts it and waits until it has scraped enough.
pub async fn start(program: &Path, folder: &Path) -> Result<Running, Failure> {
    let page = page::serve().await?;
    let [port] = ports::free()?;
    let config = json!({
        "global": { "scrape_interval": "1s" },
        "scrape_configs": [{ "job_name": "page",
            "static_configs": [{ "targets": [format!("127.0.0.1:{}", page.port)] }] }],
    });
    let path = folder.join("prometheus.yaml");
    fs::write(&path, config.to_string())?;
    let recipe = Recipe::new("prometheus", program)
        .flag("config.file", &path)
        .flag("storage.tsdb.path", folder.join("tsdb"))
        .flag("web.listen-address", format!("127.0.0.1:{port}"))
        .flag("log.level", "error");
    let mut process = Process::start(&recipe, folder)?;
    let began = Instant::now();
    while page.reads.load(Ordering::Relaxed) < READS {
        if process.ended()?.is_some() || began.elapsed() > super::ENDS_WITHIN {
            let message = process.last_words();
            return Err(ProvidersError::Server { what: "Prometheus", message }.into());
        }
        tokio::time::sleep(super::ASK_EVERY).await;
    }
    Ok(Running { _process: process, _page: page, port, client: client_of(port)? })
}

impl Running {
    pub fn cases(&self) -> Vec<Case> {
        let address = format!("http://127.0.0.1:{}", self.port);
        let metric = |query: &str, condition: &str| {
            json!({ "successCondition": condition,
                "provider": { "prometheus": { "address": address, "query": query } } })
        };
        let rate = "sum(rate(http_requests_total{pod=\"a\",code!~\"5..\"}[10s])) \
                    / sum(rate(http_requests_total{pod=\"a\"}[10s]))";
        let mut range = metric("up{job=\"page\"}", "len(result) >= 5 && all(result, # == 1)");
        range["provider"]["prometheus"]["rangeQuery"] =
            json!({ "start": "now() - duration('5s')", "end": "now()", "step": "1s" });
        let test = "sequentialTest(series('pod', 'a', 'code', '5*'), series('pod', 'a'), \
                    series('pod', 'b', 'code', '5*'), series('pod', 'b')) >= 0.01";
        let mut compared = metric("sum by (pod, code) (increase(http_requests_total[4s]))", test);
        compared["provider"]["prometheus"]["rangeQuery"] =
            json!({ "start": "now() - duration('12s')", "end": "now()", "step": "4s" });
        vec![
            Case {
                what: "prometheus, a good rate",
                metric: metric(rate, "result[0] > 0.89 && result[0] < 0.91"),
                phase: "Successful",
                shows: "[0.",
            },
            Case {
                what: "prometheus, a bad rate",
                metric: metric(rate, "result[0] >= 0.95"),
                phase: "Failed",
                shows: "[0.",
            },
            Case { what: "prometheus, a range", metric: range, phase: "Successful", shows: "1,1" },
            Case {
                what: "prometheus, canary against baseline",
                metric: compared,
                phase: "Failed",
                shows: "",
            },
            Case {
                what: "prometheus, no query",
                metric: metric("sum(", "result[0] > 0"),
                phase: "Error",
                shows: "bad_data: ",
            },
            Case {
                what: "prometheus, no data",
                metric: metric("absent_metric", "result[0] > 0"),
                phase: "Error",
                shows: "no data returned from the metric provider",
            },
            Case {
                what: "prometheus, nan",
                metric: metric("vector(0) / vector(0)", "result[0] > 0"),
                phase: "Failed",
                shows: "NaN",
            },
        ]
    }

    /// Asks Prometheus and ourselves each query about the same moment, and about a range up to it.
    pub async fn compare(&self) -> Result<Summary, Failure> {
        let all = self.ask("query?query=%7Bjob%3D%22page%22%7D%5B60s%5D").await?;
        let samples = Samples::of(&all["data"]["result"]);
        // A little after a scrape: every window ends between two of them.
        let at = samples.last_moment() + 37;
        let mut summary = Summary::default();
        for query in QUERIES {
            let moment = |at: Millis| format!("{}.{:03}", at / 1000, at % 1000);
            let fields = [("query", (*query).to_owned()), ("time", moment(at))];
            let over =
                [("start", moment(at - 6000)), ("end", moment(at)), ("step", "2".to_owned())];
            let range: Vec<_> = fields[..1].iter().cloned().chain(over).collect();
            for (path, fields) in [("query", fields.to_vec()), ("query_range", range)] {
                let same = self.same(path, &fields, &samples, at).await;
                if let Err(error) = &same {
                    println!("  {path} {query}: FAILED: {error}");
                }
                summary += Summary::of(same.is_ok());
            }
        }
        Ok(summary)
    }

    async fn same(
        &self,
        path: &str,
        fields: &[(&'static str, String)],
        samples: &Samples,
        at: Millis,
    ) -> Result<(), Failure> {
        let escape =
            |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
        let words: Vec<String> =
            fields.iter().map(|(name, text)| format!("{name}={}", escape(text))).collect();
        let theirs = self.ask(&format!("{path}?{}", words.join("&"))).await?;
        let fields: BTreeMap<String, String> =
            fields.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
        let ours = gradus_promql::answer(samples, &format!("/api/v1/{path}"), &fields, at)?.data;
        let (theirs, ours) = (sorted(&theirs["data"]), sorted(&ours));
        if is_close(&theirs, &ours) {
            return Ok(());
        }
        Err(format!("Prometheus says\n    {theirs}\n  and we say\n    {ours}").into())
    }

    async fn ask(&self, what: &str) -> Result<Value, Failure> {
        let request = Request::get(format!("/api/v1/{what}")).body(Vec::new())?;
        Ok(serde_json::from_str(&self.client.request_text(request).await?)?)
    }
}

/// All samples that Prometheus has.
struct Samples(Vec<Series>);

impl Samples {
    fn of(matrix: &Value) -> Self {
        let series = matrix.as_array().into_iter().flatten().map(|one| {
            let labels: Labels = serde_json::from_value(one["metric"].clone()).unwrap_or_default();
            let points = one["values"].as_array().into_iter().flatten();
            let sample = |point: &Value| {
                let at = point[0].as_f64()? * 1000.0;
                let value = point[1].as_str()?.parse().ok()?;
                Some(Sample { at: at.round() as Millis, value })
            };
            Series { labels, samples: points.filter_map(sample).collect() }
        });
        Samples(series.collect())
    }

    fn last_moment(&self) -> Millis {
        let last = self.0.iter().filter_map(|series| series.samples.last());
        last.map(|sample| sample.at).max().unwrap_or_default()
    }
}

impl Source for Samples {
    fn select(&self, selector: &Selector, from: Millis, to: Millis) -> Vec<Series> {
        let selected = self.0.iter().filter(|series| selector.selects(&series.labels));
        let within = selected.map(|series| {
            let samples = series.samples.iter().filter(|one| from < one.at && one.at <= to);
            Series { labels: series.labels.clone(), samples: samples.copied().collect() }
        });
        within.filter(|series| !series.samples.is_empty()).collect()
    }
}

/// An answer with its series in one order.
fn sorted(data: &Value) -> Value {
    let mut data = data.clone();
    if let Some(list) =
        data["result"].as_array_mut().filter(|list| list.iter().all(Value::is_object))
    {
        list.sort_by_key(|one| one["metric"].to_string());
    }
    data
}

/// Equal but for the last digits of numbers.
fn is_close(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_close(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| is_close(value, other)))
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::String(text), Value::String(same)) if text != same => {
            match (text.parse::<f64>(), same.parse::<f64>()) {
                (Ok(one), Ok(other)) => (one - other).abs() <= 1e-9 * one.abs().max(1.0),
                _ => false,
            }
        }
        (one, other) => one == other,
    }
}

#[test]
fn answers_that_differ_in_the_last_digits_alone_are_the_same() {
    let cases = [
        ("the same", json!(["1", { "a": 1 }]), json!(["1", { "a": 1.0 }]), true),
        ("the last digits", json!(["0.30000000000000004"]), json!(["0.3"]), true),
        ("another number", json!(["0.31"]), json!(["0.3"]), false),
        ("another label", json!({ "a": "x" }), json!({ "a": "y" }), false),
        ("one more", json!([1]), json!([1, 2]), false),
    ];
    for (what, one, other, same) in cases {
        assert_eq!(is_close(&one, &other), same, "{what}");
    }
}
