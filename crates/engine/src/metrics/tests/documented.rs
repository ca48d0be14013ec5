//! Does every provider of docs/analysis.md measure? Its example is played with an answer of its server.

use super::*;
use crate::analysis::condition;

const PAGE: &str = include_str!("../../../../../docs/analysis.md");

/// The metrics of the page's example of each provider.
fn documented() -> Vec<Metric> {
    let block =
        PAGE.split("```yaml\n").find(|block| block.contains("name: one-of-each\n")).unwrap();
    let template: Value = serde_saphyr::from_str(block.split("```").next().unwrap()).unwrap();
    serde_json::from_value(template["spec"]["metrics"].clone()).unwrap()
}

/// What the server of a provider answers, one request after the other.
fn answers(name: &str) -> Vec<HttpOutcome> {
    let one = |body: &str| vec![said(200, body)];
    match name {
        "prometheus" => one(r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{},"value":[1704067201.5,"0.99"]}]}}"#),
        "web" => one(r#"{"data":{"healthy":true,"errorPercent":0.4}}"#),
        "datadog" => one(r#"{"data":{"type":"scalar_response","attributes":{"columns":[
            {"name":"errors / all","type":"number","values":[0.004]}]}}}"#),
        "new-relic" => one(r#"{"data":{"actor":{"account":{"nrql":{"results":[
            {"successRate":0.998}]}}}}}"#),
        "wavefront" => one(r#"{"timeseries":[{"data":[[1704067200,0.99]]}]}"#),
        "graphite" => one(r#"[{"target":"t","datapoints":[[0.01,1704067140],[null,1704067200]]}]"#),
        "influxdb" => one("#datatype,string,long,double\n,result,table,_value\n,,0,0.97\n"),
        "skywalking" => one(r#"{"data":{"service_apdex":{"values":{"values":[
            {"value":9900},{"value":10000}]}}}}"#),
        "cloud-watch" => one(r#"{"MetricDataResults":[{"Id":"rate","Values":[0.001,0.002]}]}"#),
        "kayenta" => vec![
            said(200, r#"[{"name":"checkout","id":"7"}]"#),
            said(200, r#"{"canaryExecutionId":"e1"}"#),
        ],
        other => panic!("{other}: no answer of its server is known"),
    }
}

#[test]
fn every_documented_provider_measures() {
    let metrics = documented();
    let run = run();
    for metric in &metrics {
        let name = &metric.name;
        let (provider, replies) = (super::provider(metric).unwrap(), answers(name));
        let jobs = BTreeMap::new();
        let after = |count: usize| {
            let (replies, jobs, refused, pods) = (&replies[..count], &jobs, None, None);
            let seen = Observed {
                now: now(),
                run: &run,
                number: 1,
                replies,
                said: &[],
                jobs,
                refused,
                pods,
            };
            next(&*provider, Call::Run, &seen)
        };
        for sent in 0..replies.len() {
            let asked = after(sent);
            assert!(matches!(asked, Next::Send(..)), "{name}: {asked:?}");
        }
        match after(replies.len()) {
            Next::Done(Reading::Value { result, .. }) => {
                let phase = condition::judge(metric, &result, &[], now());
                assert_eq!(phase, Ok(RunPhase::Successful), "{name}: {result:?}");
            }
            Next::Done(Reading::InFlight { .. }) => assert_eq!(name, "kayenta"),
            next => panic!("{name}: {next:?}"),
        }
    }
    assert_eq!(metrics.len(), 10, "each provider over HTTP has an example");
}
