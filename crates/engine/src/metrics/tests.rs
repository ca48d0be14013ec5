//! Providers with recorded answers: what they request, and what they make of the answers.

mod asked;
mod documented;
mod plugin;
mod queried;

use serde_json::json;

use super::*;
use crate::ask::secret::marker;

/// 2024-01-01 00:00:01.5.
fn now() -> Timestamp {
    Timestamp::new(1_704_067_201, 500_000_000).unwrap()
}

fn run() -> Of {
    Of {
        namespace: "shop".into(),
        job_namespace: "shop".into(),
        name: "run".into(),
        uid: Uid::parse("00000000-0000-4000-8000-000000000001"),
        started_at: None,
    }
}

/// A metric of this provider.
fn metric(provider: Value) -> Metric {
    let metric = json!({ "name": "m", "interval": "1m", "provider": provider });
    serde_json::from_value(metric).unwrap()
}

/// What comes next after these answers, on one line.
fn after(provider: &Value, replies: &[HttpOutcome]) -> String {
    told(&called(provider, Call::Run, replies))
}

fn called(provider: &Value, call: Call<'_>, replies: &[HttpOutcome]) -> Next {
    let (metric, run) = (metric(provider.clone()), run());
    let provider = super::provider(&metric).unwrap();
    let jobs = BTreeMap::new();
    let (now, said, jobs) = (now(), &[], &jobs);
    let (refused, pods) = (None, None);
    let seen = Observed { now, run: &run, number: 1, replies, said, jobs, refused, pods };
    next(&*provider, call, &seen)
}

/// The answer of a server.
fn said(status: u16, body: &str) -> HttpOutcome {
    Ok(HttpReply::new(status, body))
}

/// A request or a measurement on one line.
fn told(next: &Next) -> String {
    match next {
        Next::Send(request, effect) => {
            let acts = if *effect == Effect::Acts { "acts: " } else { "" };
            let body = request.body.as_ref().map(|body| format!(" {body}")).unwrap_or_default();
            format!("{acts}{} {}{body}", request.method.text(), request.url)
        }
        Next::Call(call, _) => format!("call {} {}", call.name, call.operation.method()),
        Next::Done(outcome) => outcome_told(outcome),
        Next::Create { name, then, .. } => format!("create {name}, {}", outcome_told(then)),
        Next::Delete { job, then } => format!("delete {}, {}", job.name, outcome_told(then)),
        Next::Wait(moment) => format!("wait until {moment:?}"),
        Next::Pods { of, .. } => format!("pods {}", of.labels),
    }
}

fn outcome_told(outcome: &Reading) -> String {
    let with = |metadata: &TextMap| {
        let texts = metadata.iter().map(|(key, value)| format!(" {key}={value}"));
        texts.collect::<String>()
    };
    match outcome {
        Reading::Value { result: MetricValue::Nil, text, metadata } => {
            format!("nil {text}{}", with(metadata))
        }
        Reading::Value { text, metadata, .. } => format!("= {text}{}", with(metadata)),
        Reading::Judged { phase, text, message, metadata } => {
            format!("{} {text}{message}{}", phase.text(), with(metadata))
        }
        Reading::InFlight { resume_at, metadata } => format!("until {resume_at}{}", with(metadata)),
        Reading::Measured(measured) => format!("measured {}", measured.phase),
        Reading::Error(fault) => format!("! {}{}", fault.message, with(&fault.metadata)),
    }
}

/// Rows of a status, a body and what is made of them.
fn table(provider: &Value, rows: &[(u16, &str, &str)]) {
    for (status, body, expected) in rows {
        let found = after(provider, &[said(*status, body)]);
        // Where the answer came from and what was expected is the same for every row.
        let found = found.split(" (").next().unwrap_or_default();
        assert_eq!(found, expected.split(" (").next().unwrap_or_default(), "{status} {body}");
    }
}

#[test]
fn a_bad_answer_names_provider_address_and_expectation_but_no_secret() {
    let token = marker("keys", "token");
    let address = format!("http://me:{token}@host/base?key={token}");
    let web = json!({ "web": { "url": address } });
    let expected = "! received non 2xx response code: 500 (Web at http://host/base; expected a 2xx \
                    answer with the value at the jsonPath)";
    assert_eq!(after(&web, &[said(500, "secret body")]), expected);
    let timeout = Err(HttpError::Timeout(seconds(10)));
    let expected = "! Get \"http://host/base\": context deadline exceeded (Web at \
                    http://host/base; expected a 2xx answer with the value at the jsonPath)";
    assert_eq!(after(&web, &[timeout]), expected);
    for (error, text) in [
        (HttpError::Connect("connection refused".into()), "connection refused"),
        (HttpError::Tls("bad certificate".into()), "TLS failed: bad certificate"),
        (HttpError::Forbidden("127.0.0.1 is a loopback address".into()), "127.0.0.1 is a loopback"),
        (HttpError::TooLarge, "the answer is larger than 1048576 bytes"),
    ] {
        let found = after(&web, &[Err(error)]);
        let expected = format!("! Get \"http://host/base\": {text}");
        assert!(found.starts_with(&expected), "{found}");
    }
}

#[test]
fn a_secret_that_is_not_there_ends_the_run() {
    let web = json!({ "web": { "url": marker("keys", "url") } });
    let missing = crate::ask::secret::SecretError::NoSecret("keys".into());
    let next = called(&web, Call::Run, &[Err(missing.clone().into())]);
    let Next::Done(Reading::Error(fault)) = next else { panic!("an error: {next:?}") };
    assert!(fault.ends_run);
    assert_eq!(fault.message, "secrets \"keys\" not found");
    // Secrets of the controller are no arguments of the run: the measurement fails, the run goes on.
    for (provider, expected) in [
        (json!({ "datadog": { "query": "q" } }), "failed to find the credentials for datadog"),
        (json!({ "newRelic": { "query": "q" } }), "account ID or personal API key not found"),
        (json!({ "wavefront": { "address": "w", "query": "q" } }), "API token not found"),
        (json!({ "influxdb": { "query": "q" } }), "authToken, org, or address not found"),
        (json!({ "prometheus": { "query": "q" } }), "prometheus address is not configured"),
    ] {
        let next = called(&provider, Call::Run, &[Err(missing.clone().into())]);
        let Next::Done(Reading::Error(fault)) = next else { panic!("an error: {next:?}") };
        assert!(!fault.ends_run && fault.message.starts_with(expected), "{fault:?}");
    }
}

#[test]
fn every_provider_has_its_type_and_comes_in_the_order_of_the_contract() {
    let one = |name: &str| json!({ name: {} });
    let cases = [
        ("prometheus", "Prometheus"),
        ("job", "Job"),
        ("kayenta", "Kayenta"),
        ("web", "Web"),
        ("datadog", "Datadog"),
        ("wavefront", "Wavefront"),
        ("newRelic", "NewRelic"),
        ("cloudWatch", "CloudWatch"),
        ("graphite", "Graphite"),
        ("influxdb", "Influxdb"),
        ("skywalking", "skywalking"),
    ];
    let mut all = serde_json::Map::new();
    for (name, kind) in cases.iter().rev() {
        let alone = metric(one(name));
        assert_eq!(provider(&alone).unwrap().kind(), *kind);
        assert_eq!(provider_count(&alone.provider), 1);
        all.insert((*name).to_owned(), json!({}));
        let together = metric(Value::Object(all.clone()));
        assert_eq!(provider(&together).unwrap().kind(), *kind, "it comes before those after it");
        assert_eq!(provider_count(&together.provider), all.len());
    }
    let plugins = metric(json!({ "plugin": { "a/b": {}, "c/d": {} } }));
    assert_eq!(provider(&plugins).unwrap().kind(), "RPCPlugin");
    assert_eq!(provider_count(&plugins.provider), 2);
    assert!(provider(&metric(json!({}))).is_none());
}
