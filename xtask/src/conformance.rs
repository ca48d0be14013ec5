//! `cargo xtask conformance`: does the embedded cluster answer as a real API server does? The same
//! request files are sent to both.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, future, stream};
use gradus_simkube::{
    SimCluster,
    behave::Behaviours,
    conformance::{self, Case, Target},
    server::Server,
};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use jiff::Timestamp;
use kube::{Client, client::Body};
use serde_json::Value;
use thiserror::Error;

use crate::{
    Failure,
    interrupt::or_interrupted,
    kubelet::Kubelet,
    plane::{Plane, User},
    repository,
    servers::Servers,
    summary::Summary,
};

/// Cases at once; each has a namespace of its own.
const AT_ONCE: usize = 8;

#[derive(Debug, Error)]
#[error("unknown option {0}: expected --record")]
struct UnknownOption(String);

/// A server, asked through a client.
struct ClientTarget(Client);

/// Answers to each step of a case, by file and case.
type Answers = BTreeMap<String, BTreeMap<String, Vec<Value>>>;

/// Runs the task. `--record` keeps what the real server answered as what tests expect.
pub fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let record = match arguments {
        [] => false,
        [option] if option == "--record" => true,
        [.., last] => return Err(UnknownOption(last.clone()).into()),
    };
    let servers = Servers::ready(&repository())?;
    or_interrupted(async {
        let real = answers_of_real(&servers).await?;
        if record {
            for (file, cases) in &real {
                conformance::record(file, cases)?;
            }
        }
        compare(&real, &answers_of_embedded().await?)
    })
}

impl Target for ClientTarget {
    async fn send(&self, request: Request<Bytes>) -> Result<(StatusCode, Bytes), String> {
        let request = request.map(|bytes| Body::from(bytes.to_vec()));
        let answer = self.0.send(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    }
}

async fn answers_of_real(servers: &Servers) -> Result<Answers, Failure> {
    let plane = Plane::start(servers, &repository()).await?;
    let _kubelet = Kubelet::start(plane.client(User::Kubelet).await?).await?;
    answers(&ClientTarget(plane.client(User::Person).await?)).await
}

async fn answers_of_embedded() -> Result<Answers, Failure> {
    let cluster = SimCluster::new(Behaviours::default(), Timestamp::now());
    let server = Server::new(cluster, Arc::new(Timestamp::now));
    let client = Client::new(server.service(), "default");
    let asked = ClientTarget(client);
    tokio::select! {
        () = server.run_workers() => unreachable!("workers never end by themselves"),
        answers = answers(&asked) => answers,
    }
}

/// What a server answers to every case. One that cannot be played to its end is told and has no
/// answers.
async fn answers(target: &ClientTarget) -> Result<Answers, Failure> {
    conformance::prepare(target).await?;
    let mut answers = Answers::new();
    for file in conformance::load()? {
        let runs = file.cases.iter().map(|case| async move {
            match conformance::run(target, case, "x").await {
                Ok(answers) => Some((case.case.clone(), answers)),
                Err(error) => {
                    println!("{error}");
                    None
                }
            }
        });
        let cases = stream::iter(runs).buffer_unordered(AT_ONCE);
        answers.insert(file.name.clone(), cases.filter_map(future::ready).collect().await);
    }
    Ok(answers)
}

fn compare(real: &Answers, embedded: &Answers) -> Result<Summary, Failure> {
    let mut summary = Summary::default();
    for file in conformance::load()? {
        for case in &file.cases {
            let [real, embedded] = [real, embedded]
                .map(|answers| answers.get(&file.name).and_then(|cases| cases.get(&case.case)));
            summary += report(case, real, embedded);
        }
    }
    Ok(summary)
}

fn report(case: &Case, real: Option<&Vec<Value>>, embedded: Option<&Vec<Value>>) -> Summary {
    let (Some(real), Some(embedded)) = (real, embedded) else {
        return Summary::of(false);
    };
    let differences = conformance::differences(case, real, embedded);
    for difference in &differences {
        println!("{difference}");
    }
    Summary::of(differences.is_empty())
}
