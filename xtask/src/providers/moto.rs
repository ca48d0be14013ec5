//! CloudWatch as moto plays it. It takes any signature and computes no metric math: an expression has
//! no values, which is what no data looks like.

use std::path::Path;

use http::Request;
use serde_json::json;
use tokio::net::TcpStream;

use super::{Case, ProvidersError, REGION, prometheus::client_of, python::Python};
use crate::{
    Failure, ports,
    process::{Process, Recipe},
};

pub const PACKAGES: &[&str] = &["moto[server]==5.2.5"];

/// A running moto; dropping it ends it.
pub struct Running {
    _process: Process,
    port: u16,
}

/// Starts it, and puts three measurements of one metric into it.
pub async fn start(python: &Python, folder: &Path) -> Result<Running, Failure> {
    let [port] = ports::free()?;
    let recipe = Recipe::new("moto", &python.bin.join("moto_server"))
        .argument("-H")
        .argument("127.0.0.1")
        .argument("-p")
        .argument(port.to_string());
    let mut process = Process::start(&recipe, folder)?;
    listens(&mut process, port).await?;
    let data: String = [1, 2, 3]
        .into_iter()
        .map(|number| {
            let one = format!("&MetricData.member.{number}");
            format!("{one}.MetricName=errors{one}.Value={number}{one}.Unit=Count")
        })
        .collect();
    let form = format!("Action=PutMetricData&Version=2010-08-01&Namespace=app{data}");
    let scope = format!("Credential=test/20260101/{REGION}/monitoring/aws4_request");
    let request = Request::post("/")
        .header("content-type", "application/x-www-form-urlencoded")
        .header(
            "authorization",
            format!("AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"),
        )
        .body(form.into_bytes())?;
    client_of(port)?.request_text(request).await?;
    Ok(Running { _process: process, port })
}

/// Waits until the port is open.
pub async fn listens(process: &mut Process, port: u16) -> Result<(), Failure> {
    let began = std::time::Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        if process.ended()?.is_some() || began.elapsed() > super::ENDS_WITHIN {
            let message = process.last_words();
            return Err(ProvidersError::Server { what: "a Python server", message }.into());
        }
        tokio::time::sleep(super::ASK_EVERY).await;
    }
    Ok(())
}

impl Running {
    /// What the controller is started with to find it.
    pub fn environment(&self) -> Vec<(String, String)> {
        let variables = [
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
            ("AWS_REGION", REGION.to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
        ];
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

pub fn cases() -> Vec<Case> {
    let errors = json!({ "id": "errors", "metricStat": { "period": 60, "stat": "Sum",
        "metric": { "namespace": "app", "metricName": "errors" } } });
    let metric = |queries: serde_json::Value, condition: &str| {
        json!({ "successCondition": condition,
            "provider": { "cloudWatch": { "interval": "30m", "metricDataQueries": queries } } })
    };
    vec![
        Case {
            what: "cloud watch, a sum",
            metric: metric(
                json!([errors]),
                "sum(result[0].Values) == 6 && result[0].Id == 'errors'",
            ),
            phase: "Successful",
            shows: "[[",
        },
        Case {
            what: "cloud watch, too many",
            metric: metric(json!([errors]), "sum(result[0].Values) < 6"),
            phase: "Failed",
            shows: "[[",
        },
        Case {
            what: "cloud watch, no data",
            metric: metric(
                json!([{ "id": "rate", "expression": "errors / 2" }]),
                "result[0].Values[0] <= 0.01",
            ),
            phase: "Error",
            shows: "could not evaluate successCondition",
        },
    ]
}
