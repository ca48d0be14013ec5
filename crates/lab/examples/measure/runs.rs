//! What do AnalysisRuns of the background hold in memory? N of them that measure every ten seconds,
//! each with its latest measurements, its answer and the decision that is carried out.

use gradus_controller::analysis_runs::Source;
use gradus_controller::shell::{InterlockMode, Seen, Shell, Work};
use gradus_controller::watched::{Scope, Watched};
use gradus_engine::analysis::run::AnalysisRuns;
use gradus_engine::ask::Reply;
use gradus_engine::ask::http::HttpReply;
use serde_json::{Value, json};

use super::{frame, now, resident_kilobytes};

/// Kept of each metric.
const MEASUREMENTS: usize = 10;

/// Prints what so many runs add to resident memory.
pub fn measure(times: usize) {
    let before = resident_kilobytes();
    let mut shell = Shell::<AnalysisRuns>::new(&Scope::default(), InterlockMode::default());
    for source in AnalysisRuns::sources() {
        shell.observe(&source, &Seen::Init, now());
        for number in (0..times).filter(|_| source == Source::Runs) {
            shell.observe(&source, &Seen::InitApply(frame(run(number))), now());
        }
        shell.observe(&source, &Seen::InitDone, now());
    }
    // All are due at once, all are answered, and every decision is carried out at the same time.
    let (mut asked, mut acting) = (0, Vec::new());
    while let Some(work) = shell.next_work(now()) {
        match work {
            Work::Ask(inquiry) => {
                asked += 1;
                shell.learn_answer(*inquiry, Ok(answer()), now());
            }
            Work::Act(job) => acting.push(job),
            Work::Settle(_) | Work::Survey(_) => {}
        }
    }
    let after = resident_kilobytes();
    println!(
        "{}",
        json!({ "runs": times, "asked": asked, "measured": acting.len(),
            "added_kb": after.saturating_sub(before) })
    );
}

/// A run in mid-update that is due.
fn run(number: usize) -> Value {
    let measurement = json!({ "phase": "Successful", "value": "[0.998]",
        "startedAt": "2023-11-14T22:13:20Z", "finishedAt": "2023-11-14T22:13:20Z" });
    let measurements = vec![measurement; MEASUREMENTS];
    let query =
        "sum(rate(http_requests_total{code!~\"5..\"}[2m])) / sum(rate(http_requests_total[2m]))";
    let metric = json!({ "name": "success-rate", "interval": "10s", "failureLimit": 3,
        "successCondition": "result[0] >= 0.95",
        "provider": { "prometheus": { "address": "http://prometheus:9090", "query": query } } });
    json!({
        "metadata": { "name": format!("web-{number}-2"), "namespace": "shop",
            "uid": format!("00000000-0000-4000-8000-{number:012}"),
            "resourceVersion": (number + 1).to_string(), "labels": { "rollout-type": "Background" } },
        "spec": { "metrics": [metric] },
        "status": { "phase": "Running", "startedAt": "2023-11-14T22:00:00Z",
            "metricResults": [{ "name": "success-rate", "phase": "Running", "count": 70,
                "successful": 70, "consecutiveSuccess": 70, "measurements": measurements,
                "metadata": { "ResolvedPrometheusQuery": query } }] },
    })
}

fn answer() -> Reply {
    let result = json!([{ "metric": {}, "value": [1_700_000_100, "0.998"] }]);
    let body = json!({ "status": "success", "data": { "resultType": "vector", "result": result } });
    Reply::Http(Ok(HttpReply::new(200, &body.to_string())))
}
