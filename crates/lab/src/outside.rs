//! Who answers the HTTP requests of the controller? What a scenario declares, and else the metric
//! server of the embedded cluster, whatever the address.

use std::sync::Arc;

use gradus_api::names::{self, label};
use gradus_controller::ask::Sent;
use gradus_controller::shell::Inquiry;
use gradus_engine::analysis::run::metric_of;
use gradus_engine::ask::http::{HttpError, HttpOutcome, HttpReply};
use gradus_simkube::SimCluster;
use gradus_simkube::behave::matches;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use gradus_simkube::traffic::{EndpointReply, Traffic};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::deeds::NAMESPACE;
use crate::outlook::Outlook;
use crate::scenario::Scenario;

/// What a server answers instead of the metric server of the cluster.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ServerAnswer {
    /// Which addresses; `*` stands for any text.
    pub url: String,
    /// Only so many requests; all if left out.
    pub times: Option<usize>,
    /// Status of HTTP.
    pub status: u16,
    /// What is sent: a text as it is, anything else as JSON.
    pub body: Value,
    /// The value of a Prometheus query, instead of a body.
    pub value: Option<f64>,
    /// The server cannot be reached, for this reason.
    pub fails: Option<String>,
    /// The server takes the request and never answers.
    pub silent: bool,
}

impl Default for ServerAnswer {
    fn default() -> Self {
        ServerAnswer {
            url: "*".to_owned(),
            times: None,
            status: 200,
            body: Value::Null,
            value: None,
            fails: None,
            silent: false,
        }
    }
}

/// Everybody outside the cluster.
#[derive(Clone, Debug)]
pub(crate) struct MetricServers {
    /// Answers, and how often each was given.
    answers: Vec<(ServerAnswer, usize)>,
    outlook: Outlook,
    /// When the update begins: times of the outlook count from then on.
    update: Timestamp,
    traffic: Traffic,
    /// Requests so far.
    pub(crate) asked: usize,
}

/// What comes of a request.
pub(crate) enum Heard {
    /// This.
    Answer(HttpOutcome),
    /// Nothing, until the controller gives up.
    Silence,
    /// Nothing at all: somebody else gives the verdict.
    Never,
}

impl MetricServers {
    /// Those of a scenario; none where nobody is asked.
    pub(crate) fn of(scenario: &Scenario, start: Timestamp) -> Option<Self> {
        let beside = &scenario.beside;
        if scenario.metrics.is_none() && beside.outlook.is_none() {
            return None;
        }
        let answers = scenario.metrics.iter().flatten().map(|one| (one.clone(), 0));
        Some(MetricServers {
            answers: answers.collect(),
            outlook: beside.outlook.clone().unwrap_or_default(),
            update: start + beside.update,
            traffic: Traffic::default(),
            asked: 0,
        })
    }

    /// Looks at the cluster as it is from now on.
    pub(crate) fn observe(&mut self, cluster: &SimCluster, now: Timestamp) {
        self.traffic.observe(cluster, now);
    }

    /// What comes of a request of an AnalysisRun.
    pub(crate) fn hear(
        &mut self,
        cluster: &SimCluster,
        inquiry: &Inquiry,
        sent: &Sent,
        now: Timestamp,
    ) -> Heard {
        self.observe(cluster, now);
        let kind = cluster.kinds().by_name(names::API_VERSION, names::kind::ANALYSIS_RUN);
        let run = kind.and_then(|kind| cluster.get(kind, NAMESPACE, &inquiry.key.name));
        let images = run.map(|run| images(cluster, run)).unwrap_or_default();
        if self.outlook.given_end(&images, now).is_some() {
            return Heard::Never;
        }
        self.asked += 1;
        let metric = metric_of(inquiry.id()).unwrap_or_default();
        let since = now.duration_since(self.update);
        if let Some(value) = self.outlook.value(&images, metric, since) {
            return Heard::Answer(Ok(valued(&sent.url, value, now)));
        }
        let fits = |(answer, given): &&mut (ServerAnswer, usize)| {
            matches(&answer.url, &sent.url) && answer.times.is_none_or(|times| *given < times)
        };
        match self.answers.iter_mut().find(fits) {
            Some((answer, given)) => {
                *given += 1;
                answer.heard(&sent.url, now)
            }
            None => {
                let address = sent.url.split_once("://").map_or(&*sent.url, |(_, rest)| rest);
                let target = address.find('/').map_or("/", |at| &address[at..]);
                let EndpointReply { status, body } = self.traffic.answer(target, &sent.body, now);
                Heard::Answer(Ok(HttpReply::new(status, &body)))
            }
        }
    }
}

impl ServerAnswer {
    fn heard(&self, url: &str, now: Timestamp) -> Heard {
        if self.silent {
            return Heard::Silence;
        }
        if let Some(reason) = &self.fails {
            return Heard::Answer(Err(HttpError::Connect(reason.clone())));
        }
        if let Some(value) = self.value {
            return Heard::Answer(Ok(valued(url, value, now)));
        }
        let body = self.body.as_str().map_or_else(|| self.body.to_string(), str::to_owned);
        Heard::Answer(Ok(HttpReply::new(self.status, &body)))
    }
}

/// The answer with this value: of Prometheus where it is asked, else the number alone.
fn valued(url: &str, value: f64, now: Timestamp) -> HttpReply {
    let body = if url.contains("/api/v1/query") {
        let sample = json!([now.as_second(), value.to_string()]);
        let result = json!([{ "metric": {}, "value": sample }]);
        json!({ "status": "success", "data": { "resultType": "vector", "result": result } })
    } else {
        json!(value)
    };
    HttpReply::new(200, &body.to_string())
}

/// Images of the revision that a run judges, or of all pods of its Experiment.
pub(crate) fn images<'c>(cluster: &'c SimCluster, run: &Object) -> Vec<&'c str> {
    let hash = run.meta.labels.get(label::POD_TEMPLATE_HASH);
    let owner = run.controller().map(|owner| owner.uid.clone());
    let judged = |set: &&Arc<Object>| match hash {
        Some(_) => set.meta.labels.get(label::POD_TEMPLATE_HASH) == hash,
        None => owner.is_some() && set.controller().map(|owner| owner.uid.clone()) == owner,
    };
    let sets = cluster.list(KindId::REPLICA_SET, NAMESPACE).filter(judged);
    let lists = sets.filter_map(|set| set.template()["spec"]["containers"].as_array());
    lists.flatten().filter_map(|one| one["image"].as_str()).collect()
}
