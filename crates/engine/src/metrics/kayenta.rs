//! Kayenta: starts a canary judgement, looks at it until it is complete, and reads its score.

use gradus_api::analysis::{Measurement, Metric};
use gradus_api::metrics::{KayentaMetric, KayentaScope, KayentaScopeDetail};
use gradus_api::values::parse_go_duration;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{Call, MetricFault, Next, Observed, Provider, Reading, TextMap, seconds, shown};
use crate::ask::Effect;
use crate::ask::http::{HttpOutcome, HttpRequest};
use crate::ask::secret::{Encoding, SecretText};
use crate::world::RunPhase;

/// A judgement by Kayenta.
pub struct Kayenta<'a> {
    /// What is compared.
    pub spec: &'a KayentaMetric,
    /// The whole metric.
    pub metric: &'a Metric,
}

/// How long an answer may take, in seconds.
const TIMEOUT: i64 = 15;
/// How long to wait before looking again.
const PAUSE: SignedDuration = SignedDuration::from_secs(15);
/// Where the id of the judgement is kept.
const EXECUTION: &str = "canaryExecutionId";
const EXPECTED: &str = "an answer of Kayenta with status 200";

impl Provider for Kayenta<'_> {
    fn kind(&self) -> &'static str {
        "Kayenta"
    }

    fn address(&self) -> String {
        shown(&SecretText::from_marked(&self.spec.address))
    }

    fn query(&self) -> String {
        SecretText::from_marked(&self.spec.canary_config_name).to_string()
    }

    fn next(&self, call: Call<'_>, seen: &Observed<'_>) -> Next {
        match call {
            Call::Run => self.start(seen),
            Call::Resume(measurement) => self.look(measurement, seen),
            // A judgement cannot be ended. Nobody waits for it any more, and the run must end.
            Call::Terminate(measurement) => Next::Done(Reading::Judged {
                phase: RunPhase::Inconclusive,
                text: String::new(),
                message: String::new(),
                metadata: measurement.metadata.clone(),
            }),
        }
    }
}

impl Kayenta<'_> {
    fn start(&self, seen: &Observed<'_>) -> Next {
        let spec = self.spec;
        let configurations = self.url(&format!(
            "/canaryConfig?application={}&configurationAccountName={}",
            spec.application, spec.storage_account_name
        ));
        let get = HttpRequest::get(configurations, seconds(TIMEOUT));
        let Some(first) = seen.replies.first() else { return Next::read(get) };
        let id = match answer(&get, first) {
            Ok(found) => {
                let named = found.as_array().into_iter().flatten();
                let mut ids = named.filter(|one| one["name"] == spec.canary_config_name.as_str());
                match ids.next().and_then(|one| one["id"].as_str()) {
                    Some(id) => id.to_owned(),
                    None => return Next::bad("Canary config not found", EXPECTED),
                }
            }
            Err(Bad::Status(status)) => {
                return Next::bad(format!("Invalid Response: HTTP {status}"), EXPECTED);
            }
            Err(Bad::MetricFault(fault)) => return Next::Done(Reading::Error(*fault)),
        };
        let body = match self.scopes(seen) {
            Ok(scopes) => json!({ "scopes": scopes, "thresholds":
                { "pass": spec.threshold.pass, "marginal": spec.threshold.marginal } }),
            Err(message) => return Next::refused(message),
        };
        let url = self.url(&format!(
            "/canary/{id}?application={}&metricsAccountName={}&configurationAccountName={}\
             &storageAccountName={}",
            spec.application,
            spec.metrics_account_name,
            spec.configuration_account_name,
            spec.storage_account_name
        ));
        let body = SecretText::from_marked(&body.to_string()).with_secrets(Encoding::Json);
        let post = HttpRequest::post(url, body, seconds(TIMEOUT))
            .header("Content-Type", "application/json");
        let Some(second) = seen.replies.get(1) else {
            return Next::Send(Box::new(post), Effect::Acts);
        };
        match answer(&post, second) {
            Ok(started) => {
                let id = &started[EXECUTION];
                let id = id.as_str().map_or_else(|| "<nil>".to_owned(), str::to_owned);
                let metadata: TextMap = [(EXECUTION.to_owned(), id)].into();
                Next::Done(Reading::InFlight { resume_at: seen.now + PAUSE, metadata })
            }
            Err(Bad::Status(_)) => Next::bad("Invalid Response", EXPECTED),
            Err(Bad::MetricFault(fault)) => Next::Done(Reading::Error(*fault)),
        }
    }

    fn look(&self, measurement: &Measurement, seen: &Observed<'_>) -> Next {
        let id = measurement.metadata.get(EXECUTION).map_or("", String::as_str);
        let get = HttpRequest::get(self.url(&format!("/canary/{id}")), seconds(TIMEOUT));
        let Some(reply) = seen.replies.first() else { return Next::read(get) };
        let found = match answer(&get, reply) {
            Ok(found) => found,
            Err(Bad::Status(_)) => return Next::bad("Invalid Response", EXPECTED),
            Err(Bad::MetricFault(fault)) => return Next::Done(Reading::Error(*fault)),
        };
        match found["complete"].as_bool() {
            None => return Next::bad("Missing Complete Status", EXPECTED),
            Some(false) => {
                let metadata = measurement.metadata.clone();
                return Next::Done(Reading::InFlight { resume_at: seen.now + PAUSE, metadata });
            }
            Some(true) => {}
        }
        let score = found["result"]["judgeResult"]["score"]["score"].as_f64();
        let Some(score) = score.map(|score| score as i64) else {
            return Next::bad("Missing Score", EXPECTED);
        };
        let threshold = &self.spec.threshold;
        let phase = match score {
            score if score >= threshold.pass => RunPhase::Successful,
            score if score >= threshold.marginal => RunPhase::Inconclusive,
            _ => RunPhase::Failed,
        };
        let metadata = measurement.metadata.clone();
        let text = score.to_string();
        Next::Done(Reading::Judged { phase, text, message: String::new(), metadata })
    }

    fn url(&self, path: &str) -> SecretText {
        SecretText::from_marked(&format!("{}{path}", self.spec.address))
    }

    fn scopes(&self, seen: &Observed<'_>) -> Result<Map<String, Value>, String> {
        let mut scopes = Map::new();
        for scope in &self.spec.scopes {
            let (start, end) = self.times(scope, seen)?;
            let side = |detail: &KayentaScopeDetail| {
                let own = |own: &str, other: &str| {
                    if own.is_empty() { other.to_owned() } else { own.to_owned() }
                };
                json!({ "scope": detail.scope, "location": detail.region, "step": detail.step,
                    "start": own(&detail.start, &start), "end": own(&detail.end, &end) })
            };
            let both = json!({ "controlScope": side(&scope.control_scope),
                "experimentScope": side(&scope.experiment_scope) });
            scopes.insert(scope.name.clone(), both);
        }
        Ok(scopes)
    }

    /// The times of a scope that names none.
    fn times(&self, scope: &KayentaScope, seen: &Observed<'_>) -> Result<(String, String), String> {
        let (control, experiment) = (&scope.control_scope, &scope.experiment_scope);
        for (field, one, other) in
            [("start", &control.start, &experiment.start), ("end", &control.end, &experiment.end)]
        {
            if one.is_empty() != other.is_empty() {
                return Err(format!(
                    "controlScope.{field} and experimentScope.{field} must both be set or be empty"
                ));
            }
        }
        let start = match (control.start.is_empty(), self.spec.lookback) {
            (false, _) => control.start.clone(),
            (true, true) => second(seen.run.started_at.unwrap_or(seen.now)),
            (true, false) => {
                let text = &self.metric.interval;
                let interval = parse_go_duration(text)
                    .map_err(|error| format!("Invalid duration {text:?}: {error}"))?;
                second(seen.now - interval)
            }
        };
        Ok((start, second(seen.now)))
    }
}

/// A moment in whole seconds.
fn second(moment: Timestamp) -> String {
    gradus_api::values::Time::new(moment).to_string()
}

enum Bad {
    Status(u16),
    MetricFault(Box<MetricFault>),
}

fn answer(request: &HttpRequest, outcome: &HttpOutcome) -> Result<Value, Bad> {
    let fault = |fault| Bad::MetricFault(Box::new(fault));
    match outcome {
        Err(error) => Err(fault(MetricFault::unanswered(request, error, EXPECTED))),
        Ok(reply) if reply.status != 200 => Err(Bad::Status(reply.status)),
        Ok(reply) => serde_json::from_str(&reply.body)
            .map_err(|error| fault(MetricFault::new(error.to_string(), EXPECTED))),
    }
}
