//! Answers the questions of decisions: reads of the API server, HTTP requests, plugins, chance. A
//! question that hangs or panics costs its own answer and nothing else.

mod address;
mod aws;
mod balancers;
mod http;
mod probe;
mod secrets;
mod trust;
mod xml;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use gradus_api::names::label::POD_TEMPLATE_HASH;
use gradus_engine::ask::http::{HttpError, HttpOutcome, HttpRequest};
use gradus_engine::ask::{
    Class, Effect, MetricCall, MetricOperation, MetricReply, PluginReply, Question, Reply,
    RouterReply,
};
use gradus_engine::decision::ObjectRef;
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::world::PodView;
use serde_json::Value;

use crate::cluster::{Cluster, Listing, WriteError};
use crate::plugins::Plugins;
use crate::shell::Inquiry;
use crate::{plugins, random, version};
pub use address::{AddressPolicy, Network};
pub use balancers::BalancerNames;
use balancers::Balancers;
pub use http::{HttpClient, HttpClientError};
pub use secrets::{Sent, sent};

/// Who answers a question: each has its own limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answerer {
    /// The API server.
    Api,
    /// A metric provider or another server that speaks HTTP.
    Http,
    /// A process of ours: a plugin.
    Process,
    /// The API of a cloud.
    Cloud,
    /// The system we run on: random bytes.
    System,
}

impl Answerer {
    /// Who answers this question.
    pub fn of(question: &Question) -> Self {
        match question {
            Question::Read(_) | Question::Pods(_) | Question::List(_) => Answerer::Api,
            Question::Http(_) | Question::Probe(_) => Answerer::Http,
            Question::Plugin(_) | Question::MetricPlugin(_) | Question::RouterPlugin(_) => {
                Answerer::Process
            }
            Question::Weights(_) | Question::Targets(_) => Answerer::Cloud,
            Question::Random(_) => Answerer::System,
        }
    }

    /// So many questions of one engine may be under way. A controller that has just started may have
    /// thousands, and each holds a connection or a process.
    pub fn limit(self) -> usize {
        match self {
            Answerer::Api => 16,
            Answerer::Http => 32,
            // Calls of one plugin share its process, and each plugin has a limit of its own.
            Answerer::Process => 256,
            Answerer::Cloud => 8,
            Answerer::System => usize::MAX,
        }
    }

    /// Of these, so many for one namespace: nobody's slow servers keep others from measuring.
    pub fn limit_per_namespace(self) -> usize {
        match self {
            Answerer::Http | Answerer::Process | Answerer::Cloud => self.limit() / 2,
            Answerer::Api | Answerer::System => self.limit(),
        }
    }

    /// And of one plugin so many: one that hangs leaves room for all others.
    pub const LIMIT_PER_PLUGIN: usize = 16;

    /// No answer takes longer. What a request itself allows is shorter; this is for what hangs.
    fn patience(self) -> Duration {
        match self {
            Answerer::Api | Answerer::Cloud => Duration::from_secs(60),
            // A plugin may have to be loaded and started first; a call may be allowed 5 minutes.
            Answerer::Process => Duration::from_secs(600),
            Answerer::Http => Duration::from_secs(330),
            Answerer::System => Duration::from_secs(10),
        }
    }
}

/// The same for a list that is read once: it has thousands of pages at most, and goes after all else.
const SURVEY_PATIENCE: Duration = Duration::from_secs(600);

/// What comes of a request that is answered in this process.
pub enum LocalAnswer {
    /// This.
    Answer(HttpOutcome),
    /// Nothing, until its time is over.
    Silence,
}

/// Answers requests in this process, as simulations do.
pub type Within = Arc<dyn Fn(&Inquiry, &Sent) -> LocalAnswer + Send + Sync>;

/// Answers questions. What changes something outside goes through the door of the writes first.
pub struct Executor<C> {
    cluster: C,
    http: Option<HttpClient>,
    within: Option<Within>,
    /// The namespace of the controller itself, where it has one.
    home: Option<String>,
    plugins: PluginHost,
    /// How things of load balancers are called; without that nobody is asked.
    balancers: Option<BalancerNames>,
}

/// Plugins that a run plays: the reply to a question that is for one.
pub type PlayPlugin = Arc<dyn Fn(&Question) -> Option<Reply> + Send + Sync>;

/// Who runs plugins.
enum PluginHost {
    /// Nobody: none is configured.
    None,
    Real(Plugins),
    Played(PlayPlugin),
}

impl<C: Cluster> Executor<C> {
    /// An executor that reads through this cluster and requests through this client. Without one, as
    /// where people give the verdicts of a demo, requests are never answered.
    pub fn new(cluster: C, http: Option<HttpClient>, home: Option<String>) -> Self {
        let (within, plugins, balancers) = (None, PluginHost::None, None);
        Executor { cluster, http, within, home, plugins, balancers }
    }

    /// An executor whose requests go nowhere: this process answers them.
    pub fn within(cluster: C, within: Within) -> Self {
        Executor { within: Some(within), ..Executor::new(cluster, None, None) }
    }

    /// The same with a host of plugins. Without one no plugin is configured.
    pub fn with_plugins(self, plugins: Plugins) -> Self {
        Executor { plugins: PluginHost::Real(plugins), ..self }
    }

    /// The same that asks load balancers, whose target groups this tag tells apart.
    pub fn with_balancers(self, balancers: Option<BalancerNames>) -> Self {
        Executor { balancers, ..self }
    }

    /// The same with plugins that are played.
    pub fn with_played_plugins(self, play: PlayPlugin) -> Self {
        Executor { plugins: PluginHost::Played(play), ..self }
    }

    /// The door that writes go through.
    pub fn cluster(&self) -> &C {
        &self.cluster
    }

    /// The answer to a question; `None` if it acts and nothing may be written: then nobody was asked.
    pub async fn answer(&self, inquiry: &Inquiry) -> Option<Result<Reply, WriteError>> {
        if inquiry.effect == Effect::Acts
            && let Err(closed) = self.cluster.permit().await
        {
            let (key, id) = (&inquiry.key, &inquiry.id().0);
            tracing::info!(%key, %id, reason = closed.message, "a question was not asked");
            return None;
        }
        Some(self.answer_in_time(inquiry).await)
    }

    /// Reads an object before its key is decided; `None` where it is not there.
    pub async fn settle(&self, object: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        let read = self.cluster.read(object);
        contained(Answerer::Api.patience(), read).await.unwrap_or_else(|why| Err(away(why)))
    }

    /// Lists objects once. A long list takes its time as long as something of it comes.
    pub async fn survey(&self, listing: &Listing) -> Result<Vec<Frame>, WriteError> {
        let listed = self.cluster.list(listing);
        contained(SURVEY_PATIENCE, listed).await.unwrap_or_else(|why| Err(away(why)))
    }

    async fn answer_in_time(&self, inquiry: &Inquiry) -> Result<Reply, WriteError> {
        let class = Answerer::of(&inquiry.question);
        if class == Answerer::Http && self.http.is_none() && self.within.is_none() {
            return std::future::pending().await;
        }
        let reply = contained(class.patience(), self.ask(inquiry)).await;
        reply.unwrap_or_else(|why| unanswered(&inquiry.question, why))
    }

    async fn ask(&self, inquiry: &Inquiry) -> Result<Reply, WriteError> {
        match &inquiry.question {
            Question::Read(_) | Question::Pods(_) | Question::List(_) => {
                read(&self.cluster, &inquiry.question).await
            }
            Question::Http(request) => {
                if let Some(within) = &self.within {
                    return self.hear(within, inquiry, request).await.map(Reply::Http);
                }
                let Some(http) = &self.http else {
                    return unanswered(&inquiry.question, "no requests are sent".to_owned());
                };
                let secrets = self.secrets(&inquiry.key.namespace);
                Ok(Reply::Http(match secrets.read(request).await? {
                    Ok(values) => http.send(&values, request).await,
                    Err(error) => Err(error),
                }))
            }
            Question::Plugin(_) | Question::MetricPlugin(_) | Question::RouterPlugin(_) => {
                self.call_plugin(inquiry).await
            }
            Question::Probe(of) => {
                let Some(http) = &self.http else {
                    return unanswered(&inquiry.question, "no requests are sent".to_owned());
                };
                Ok(Reply::Probe(probe::measured(http, of).await))
            }
            Question::Weights(_) | Question::Targets(_) => {
                let (Some(http), Some(names)) = (&self.http, &self.balancers) else {
                    let message = "no load balancer is asked (--aws-verify-target-group)";
                    return unanswered(&inquiry.question, message.to_owned());
                };
                let secrets = self.secrets(&inquiry.key.namespace);
                let balancers = Balancers { http, secrets, names };
                let said = match &inquiry.question {
                    Question::Targets(of) => balancers.targets(of).await?,
                    Question::Weights(of) => balancers.weights(of).await?,
                    other => return unanswered(other, "no load balancer knows".to_owned()),
                };
                Ok(Reply::Weights(said))
            }
            Question::Random(count) => {
                random::bytes(*count).map(|bytes| Reply::Random(bytes.into()))
            }
        }
    }
}

impl<C: Cluster> Executor<C> {
    /// The secrets that a request of this namespace may refer to.
    fn secrets<'e>(&'e self, namespace: &'e Arc<str>) -> secrets::Secrets<'e, C> {
        secrets::Secrets { cluster: &self.cluster, own: namespace, home: self.home.as_deref() }
    }

    async fn call_plugin(&self, inquiry: &Inquiry) -> Result<Reply, WriteError> {
        let question = &inquiry.question;
        let unanswered = || unanswered(question, "nobody plays it".to_owned());
        let plugins = match &self.plugins {
            PluginHost::None => return plugins::unconfigured(question).map_or_else(unanswered, Ok),
            PluginHost::Played(play) => return play(question).map_or_else(unanswered, Ok),
            PluginHost::Real(plugins) => plugins,
        };
        let object = inquiry.object();
        match question {
            Question::Plugin(call) => {
                plugins.step(&self.cluster, &object, call).await.map(Reply::Plugin)
            }
            Question::RouterPlugin(call) => {
                plugins.router(&self.cluster, &object, call).await.map(Reply::RouterPlugin)
            }
            Question::MetricPlugin(call) => {
                self.measure(plugins, &object, call).await.map(Reply::MetricPlugin)
            }
            _ => unanswered(),
        }
    }

    /// Calls a metric plugin with the secrets that its metric refers to; none is left in the answer.
    async fn measure(
        &self,
        plugins: &Plugins,
        run: &ObjectRef,
        call: &MetricCall,
    ) -> Result<MetricReply, WriteError> {
        let secrets = self.secrets(&run.namespace);
        let (metric, hidden) = match secrets.fill(&call.metric).await? {
            Ok(filled) => filled,
            Err(HttpError::Secret(error)) => return Ok(MetricReply::NoSecret(error)),
            Err(error) => return Ok(MetricReply::Broken(error.to_string())),
        };
        let reply = plugins.metric(&self.cluster, run, call, (&metric, &hidden)).await?;
        let reply = secrets::cleaned_metric(reply, &hidden);
        if let (MetricOperation::GarbageCollect(_), MetricReply::Broken(error)) =
            (&call.operation, &reply)
        {
            let (plugin, run) = (&call.name, run.to_string());
            tracing::warn!(plugin, run, error, "garbage of a metric is not collected");
        }
        Ok(reply)
    }

    async fn hear(
        &self,
        within: &Within,
        inquiry: &Inquiry,
        request: &HttpRequest,
    ) -> Result<HttpOutcome, WriteError> {
        let sent = sent(&self.cluster, &inquiry.key.namespace, None, request).await?;
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => return Ok(Err(error)),
        };
        Ok(match within(inquiry, &sent) {
            LocalAnswer::Answer(outcome) => sent.cleaned(outcome),
            LocalAnswer::Silence => {
                let limit = Duration::try_from(request.timeout).unwrap_or_default();
                tokio::time::sleep(limit).await;
                Err(HttpError::Timeout(request.timeout))
            }
        })
    }
}

/// Trust in the servers that the system trusts.
pub(crate) fn system_trust() -> Result<rustls::ClientConfig, HttpError> {
    trust::config(false, None)
}

/// What comes of work that may hang or panic; an error where it did.
async fn contained<T>(patience: Duration, work: impl Future<Output = T>) -> Result<T, String> {
    let work = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout(patience, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err("it panicked".to_owned()),
        Err(_) => Err(format!("no answer within {} s", patience.as_secs())),
    }
}

/// Nobody has answered.
fn away(message: String) -> WriteError {
    WriteError { class: Class::Unreachable, message, retry_after_secs: None }
}

/// The answer to a question that only the API server can answer.
pub async fn read<C: Cluster>(cluster: &C, question: &Question) -> Result<Reply, WriteError> {
    match question {
        Question::Read(target) => {
            let found = cluster.read_whole(target).await?;
            Ok(Reply::Object(found.map(|object| Arc::new(shown(target, object)))))
        }
        Question::Pods(pods) => {
            let listing = Listing {
                kind: kinds::POD,
                namespace: Arc::clone(&pods.set.namespace),
                labels: format!("{POD_TEMPLATE_HASH}={}", pods.hash),
            };
            let found = cluster.list(&listing).await?;
            let is_theirs =
                |pod: &&Frame| pod.meta.controller().is_some_and(|owner| owner.uid == pods.uid);
            Ok(Reply::Pods(found.iter().filter(is_theirs).map(PodView::read).collect()))
        }
        Question::List(of) => {
            let listing = Listing {
                kind: of.kind.clone(),
                namespace: Arc::clone(&of.namespace),
                labels: of.labels.to_string(),
            };
            let found = cluster.list(&listing).await?;
            Ok(Reply::Objects(found.iter().map(Frame::object).map(Arc::new).collect()))
        }
        other => unanswered(other, "the API server does not know".to_owned()),
    }
}

/// An object as a World may hold it: of a Secret its keys alone.
fn shown(target: &ObjectRef, mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        // The number that a frame of it has: decisions compare the two.
        if let Some(Value::String(text)) = metadata.get_mut("resourceVersion") {
            *text = version::number(text).to_string();
        }
    }
    match &*target.kind.name {
        "Secret" => keys_alone(&object),
        _ => object,
    }
}

/// A Secret with its keys, and nothing of what they keep: annotations may repeat it.
fn keys_alone(secret: &Value) -> Value {
    let keys = secret["data"].as_object().into_iter().flatten().map(|(key, _)| key.clone());
    let data: serde_json::Map<String, Value> = keys.map(|key| (key, "".into())).collect();
    let mut metadata = secret["metadata"].clone();
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove("annotations");
    }
    serde_json::json!({ "metadata": metadata, "data": data })
}

/// A question without an answer. Of one that may have changed something outside that is an answer,
/// too: it is not asked again by itself.
fn unanswered(question: &Question, message: String) -> Result<Reply, WriteError> {
    match question {
        Question::Http(_) => Ok(Reply::Http(Err(HttpError::Connect(message)))),
        Question::Plugin(_) => Ok(Reply::Plugin(PluginReply::Broken(message))),
        Question::MetricPlugin(call) => {
            let message = format!("{} rpc call error: {message}", call.operation.method());
            Ok(Reply::MetricPlugin(MetricReply::Broken(message)))
        }
        Question::RouterPlugin(_) => Ok(Reply::RouterPlugin(RouterReply::Broken(message))),
        Question::Read(_)
        | Question::Pods(_)
        | Question::List(_)
        | Question::Weights(_)
        | Question::Targets(_)
        | Question::Probe(_)
        | Question::Random(_) => Err(away(message)),
    }
}

#[cfg(test)]
mod tests;
