//! What would the controller look at to decide about a rollout, and what else tells of its pods?

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use gradus_controller::rollouts::RolloutIndex;
use gradus_controller::tolerant::Tolerant;
use gradus_controller::watched::{Key, Reach, Watched};
use gradus_engine::ask::{Answer, Ask, AskId, Effect, Question, Recall, Reply};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::rollout::Rollouts;
use gradus_engine::world::World;
use gradus_engine::{Engine, kinds};
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::Refusal;
use crate::near;
use crate::source::Source;

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
}

/// Gathers the World of a rollout as the controller does, with what it asks answered.
pub async fn world(source: &Source, name: &str, now: Timestamp) -> anyhow::Result<Gathered> {
    let mut index = RolloutIndex::default();
    let mut kinds: Vec<Kind> = Rollouts::watches("").into_iter().map(|watch| watch.kind).collect();
    let mut next = 0;
    while let Some(kind) = kinds.get(next).cloned() {
        take_in(source, &mut index, &kind).await?;
        let demands = Rollouts::demands(&index).into_iter();
        let new: Vec<Kind> = demands.filter(|kind| !kinds.contains(kind)).collect();
        kinds.extend(new);
        next += 1;
    }
    let found = index.rollouts().find(|(key, _)| *key.name == *name).map(|(key, _)| key.clone());
    let key = match found {
        Some(key) => key,
        None => return Err(missing(source, name).await),
    };
    let world = answered(source, &index, &key, now).await?;
    Ok(Gathered {
        world,
        pods: list(source, &kinds::POD).await.unwrap_or_else(|refusal| said(&refusal)),
        events: list(source, &kinds::EVENT).await.unwrap_or_else(|refusal| said(&refusal)),
        budgets: list(source, &BUDGET).await.unwrap_or_default(),
    })
}

fn said(refusal: &Refusal) -> Vec<Value> {
    eprintln!("warning: {refusal}");
    Vec::new()
}

/// The World after every question that only reads has its answer.
async fn answered(
    source: &Source,
    index: &RolloutIndex,
    key: &Key,
    now: Timestamp,
) -> anyhow::Result<World> {
    let mut answers: BTreeMap<AskId, Answer> = BTreeMap::new();
    let gathered = |answers: &BTreeMap<AskId, Answer>| {
        Rollouts::gather(index, key, answers, &Recall::default()).context("the rollout is gone")
    };
    for _ in 0..ROUNDS {
        let world = gathered(&answers)?;
        let asks = Rollouts::decide(&world, now).asks;
        let open: Vec<Ask> = asks
            .into_iter()
            .filter(|ask| ask.effect == Effect::Reads && !answers.contains_key(&ask.id))
            .collect();
        if open.is_empty() {
            return Ok(world);
        }
        for ask in open {
            let Question::Read(target) = &ask.question else { continue };
            if let Some(reply) = read(source, target).await {
                let answer = Answer { asked_at: now, answered_at: now, reply: Ok(reply) };
                answers.insert(ask.id, answer);
            }
        }
    }
    gathered(&answers)
}

/// Lists a kind into the index. What may not be read is unknown, never absent.
async fn take_in(source: &Source, index: &mut RolloutIndex, kind: &Kind) -> anyhow::Result<()> {
    match list(source, kind).await {
        Ok(objects) => {
            for object in objects {
                let Tolerant(frame) = serde_json::from_value(object)?;
                Rollouts::apply(index, kind, &frame);
            }
            Rollouts::reach(index, kind, Reach::Listed);
        }
        Err(refusal) if *kind == kinds::ROLLOUT => return Err(refusal.into()),
        // A server without the kind has no objects of it.
        Err(Refusal::NotFound(_)) => drop(Rollouts::reach(index, kind, Reach::Listed)),
        Err(refusal) => {
            Rollouts::reach(index, kind, Reach::Unreadable(&refusal.to_string()));
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
