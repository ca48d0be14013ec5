//! What would the controller look at to decide about a rollout, and what else tells of its pods?

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use gradus_controller::rollouts::{RolloutIndex, Source as Watched};
use gradus_controller::tolerant::Tolerant;
use gradus_controller::watched::{Key, Reach, Watched as _};
use gradus_engine::ask::{Answer, Ask, AskId, Effect, PodsOf, Question, Recall, Reply};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use gradus_engine::rollout::Rollouts;
use gradus_engine::world::{PodView, World};
use gradus_engine::{Engine, kinds};
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::Refusal;
use crate::source::Source;
use crate::{near, output};

/// Questions may lead to further questions, but not for ever.
const ROUNDS: usize = 4;

const BUDGET: Kind = Kind::new("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");

/// Everything an explanation looks at.
pub struct Gathered {
    /// What a decision looks at.
    pub world: World,
    /// Pods of the namespace.
    pub pods: Vec<Value>,
    /// Events of the namespace.
    pub events: Vec<Value>,
    /// PodDisruptionBudgets of the namespace.
    pub budgets: Vec<Value>,
    /// What a decision asks and nobody answers here, in words.
    pub unanswered: Vec<String>,
}

/// Gathers the World of a rollout as the controller does, with what it asks answered.
pub async fn world(source: &Source, name: &str, now: Timestamp) -> anyhow::Result<Gathered> {
    let mut index = RolloutIndex::default();
    let mut watched = Rollouts::sources();
    let mut next = 0;
    while let Some(one) = watched.get(next).cloned() {
        take_in(source, &mut index, &one).await?;
        let demands = Rollouts::demands(&index).into_iter();
        let new: Vec<Watched> = demands.filter(|one| !watched.contains(one)).collect();
        watched.extend(new);
        next += 1;
    }
    let found = index.rollouts().find(|(key, _)| *key.name == *name).map(|(key, _)| key.clone());
    let key = match found {
        Some(key) => key,
        None => return Err(missing(source, name).await),
    };
    let pods = list(source, &kinds::POD).await;
    let known = pods.as_ref().ok().map(Vec::as_slice);
    let (world, unanswered) = answered(source, &index, &key, known, now).await?;
    Ok(Gathered {
        world,
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

/// The World after every question that only reads has its answer, and what stays open.
async fn answered(
    source: &Source,
    index: &RolloutIndex,
    key: &Key,
    pods: Option<&[Value]>,
    now: Timestamp,
) -> anyhow::Result<(World, Vec<String>)> {
    let mut answers: BTreeMap<AskId, Answer> = BTreeMap::new();
    let mut left = ROUNDS;
    loop {
        let world = Rollouts::gather(index, key, &answers, &Recall::default());
        let world = world.context("the rollout is gone")?;
        let asks = Rollouts::decide(&world, now).asks.into_iter();
        let open: Vec<Ask> = asks.filter(|ask| !answers.contains_key(&ask.id)).collect();
        let known = answers.len();
        for ask in &open {
            if let Some(reply) = reply(source, ask, pods).await {
                let answer = Answer { asked_at: now, answered_at: now, reply: Ok(reply) };
                answers.insert(ask.id.clone(), answer);
            }
        }
        if left == 0 || answers.len() == known {
            return Ok((world, open.iter().map(|ask| ask.id.0.to_string()).collect()));
        }
        left -= 1;
    }
}

/// The reply to a question that changes nothing, as far as it can be had from here.
async fn reply(source: &Source, ask: &Ask, pods: Option<&[Value]>) -> Option<Reply> {
    match &ask.question {
        _ if ask.effect == Effect::Acts => None,
        Question::Read(target) => read(source, target).await,
        Question::Pods(of) => {
            let frames = pods?.iter().filter_map(|pod| serde_json::from_value(pod.clone()).ok());
            let theirs = frames.filter(|frame: &Frame| is_owned(frame, of));
            let mut found: Vec<PodView> = theirs.map(|frame| PodView::read(&frame)).collect();
            found.sort_by(|one, other| one.name.cmp(&other.name));
            Some(Reply::Pods(found.into()))
        }
        // Asked of a plugin, a load balancer or chance, or by another engine.
        Question::Plugin(_)
        | Question::MetricPlugin(_)
        | Question::RouterPlugin(_)
        | Question::Http(_)
        | Question::List(_)
        | Question::Random(_)
        | Question::Weights(_) => None,
    }
}

fn is_owned(frame: &Frame, of: &PodsOf) -> bool {
    frame.meta.controller().is_some_and(|owner| owner.uid == of.uid)
}

/// Lists what is watched into the index. What may not be read is unknown, never absent.
async fn take_in(
    source: &Source,
    index: &mut RolloutIndex,
    watched: &Watched,
) -> anyhow::Result<()> {
    let kind = Rollouts::kind_of(watched);
    match list(source, &kind).await {
        Ok(objects) => {
            let apply = Rollouts::shelf(watched).apply;
            for object in objects {
                let Tolerant(frame) = serde_json::from_value(object)?;
                apply(index, &kind, &frame);
            }
            Rollouts::reach(index, watched, Reach::Listed);
        }
        Err(refusal) if kind == kinds::ROLLOUT => return Err(refusal.into()),
        // A server without the kind has no objects of it.
        Err(Refusal::NotFound(_)) => drop(Rollouts::reach(index, watched, Reach::Listed)),
        Err(refusal) => {
            Rollouts::reach(index, watched, Reach::Unreadable(&refusal.to_string()));
        }
    }
    Ok(())
}

async fn list(source: &Source, kind: &Kind) -> Result<Vec<Value>, Refusal> {
    match source {
        Source::Live(cluster) => cluster.list(kind, "").await,
        Source::Files(exported) => Ok(exported.list(kind)),
        Source::World(_) => Ok(Vec::new()),
    }
}

async fn read(source: &Source, target: &ObjectRef) -> Option<Reply> {
    let found = match source {
        Source::Live(cluster) => match cluster.get(&target.kind, &target.name).await {
            Ok(object) => Some(object),
            Err(Refusal::NotFound(_)) => None,
            Err(_) => return None,
        },
        Source::Files(exported) => exported.find(&target.kind, &target.name).ok(),
        Source::World(_) => return None,
    };
    Some(Reply::Object(found.map(Arc::new)))
}

async fn missing(source: &Source, name: &str) -> anyhow::Error {
    match source {
        Source::Live(cluster) => near::absent(cluster, &kinds::ROLLOUT, name).await,
        Source::Files(exported) => match exported.find(&kinds::ROLLOUT, name) {
            Err(error) => error,
            Ok(_) => anyhow::anyhow!("{}", near::said(&kinds::ROLLOUT, name)),
        },
        Source::World(_) => anyhow::anyhow!("{}", near::said(&kinds::ROLLOUT, name)),
    }
}
