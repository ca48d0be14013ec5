//! The metric servers that a scenario declares, played on a port of loopback.

use std::{
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
};

use gradus_lab::{Scenario, outside::ServerAnswer};
use gradus_simkube::behave::matches;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Servers that answer until this is dropped.
pub struct Outside {
    port: u16,
    serving: JoinHandle<()>,
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Why the servers of a scenario cannot be played here; `None` where they can.
pub fn unplayable(scenario: &Scenario) -> Option<&'static str> {
    let answers = scenario.metrics.as_ref()?;
    if answers.is_empty() {
        return Some("what its metric server answers follows from the embedded cluster");
    }
    let is_played = |answer: &ServerAnswer| answer.fails.is_none() && answer.value.is_none();
    (!answers.iter().all(is_played)).then_some("its metric server cannot be reached, in words")
}

impl Outside {
    /// The servers of a scenario, where it declares any.
    pub async fn of(scenario: &Scenario) -> io::Result<Option<Self>> {
        let Some(answers) = &scenario.metrics else { return Ok(None) };
        let answers: Vec<_> = answers.iter().map(|answer| (answer.clone(), 0)).collect();
        let answers = Arc::new(Mutex::new(answers));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answers = Arc::clone(&answers);
                // Who hangs up asks again, or is a controller that was killed.
                tokio::spawn(async move { serve(stream, &answers).await.ok() });
            }
        });
        Ok(Some(Self { port, serving }))
    }

    /// An object whose metrics are asked here: the server of the scenario is the first part of the path.
    pub fn turned(&self, object: &Value) -> Value {
        let is_measured = object["kind"].as_str().is_some_and(|kind| kind.contains("Analysis"));
        if is_measured { replaced(object, "http://", &self.prefix()) } else { object.clone() }
    }

    /// What names the servers as the scenario does.
    pub fn as_declared(&self, value: &Value) -> Value {
        replaced(value, &self.prefix(), "http://")
    }

    fn prefix(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

/// A value with another text in all its texts.
fn replaced(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(from, to)),
        Value::Array(items) => items.iter().map(|item| replaced(item, from, to)).collect(),
        Value::Object(fields) => {
            let each = |(key, value): (&String, &Value)| (key.clone(), replaced(value, from, to));
            Value::Object(fields.iter().map(each).collect())
        }
        other => other.clone(),
    }
}

async fn serve(
    mut stream: TcpStream,
    answers: &Mutex<Vec<(ServerAnswer, usize)>>,
) -> io::Result<()> {
    let mut request = vec![0; 64 << 10];
    let count = stream.read(&mut request).await?;
    let request = String::from_utf8_lossy(&request[..count]).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let url = format!("http://{}", path.trim_start_matches('/'));
    let found = {
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(answer, given): &&mut (ServerAnswer, usize)| {
            matches(&answer.url, &url) && answer.times.is_none_or(|times| *given < times)
        };
        answers.iter_mut().find(fits).map(|(answer, given)| {
            *given += 1;
            answer.clone()
        })
    };
    let (status, body) = match found {
        Some(answer) if answer.silent => return std::future::pending().await,
        Some(ServerAnswer { status, body: Value::String(text), .. }) => (status, text),
        Some(ServerAnswer { status, body, .. }) => (status, body.to_string()),
        None => (404, format!("nothing is declared for {url}")),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} As declared\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes()).await
}

#[test]
fn metrics_are_asked_here_and_shown_as_they_are_declared() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let serving = runtime.spawn(std::future::pending());
    let outside = Outside { port: 7, serving };
    let template = serde_json::json!({ "kind": "AnalysisTemplate",
        "spec": { "metrics": [{ "url": "http://metrics.example/a" }] } });
    let turned = outside.turned(&template);
    assert_eq!(turned["spec"]["metrics"][0]["url"], "http://127.0.0.1:7/metrics.example/a");
    assert_eq!(outside.as_declared(&turned), template);
    let service = serde_json::json!({ "kind": "Service", "note": "http://b" });
    assert_eq!(outside.turned(&service), service, "nothing else is touched");
}
