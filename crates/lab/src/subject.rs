//! What the lab must know of a program to run scenarios about it.

use std::sync::Arc;

use gradus_controller::engines::{Engines, GRADUS};
use gradus_simkube::SimCluster;
use gradus_simkube::kinds::{KindId, Kinds};
use gradus_simkube::object::Object;
use serde_json::Value;

use crate::checks::{Checker, Counts, Judge, Tally, Violation};
use crate::ends;

/// A program that scenarios can be run with. They are about objects of its main kind.
pub trait Subject {
    /// Its engines: the list that it runs in production.
    const ENGINES: &'static Engines;

    /// The custom kinds of its cluster, by name.
    fn definitions() -> Vec<(&'static str, Value)>;

    /// Who judges its writes, where its main kind has this number.
    fn judge(_kind: KindId, _kinds: &Kinds) -> Box<dyn Judge> {
        Box::new(Tally::default())
    }

    /// What is wrong with an end, beyond what every scenario says of its own.
    fn judge_end(_: &SimCluster, _: Option<&Arc<Object>>, _: &Counts) -> Vec<Violation> {
        Vec::new()
    }
}

/// Gradus itself.
pub struct Gradus;

impl Subject for Gradus {
    const ENGINES: &'static Engines = &GRADUS;

    fn definitions() -> Vec<(&'static str, Value)> {
        gradus_api::crd::crds().into_iter().chain(crate::routing::definitions()).collect()
    }

    fn judge(kind: KindId, kinds: &Kinds) -> Box<dyn Judge> {
        Box::new(Checker::new(kind, kinds))
    }

    fn judge_end(
        cluster: &SimCluster,
        rollout: Option<&Arc<Object>>,
        counts: &Counts,
    ) -> Vec<Violation> {
        ends::judge(cluster, rollout, counts)
    }
}

/// A subject without its type: scenarios of all programs are run by the same code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Erased {
    /// Its engines.
    pub(crate) engines: &'static Engines,
    /// Who judges its writes.
    pub(crate) judge: fn(KindId, &Kinds) -> Box<dyn Judge>,
    /// Who judges its end.
    pub(crate) judge_end: fn(&SimCluster, Option<&Arc<Object>>, &Counts) -> Vec<Violation>,
}

impl Erased {
    pub(crate) fn of<S: Subject>() -> Self {
        Erased { engines: S::ENGINES, judge: S::judge, judge_end: S::judge_end }
    }
}
