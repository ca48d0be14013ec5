//! Every provider against servers that do everything wrong: whatever comes is an error that names the
//! provider, where it was asked and what was expected, and never a success.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use gradus_api::analysis::Measurement;
use gradus_engine::Engine as _;
use gradus_engine::analysis::run::{AnalysisRunView, AnalysisRuns, RunWorld};
use gradus_engine::ask::http::{Auth, BODY_LIMIT, HttpRequest};
use gradus_engine::ask::{Answer, Recall};
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::cluster::{PostedEvent, Write, Written};

/// What is in no message of any measurement.
const CANARY: &str = "canary-secret";
/// How long a server that does not answer is waited for here.
const SHORT: SignedDuration = SignedDuration::from_millis(300);
/// So many answers are under way at once, as many of them are megabytes long.
const AT_ONCE: usize = 8;

/// A cluster in which every Secret has the credentials for one server.
struct Credentials(String);

impl Cluster for Credentials {
    async fn write(&self, _: Write) -> Result<Written, WriteError> {
        unreachable!("nobody writes here")
    }

    async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        unreachable!("Secrets are read whole")
    }

    async fn read_whole(&self, _: &ObjectRef) -> Result<Option<Value>, WriteError> {
        let host = self.0.split("://").nth(1).unwrap_or_default();
        let texts = [
            ("address", self.0.as_str()),
            ("base-url-nerdgraph", self.0.as_str()),
            ("account-id", "7"),
            ("org", "shop"),
            (host, CANARY),
        ];
        let secrets = ["api-key", "app-key", "authToken", "personal-api-key", "token"];
        let all = texts.into_iter().chain(secrets.map(|key| (key, CANARY)));
        let data: BTreeMap<&str, String> =
            all.map(|(key, text)| (key, STANDARD.encode(text))).collect();
        Ok(Some(json!({ "data": data })))
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, _: &Listing) -> Result<Vec<Frame>, WriteError> {
        unreachable!("nobody lists here")
    }

    async fn post(&self, _: &PostedEvent) -> Result<(), WriteError> {
        unreachable!("nobody posts here")
    }
}

/// What a server does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ill {
    /// It takes the request and says nothing.
    Silent,
    /// It begins to answer, and stops.
    Stalls,
    /// It sends a byte now and then.
    Drips,
    Fails(u16),
    /// It closes the connection.
    HangsUp,
    /// 10 MB.
    TooLong,
    NoJson,
    /// It sends everybody back to itself.
    Loops,
    /// It speaks no TLS where TLS is asked for.
    BreaksTls,
    /// Nobody trusts its certificate.
    Untrusted,
    /// A well-formed answer without a value, or with NaN or null as its value.
    Answers,
}

/// Serves every connection like this; the address.
async fn server(ill: Ill, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap();
    let scheme = if matches!(ill, Ill::BreaksTls | Ill::Untrusted) { "https" } else { "http" };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                if ill == Ill::Untrusted {
                    // The client refuses the certificate: there is no stream then.
                    if let Ok(stream) = acceptor().accept(stream).await {
                        serve(stream, ill, body).await;
                    }
                } else {
                    serve(stream, ill, body).await;
                }
            });
        }
    });
    format!("{scheme}://{host}")
}

fn acceptor() -> TlsAcceptor {
    let pem = include_bytes!("untrusted.pem");
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let key = PrivateKeyDer::from_pem_slice(pem).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(chain.unwrap(), key).unwrap()))
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, ill: Ill, body: &str) {
    let mut request = vec![0; 16 << 10];
    // Whatever is asked, and whoever hangs up in the middle.
    let count = stream.read(&mut request).await.unwrap_or(0);
    if count == 0 {
        return;
    }
    // With all that must not be seen.
    let heard = String::from_utf8_lossy(&request[..count]);
    let answer = |status: &str, more: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{more}connection: close\r\n\r\n{body}"
        )
    };
    let begun = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{".to_owned();
    let text = match ill {
        Ill::Silent => String::new(),
        Ill::HangsUp => return,
        Ill::Stalls | Ill::Drips => begun,
        Ill::Fails(status) => answer(&format!("{status} Bad"), "", &format!("it broke: {heard}")),
        Ill::TooLong => answer("200 OK", "", &"1".repeat(10 << 20)),
        Ill::NoJson => answer("200 OK", "", &format!("<html>{heard}</html>")),
        Ill::Loops => answer("302 Found", "location: /again\r\n", ""),
        Ill::BreaksTls => "HTTP/1.1 400 Bad Request\r\n\r\n".to_owned(),
        Ill::Untrusted | Ill::Answers => answer("200 OK", "", body),
    };
    let mut sent = stream.write_all(text.as_bytes()).await;
    while ill == Ill::Drips && sent.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        sent = stream.write_all(b" ").await;
    }
    if matches!(ill, Ill::Silent | Ill::Stalls) {
        std::future::pending::<()>().await;
    }
}

/// A provider: its type, its spec for a server, a condition, and answers that are none.
struct Case {
    kind: &'static str,
    spec: fn(&str) -> Value,
    condition: &'static str,
    /// Well-formed, but without a value, or with one that is no number.
    empty: &'static [&'static str],
    /// Its address is made by the controller, or always one of HTTPS: requests are turned to the
    /// server of the test.
    is_turned: bool,
}

const CASES: &[Case] = &[
    Case {
        kind: "Prometheus",
        spec: |to| json!({ "prometheus": { "address": to, "query": "up" } }),
        condition: "result[0] >= 0.95",
        empty: &[r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#],
        is_turned: false,
    },
    Case {
        kind: "Web",
        spec: |to| json!({ "web": { "url": format!("{to}/health?a=1"), "jsonPath": "{$.ok}" } }),
        condition: "result == true",
        empty: &["{}", r#"{"ok": NaN}"#, r#"{"ok": null} and more"#, ""],
        is_turned: false,
    },
    Case {
        kind: "Datadog",
        spec: |_| json!({ "datadog": { "query": "q" } }),
        condition: "result <= 0.01",
        empty: &[r#"{"series":[]}"#, r#"{"series":[{"pointlist":[]}]}"#],
        is_turned: false,
    },
    Case {
        kind: "Datadog",
        spec: |_| json!({ "datadog": { "apiVersion": "v2", "query": "q" } }),
        condition: "result <= 0.01",
        empty: &[r#"{"data":{"attributes":{"columns":[]}}}"#],
        is_turned: false,
    },
    Case {
        kind: "NewRelic",
        spec: |_| json!({ "newRelic": { "query": "q" } }),
        condition: "result.rate > 0.9",
        empty: &[r#"{"data":{"actor":{"account":{"nrql":{"results":[]}}}}}"#],
        is_turned: false,
    },
    Case {
        kind: "Wavefront",
        spec: |to| {
            let address = to.split("://").nth(1);
            json!({ "wavefront": { "address": address, "query": "q" } })
        },
        condition: "result > 0.9",
        empty: &[r#"{"timeseries":[]}"#, r#"{"timeseries":[{"data":[]}]}"#],
        is_turned: true,
    },
    Case {
        kind: "Graphite",
        spec: |to| json!({ "graphite": { "address": to, "query": "target=a" } }),
        condition: "result[0] < 0.05",
        empty: &["[]", r#"[{"datapoints":[]}]"#, r#"[{"datapoints":[[null,1]]}]"#],
        is_turned: false,
    },
    Case {
        kind: "Influxdb",
        spec: |_| json!({ "influxdb": { "query": "q" } }),
        condition: "result[0] >= 0.95",
        empty: &["\r\n", ""],
        is_turned: false,
    },
    Case {
        kind: "skywalking",
        spec: |to| json!({ "skywalking": { "address": to, "interval": "5m", "query": "q" } }),
        condition: "result.apdex > 9500",
        empty: &[r#"{"data":null}"#, "{}", r#"{"errors":[{"message":"no"}]}"#],
        is_turned: false,
    },
    Case {
        kind: "CloudWatch",
        spec: |_| json!({ "cloudWatch": { "metricDataQueries": [{ "id": "a", "expression": "b" }] } }),
        condition: "all(result[0].Values, # < 0.01)",
        empty: &[r#"{"MetricDataResults":[]}"#],
        is_turned: true,
    },
    Case {
        kind: "Kayenta",
        spec: |to| {
            json!({ "kayenta": { "address": to, "application": "a", "canaryConfigName": "c",
                "lookback": true, "threshold": { "pass": 90, "marginal": 75 } } })
        },
        condition: "",
        empty: &["[]", "{}"],
        is_turned: false,
    },
];

const ILLS: [(Ill, &str); 12] = [
    (Ill::Silent, "context deadline exceeded"),
    (Ill::Stalls, "context deadline exceeded"),
    (Ill::Drips, "context deadline exceeded"),
    (Ill::Fails(500), ""),
    (Ill::Fails(503), ""),
    (Ill::Fails(401), ""),
    (Ill::HangsUp, ""),
    (Ill::TooLong, "the answer is larger than 1048576 bytes"),
    (Ill::NoJson, ""),
    (Ill::Loops, ""),
    (Ill::BreaksTls, "TLS failed: "),
    (Ill::Untrusted, "TLS failed: invalid peer certificate"),
];

/// The only measurement of a run with this metric, which ends with its first error.
async fn measured(case: &Case, ill: Ill, to: &str) -> Measurement {
    let provider = (case.spec)(to);
    let metric = json!({ "name": "m", "interval": "1m", "count": 1, "consecutiveErrorLimit": 0,
        "successCondition": case.condition, "provider": provider });
    let metadata = json!({ "name": "web", "namespace": "shop", "resourceVersion": "1",
        "uid": "00000000-0000-4000-8000-000000000001" });
    let frame = json!({ "metadata": metadata, "spec": { "metrics": [metric] },
        "status": { "phase": "Running", "startedAt": "2026-01-01T00:00:00Z" } });
    let run = Arc::new(AnalysisRunView::read(&serde_json::from_value(frame).unwrap()));
    let (jobs, answers, recall) = (BTreeMap::new(), BTreeMap::new(), Recall::default());
    let mut world = RunWorld { run, jobs, answers, recall, job_namespace: None };
    let policy = AddressPolicy { allow: vec!["127.0.0.1".parse().unwrap()], ..Default::default() };
    let http = HttpClient::new(policy).unwrap();
    let executor = Executor::new(Credentials(to.to_owned()), Some(http), Some("gradus".to_owned()));
    for _ in 0..10 {
        let now = Timestamp::now();
        let decision = AnalysisRuns::decide(&world, now);
        if let Some(status) = decision.status {
            let measurements = &status.metric_results[0].measurements;
            return measurements[0].clone();
        }
        for ask in decision.asks {
            if world.answers.contains_key(&ask.id) {
                continue;
            }
            let Question::Http(request) = ask.question else { panic!("{:?}", ask.question) };
            let request = Question::Http(Box::new(turned(*request, case, ill, to)));
            let reply = executor.answer(&Inquiry::of(request, ask.effect)).await.unwrap();
            let reply = Ok(reply.unwrap());
            world.answers.insert(ask.id, Answer { asked_at: now, answered_at: now, reply });
        }
    }
    panic!("{} {ill:?}: no measurement", case.kind)
}

/// The request as the test sends it: it waits no longer than the test does.
fn turned(request: HttpRequest, case: &Case, ill: Ill, to: &str) -> HttpRequest {
    let mut request = request;
    if matches!(ill, Ill::Silent | Ill::Stalls | Ill::Drips) {
        request.timeout = SHORT;
    }
    if case.is_turned {
        request.url = to.into();
        // The credentials of AWS are those of the environment.
        if matches!(request.auth, Auth::SigV4 { .. }) {
            request.auth = Auth::None;
        }
    }
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_answer_is_an_error_that_names_provider_address_and_expectation() {
    let mut rows = Vec::new();
    for case in CASES {
        let ills = ILLS.iter().map(|(ill, said)| (*ill, *said, "{}"));
        let empty = case.empty.iter().map(|body| (Ill::Answers, "", *body));
        rows.extend(ills.chain(empty).map(|row| (case, row)));
    }
    let measuring = rows.into_iter().map(|(case, (ill, said, body))| async move {
        let to = server(ill, body).await;
        let measurement = measured(case, ill, &to).await;
        let (kind, what) = (case.kind, format!("{} {ill:?} {body:?}", case.kind));
        let Measurement { phase, message, value, .. } = measurement;
        assert_eq!(phase, "Error", "{what}: {value} {message}");
        let shown = format!("({kind} at ");
        assert!(message.contains(&shown) && message.contains("; expected "), "{what}: {message}");
        assert!(message.contains(said), "{what}: {message}");
        assert!(!message.contains(CANARY) && !value.contains(CANARY), "{what}: {message} {value}");
        assert!(message.len() < 1100, "{what}: {}", message.len());
    });
    futures::stream::iter(measuring).buffer_unordered(AT_ONCE).collect::<()>().await;
}

#[tokio::test]
async fn nan_is_no_success() {
    let nan = r#"{"status":"success","data":{"resultType":"vector","result":[
        {"metric":{},"value":[1,"NaN"]}]}}"#;
    let to = server(Ill::Answers, nan).await;
    let measurement = measured(&CASES[0], Ill::Answers, &to).await;
    assert_eq!((measurement.phase.as_str(), measurement.value.as_str()), ("Failed", "[NaN]"));
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_authority_or_where_the_metric_asks_no_question() {
    let up = r#"{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}"#;
    let to = server(Ill::Untrusted, up).await;
    let case = Case {
        spec: |to| json!({ "prometheus": { "address": to, "query": "1", "insecure": true } }),
        condition: "result == 1",
        ..CASES[0]
    };
    assert_eq!(measured(&case, Ill::Untrusted, &to).await.phase, "Successful");
}

#[tokio::test]
async fn of_a_body_that_never_ends_no_more_is_read_than_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("http://{}", listener.local_addr().unwrap());
    let sending = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let chunk = format!("10000\r\n{}\r\n", "1".repeat(1 << 16));
        let mut sent = 0_usize;
        while stream.write_all(chunk.as_bytes()).await.is_ok() {
            sent += 1 << 16;
        }
        sent
    });
    let message = measured(&CASES[0], Ill::TooLong, &to).await.message;
    assert!(message.contains("the answer is larger than"), "{message}");
    // What lies in the buffers of two sockets is sent, too.
    assert!(sending.await.unwrap() < BODY_LIMIT + (16 << 20));
}
