//! Runs the conformance suite against the cluster of a kubeconfig, and keeps its answers with
//! `--record`: `cargo run -p gradus-simkube --example conformance -- KUBECONFIG [--record] [CASE]`.

use std::collections::BTreeMap;
use std::error::Error;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use gradus_simkube::conformance::{self, Case, Target};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

/// How many cases run at once.
const AT_ONCE: usize = 8;

struct Real(kube::Client);

impl Target for Real {
    async fn send(&self, request: Request<Bytes>) -> Result<(StatusCode, Bytes), String> {
        let request = request.map(kube::client::Body::from);
        let response = self.0.send(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("expected the path of a kubeconfig")?;
    let is_recording = arguments.iter().any(|argument| argument == "--record");
    let wanted = arguments.iter().skip(1).find(|argument| !argument.starts_with("--"));
    let options = KubeConfigOptions::default();
    let mut config =
        kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?;
    config.default_retry = false;
    let real = Real(kube::Client::try_from(config)?);
    conformance::prepare(&real).await?;
    let salt = format!("{:x}", std::process::id());
    let mut differences = Vec::new();
    for file in conformance::load()? {
        let cases: Vec<&Case> =
            file.cases.iter().filter(|case| wanted.is_none_or(|one| case.case.contains(one))).collect();
        let runs = stream::iter(cases).map(|case| {
            let (real, salt) = (&real, &salt);
            async move { (case, conformance::run(real, case, salt).await) }
        });
        let results: Vec<_> = runs.buffer_unordered(AT_ONCE).collect().await;
        let mut answers: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (case, result) in results {
            match result {
                Ok(found) => {
                    answers.insert(case.case.clone(), found);
                }
                Err(error) => differences.push(error.to_string()),
            }
        }
        if is_recording && wanted.is_none() {
            conformance::record(&file.name, &answers)?;
            continue;
        }
        let expected = conformance::expected(&file.name).unwrap_or_default();
        for case in &file.cases {
            if let Some(found) = answers.get(&case.case) {
                let expected = expected.get(&case.case).map_or(&[][..], Vec::as_slice);
                differences.extend(conformance::differences(case, expected, found));
            }
        }
    }
    for difference in &differences {
        println!("{difference}");
    }
    println!("{} differences", differences.len());
    if differences.is_empty() { Ok(()) } else { Err("the answers differ".into()) }
}
