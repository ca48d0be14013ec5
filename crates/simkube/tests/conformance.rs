//! The embedded cluster answers the conformance suite as a real API server did.

use std::sync::Arc;

use bytes::Bytes;
use gradus_simkube::SimCluster;
use gradus_simkube::behave::Behaviours;
use gradus_simkube::conformance::{self, Target};
use gradus_simkube::server::Server;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use jiff::{SignedDuration, Timestamp};
use tower::Service as _;

struct Embedded(Server);

impl Target for Embedded {
    async fn send(&self, request: Request<Bytes>) -> Result<(StatusCode, Bytes), String> {
        let answer = self.0.service().call(request.map(Full::new)).await;
        let response = answer.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    }
}

#[tokio::test(start_paused = true)]
async fn the_embedded_cluster_answers_as_a_real_one() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let began = tokio::time::Instant::now();
    let clock = move || start + SignedDuration::try_from(began.elapsed()).unwrap();
    let server = Server::new(SimCluster::new(Behaviours::default(), start), Arc::new(clock));
    let workers = server.clone();
    let running = tokio::spawn(async move { workers.run_workers().await });
    let embedded = Embedded(server);
    conformance::prepare(&embedded).await.unwrap();
    let mut wrong = Vec::new();
    let mut cases = 0;
    for file in conformance::load().unwrap() {
        let expected = conformance::expected(&file.name).unwrap();
        for case in &file.cases {
            cases += 1;
            let Some(expected) = expected.get(&case.case) else {
                wrong.push(format!("{}: nothing is recorded for it", case.case));
                continue;
            };
            match conformance::run(&embedded, case, "here").await {
                Ok(found) => wrong.extend(conformance::differences(case, expected, &found)),
                Err(error) => wrong.push(error.to_string()),
            }
        }
    }
    running.abort();
    assert!(wrong.is_empty(), "{} of {cases} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases >= 267, "the suite has shrunk to {cases} cases");
}

/// A step that is refused by mistake compares nothing any more, on either server.
#[test]
fn fields_that_are_compared_were_answered() {
    let mut refused = Vec::new();
    for file in conformance::load().unwrap() {
        let expected = conformance::expected(&file.name).unwrap();
        for case in &file.cases {
            let answers = expected.get(&case.case).into_iter().flatten();
            for (at, (step, answer)) in case.steps.iter().zip(answers).enumerate() {
                let has_fields = answer.get("fields").or(answer.get("events")).is_some();
                if step.compare.is_some() && !has_fields {
                    refused.push(format!("{}: step {}: {answer}", case.case, at + 1));
                }
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
