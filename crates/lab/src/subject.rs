//! What must the lab know of a controller to tell scenarios about it?

use std::pin::Pin;
use std::sync::Arc;

use gradus_controller::kube_cluster::KubeCluster;
use gradus_controller::run::{Outside, Settings, run_all};
use gradus_controller::watched::Watched;
use gradus_engine::rollout::Rollouts;
use gradus_simkube::SimCluster;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Object;
use serde_json::Value;

use crate::checks::{Checker, Counts, Violation};
use crate::ends;
use crate::faults::Faults;
use crate::simulate::{self, Outcome, Prepared};
use crate::trace::Trace;

/// A controller that scenarios can be told about.
pub trait Subject: Watched {
    /// The custom kinds of its cluster, by name.
    fn definitions() -> Vec<(&'static str, Value)>;

    /// Who judges its writes, where its own kind has this number.
    fn checker(_kind: KindId) -> Checker {
        Checker::counting()
    }

    /// What is wrong with an end, beyond what every scenario says of its own.
    fn judge_end(_: &SimCluster, _: Option<&Arc<Object>>, _: &Counts) -> Vec<Violation> {
        Vec::new()
    }
}

impl Subject for Rollouts {
    fn definitions() -> Vec<(&'static str, Value)> {
        gradus_api::crd::crds()
    }

    fn checker(kind: KindId) -> Checker {
        Checker::new(kind)
    }

    fn judge_end(
        cluster: &SimCluster,
        rollout: Option<&Arc<Object>>,
        counts: &Counts,
    ) -> Vec<Violation> {
        ends::judge(cluster, rollout, counts)
    }
}

/// A production loop that runs.
pub(crate) type Looping = Pin<Box<dyn Future<Output = ()>>>;

/// A subject without its type: scenarios of all kinds are run by the same code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Erased {
    /// Who judges its writes.
    pub(crate) checker: fn(KindId) -> Checker,
    /// Who judges its end.
    pub(crate) judge_end: fn(&SimCluster, Option<&Arc<Object>>, &Counts) -> Vec<Violation>,
    /// Runs a scenario in virtual time.
    pub(crate) simulate: fn(&Prepared, &Faults, Trace) -> Outcome,
    /// Runs the production loop.
    pub(crate) control: fn(Outside<KubeCluster>) -> Looping,
}

impl Erased {
    pub(crate) fn of<S: Subject>() -> Self {
        Erased {
            checker: S::checker,
            judge_end: S::judge_end,
            simulate: simulate::run::<S>,
            control: |outside| {
                Box::pin(run_all::<S, _>(outside, Settings::default(), std::future::pending()))
            },
        }
    }
}
