//! What would the controller look at to decide about an object, and what else do its pods say? The engine of
//! the object is fed as the controller feeds it, and asked as the health port asks it.

use std::sync::Arc;

use anyhow::{Context, bail};
use gradus_controller::engines::Entry;
use gradus_controller::reconciler::Reconciler;
use gradus_controller::shell::{InterlockMode, Seen, Work};
use gradus_controller::tolerant::Tolerant;
use gradus_controller::watch::{Failed, FailedCause};
use gradus_controller::watched::{Key, Scope, Selection};
use gradus_engine::ask::{Effect, PodsOf, Question, Reply};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::kinds;
use gradus_engine::world::PodView;
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::{Refusal, Scope as ListScope};
use crate::source::Source;
use crate::{near, output};

const BUDGET: Kind = Kind::new("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");

/// Everything an explanation looks at.
pub struct Gathered {
    /// What a decision looks at, as the health port shows it.
    pub world: Value,
    /// Pods of the namespace.
    pub pods: Vec<Value>,
    /// Events of the namespace.
    pub events: Vec<Value>,
    /// PodDisruptionBudgets of the namespace.
    pub budgets: Vec<Value>,
    /// What a decision asks and nobody answers here, in words.
    pub unanswered: Vec<String>,
}

/// Gathers the World of an object as the controller does, with what it asks answered.
pub async fn world(
    source: &Source,
    entry: &Entry,
    name: &str,
    now: Timestamp,
) -> anyhow::Result<Gathered> {
    let mut reconciler = entry.start(&Scope::default(), InterlockMode::default());
    let mut watches = reconciler.selections();
    while let Some(watch) = watches.pop() {
        take_in(source, &mut *reconciler, &watch, now).await?;
        watches.extend(reconciler.take_demands());
    }
    let found = reconciler.own_keys().into_iter().find(|key| *key.name == *name);
    let Some(key) = found else { return Err(missing(source, &entry.kind, name).await) };
    let pods = list(source, &kinds::POD).await;
    let known = pods.as_ref().ok().map(Vec::as_slice);
    let unanswered = answer(source, &mut *reconciler, &key, known, now).await;
    let mut seen = reconciler.inspect(&key, now).context("the object is gone")?;
    if let Some(message) = seen["panicked"].as_str() {
        bail!("{} {key} cannot be read: {message}", entry.kind.name);
    }
    Ok(Gathered {
        world: seen["world"].take(),
        unanswered,
        pods: pods.unwrap_or_else(|refusal| said(&refusal)),
        events: list(source, &kinds::EVENT).await.unwrap_or_else(|refusal| said(&refusal)),
        budgets: list(source, &BUDGET).await.unwrap_or_default(),
    })
}

fn said(refusal: &Refusal) -> Vec<Value> {
    output::warn(&format!("warning: {refusal}"));
    Vec::new()
}

/// Answers what the engine asks about an object, as far as that changes nothing and can be had from here;
/// returns what stays open. Nothing is written.
async fn answer(
    source: &Source,
    reconciler: &mut dyn Reconciler,
    key: &Key,
    pods: Option<&[Value]>,
    now: Timestamp,
) -> Vec<String> {
    let mut open = Vec::new();
    while let Some(work) = reconciler.next_work(now) {
        match work {
            Work::Act(job) => reconciler.decline(&job.key, now),
            Work::Settle(reading) => match frame(read(source, &reading.object).await) {
                Some(found) => reconciler.learn_settling(reading, Ok(found), now),
                None => open.push(format!("read {}", reading.object)),
            },
            // Other objects have their questions, too.
            // What is left of others is no part of the answer.
            Work::Survey(listing) => reconciler.learn_survey(&listing, Ok(Vec::new()), now),
            Work::Ask(inquiry) if inquiry.key != *key => reconciler.take_back(*inquiry, now),
            Work::Ask(inquiry) => {
                match reply(source, &inquiry.question, inquiry.effect, pods).await {
                    Some(reply) => reconciler.learn_answer(*inquiry, Ok(reply), now),
                    None => open.push(inquiry.id().0.to_string()),
                }
            }
        }
    }
    open
}

/// The reply to a question that changes nothing, as far as it can be had from here.
async fn reply(
    source: &Source,
    question: &Question,
    effect: Effect,
    pods: Option<&[Value]>,
) -> Option<Reply> {
    match question {
        _ if effect == Effect::Acts => None,
        Question::Read(target) => {
            let found = read(source, target).await?;
            Some(Reply::Object(found.map(Arc::new)))
        }
        Question::Pods(of) => {
            let frames = pods?.iter().filter_map(|pod| serde_json::from_value(pod.clone()).ok());
            let theirs = frames.filter(|frame: &Frame| is_owned(frame, of));
            let mut found: Vec<PodView> = theirs.map(|frame| PodView::read(&frame)).collect();
            found.sort_by(|one, other| one.name.cmp(&other.name));
            Some(Reply::Pods(found.into()))
        }
        // Asked of a plugin, a provider, a load balancer or chance.
        Question::Plugin(_)
        | Question::MetricPlugin(_)
        | Question::RouterPlugin(_)
        | Question::Http(_)
        | Question::List(_)
        | Question::Random(_)
        | Question::Probe(_)
        | Question::Weights(_)
        | Question::Targets(_) => None,
    }
}

fn is_owned(frame: &Frame, of: &PodsOf) -> bool {
    frame.meta.controller().is_some_and(|owner| owner.uid == of.uid)
}

/// Shows the engine a list of what it watches. What may not be read is unknown, never absent.
async fn take_in(
    source: &Source,
    reconciler: &mut dyn Reconciler,
    watch: &Selection,
    now: Timestamp,
) -> anyhow::Result<()> {
    let failure = match list(source, &watch.kind).await {
        Ok(objects) => {
            reconciler.observe(watch, &Seen::Init, now);
            for object in objects {
                let Tolerant(frame) = serde_json::from_value(object)?;
                reconciler.observe(watch, &Seen::InitApply(frame), now);
            }
            reconciler.observe(watch, &Seen::InitDone, now);
            return Ok(());
        }
        Err(refusal) if watch.kind == reconciler.kind() => return Err(refusal.into()),
        // A server without the kind has no objects of it.
        Err(Refusal::NotFound(message)) => Failed { cause: FailedCause::NoSuchKind, message },
        Err(refusal) => Failed { cause: FailedCause::Forbidden, message: refusal.to_string() },
    };
    reconciler.observe_failure(watch, &failure, now);
    Ok(())
}

async fn list(source: &Source, kind: &Kind) -> Result<Vec<Value>, Refusal> {
    match source {
        Source::Live(cluster) if *kind == kinds::CLUSTER_ANALYSIS_TEMPLATE => {
            cluster.list_scope(kind, ListScope { name: None, everywhere: true }).await
        }
        Source::Live(cluster) => cluster.list(kind, "").await,
        Source::Files(exported) => Ok(exported.list(kind)),
        Source::World(_) => Ok(Vec::new()),
    }
}

/// The object, `None` within if it is not there; nothing where that cannot be known.
async fn read(source: &Source, target: &ObjectRef) -> Option<Option<Value>> {
    match source {
        Source::Live(cluster) => match cluster.get(&target.kind, &target.name).await {
            Ok(object) => Some(Some(object)),
            Err(Refusal::NotFound(_)) => Some(None),
            Err(_) => None,
        },
        Source::Files(exported) => Some(exported.find(&target.kind, &target.name).ok()),
        Source::World(_) => None,
    }
}

/// The same as the engine takes it in; nothing where it cannot be read.
fn frame(found: Option<Option<Value>>) -> Option<Option<Frame>> {
    let Some(object) = found? else { return Some(None) };
    let Tolerant(frame) = serde_json::from_value(object).ok()?;
    Some(Some(frame))
}

async fn missing(source: &Source, kind: &Kind, name: &str) -> anyhow::Error {
    let found = match source {
        Source::Live(cluster) => match cluster.get(kind, name).await {
            Ok(_) => Ok(()),
            Err(_) => Err(near::absent(cluster, kind, name).await),
        },
        Source::Files(exported) => exported.find(kind, name).map(drop),
        Source::World(_) => Err(anyhow::anyhow!("{}", near::said(kind, name))),
    };
    match found {
        Err(error) => error,
        Ok(()) => anyhow::anyhow!("Gradus has nothing to decide about {} {name}", kind.name),
    }
}
