//! How much does the controller remember of AnalysisRuns in the background? Measured as the system sees it, in
//! a process of its own: what the allocator adds counts, too.

use gradus_engine::analysis::run::AnalysisRunView;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::world::RunView;
use serde_json::{Value, json};

/// So many runs measure at once.
const RUNS: usize = 500;

/// What they may take together.
const MOST: usize = 20 * 1024 * 1024;

/// Measurements that a run keeps.
const KEPT: usize = 10;

#[test]
fn five_hundred_background_runs_take_at_most_20_megabytes() {
    // The first of all pays for what is made once.
    let first = views(RUNS);
    let before = resident_bytes();
    let all: Vec<(AnalysisRunView, RunView)> = (0..RUNS).map(views).collect();
    let taken = resident_bytes().saturating_sub(before);
    let kept = all.iter().map(|(run, _)| run.status.metric_results[0].measurements.len());
    assert_eq!(kept.sum::<usize>(), RUNS * KEPT);
    assert_eq!(first.0.status.metric_results.len(), 1);
    println!("{taken} bytes of {RUNS} runs");
    assert!(taken > RUNS * KEPT * 100, "nothing was measured: {taken} bytes");
    assert!(taken <= MOST, "{taken} bytes of {RUNS} runs");
}

/// A run as its own engine sees it, and as its Rollout does.
fn views(number: usize) -> (AnalysisRunView, RunView) {
    let frame = serde_json::from_str::<Frame>(&run(number).to_string()).expect("an AnalysisRun");
    (AnalysisRunView::read(&frame), RunView::read(&kinds::ANALYSIS_RUN, &frame))
}

/// A background run that measures every 10 seconds and has done so for a while.
fn run(number: usize) -> Value {
    let measurement = |index: usize| {
        let time = format!("2026-11-16T00:10:{:02}Z", index % 60);
        json!({ "phase": "Successful", "value": "[0.9987654321]", "startedAt": time,
            "finishedAt": time })
    };
    let measurements: Vec<Value> = (0..KEPT).map(measurement).collect();
    let query = "sum(rate(http_requests_total{app=\"{{args.app}}\",code!~\"5..\"}[2m])) / \
                 sum(rate(http_requests_total{app=\"{{args.app}}\"}[2m]))";
    let provider = json!({ "prometheus": { "address": "http://prometheus:9090", "query": query } });
    let result = json!({ "name": "success-rate", "phase": "Running", "count": 40, "successful": 40,
        "consecutiveSuccess": 40, "measurements": measurements,
        "metadata": { "ResolvedPrometheusQuery": query } });
    json!({
        "metadata": { "namespace": "shop", "name": format!("web-{number}-6f7b9c5d8-2"),
            "uid": format!("00000000-0000-4000-8000-{number:012}"), "resourceVersion": "7",
            "labels": { "rollouts-pod-template-hash": "6f7b9c5d8", "rollout-type": "Background" },
            "annotations": { "rollout.argoproj.io/revision": "2" } },
        "spec": { "args": [{ "name": "app", "value": format!("web-{number}") }],
            "metrics": [{ "name": "success-rate", "interval": "10s", "failureLimit": 3,
                "successCondition": "result[0] >= 0.95", "provider": provider }] },
        "status": { "phase": "Running", "startedAt": "2026-11-16T00:00:00Z",
            "metricResults": [result], "runSummary": { "count": 1 }, "dryRunSummary": {} },
    })
}

/// What the system says this process holds in memory.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line of memory");
    let number = line.split_whitespace().nth(1).and_then(|number| number.parse::<usize>().ok());
    number.expect("kilobytes") * 1024
}
