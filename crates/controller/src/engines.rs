//! Every engine of a program, named once: the production loop, the simulator and `explain` run the
//! engines of the same list.

use gradus_api::names::EVENT_SOURCE;
use gradus_engine::Engine;
use gradus_engine::analysis::run::AnalysisRuns;
use gradus_engine::decision::Kind;
use gradus_engine::experiment::Experiments;
use gradus_engine::release::{ManagedRoute, Releases};
use gradus_engine::rollout::Rollouts;
use gradus_engine::world::ServiceView;
use jiff::Timestamp;
use serde_json::Value;

use crate::judged::{Judged, judge};
use crate::reconciler::Reconciler;
use crate::shell::{InterlockMode, Shell};
use crate::watched::{Scope, Watched};

/// The engines of Gradus. A new one is one more line here.
pub static GRADUS: Engines = Engines {
    reporter: GRADUS_REPORTER,
    list: &[
        Entry::of::<Rollouts>(),
        Entry::of::<AnalysisRuns>(),
        Entry::of::<Experiments>(),
        Entry::of::<Releases<ServiceView>>(),
        Entry::of::<Releases<ManagedRoute<0>>>(),
        Entry::of::<Releases<ManagedRoute<1>>>(),
        Entry::of::<Releases<ManagedRoute<2>>>(),
        Entry::of::<Releases<ManagedRoute<3>>>(),
        Entry::of::<Releases<ManagedRoute<4>>>(),
        Entry::of::<Releases<ManagedRoute<5>>>(),
        Entry::of::<Releases<ManagedRoute<6>>>(),
        Entry::of::<Releases<ManagedRoute<7>>>(),
        Entry::of::<Releases<ManagedRoute<8>>>(),
        Entry::of::<Releases<ManagedRoute<9>>>(),
        Entry::of::<Releases<ManagedRoute<10>>>(),
        Entry::of::<Releases<ManagedRoute<11>>>(),
    ],
};

/// The engine of AnalysisRuns alone: for those who create such runs themselves.
pub static ANALYSES: Engines =
    Engines { reporter: GRADUS_REPORTER, list: &[Entry::of::<AnalysisRuns>()] };

const GRADUS_REPORTER: Reporter = Reporter { component: EVENT_SOURCE, manager: "gradus" };

/// Every engine of a program, and how the program is named to the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Engines {
    /// Who reports Events and owns written fields.
    pub reporter: Reporter,
    /// The engines. The first one is the one the program is about.
    pub list: &'static [Entry],
}

/// How a controller is named to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// Who reports Events: the name that users and tools filter by.
    pub component: &'static str,
    /// Who owns written fields, as `managedFields` shows it.
    pub manager: &'static str,
}

impl Reporter {
    /// One name for both.
    pub const fn named(name: &'static str) -> Self {
        Reporter { component: name, manager: name }
    }
}

/// One engine of a program, without its types.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The kind it decides about.
    pub kind: Kind,
    start: fn(&Scope, InterlockMode) -> Box<dyn Reconciler>,
    judge: fn(&Value, Timestamp) -> serde_json::Result<Judged>,
}

impl Entry {
    /// The entry of an engine.
    pub const fn of<W: Watched>() -> Self {
        Entry { kind: <W as Engine>::KIND, start: start::<W>, judge: judge::<W> }
    }

    /// A reconciler that has seen nothing yet.
    pub fn start(&self, scope: &Scope, interlock: InterlockMode) -> Box<dyn Reconciler> {
        (self.start)(scope, interlock)
    }

    /// What the engine decides about a World as `/debug/world` shows it; an error where that is no World
    /// of its kind.
    pub fn judge(&self, world: &Value, now: Timestamp) -> serde_json::Result<Judged> {
        (self.judge)(world, now)
    }
}

impl Engines {
    /// A reconciler for every engine, in the order of the list.
    pub fn start(&self, scope: &Scope, interlock: InterlockMode) -> Vec<Box<dyn Reconciler>> {
        self.list.iter().map(|entry| entry.start(scope, interlock)).collect()
    }

    /// The engine of a kind, by any name that kubectl takes for it.
    pub fn of(&self, kind: &str) -> Option<&Entry> {
        self.list.iter().find(|entry| entry.kind.is_called(kind))
    }

    /// The kind the program is about.
    pub fn main_kind(&self) -> &Kind {
        &self.list[0].kind
    }
}

fn start<W: Watched>(scope: &Scope, interlock: InterlockMode) -> Box<dyn Reconciler> {
    Box::new(Shell::<W>::new(scope, interlock))
}

#[cfg(test)]
mod tests {
    use gradus_engine::traffic::ROUTERS;

    use super::*;

    #[test]
    fn every_kind_that_a_router_leaves_something_on_has_one_engine() {
        let released = ROUTERS.iter().flat_map(|router| router.releases);
        for kind in released.map(|release| &release.kind) {
            let count = GRADUS.list.iter().filter(|entry| entry.kind == *kind).count();
            assert_eq!(count, 1, "{kind:?}: `traffic::released_kind` and `GRADUS` name each once");
        }
    }
}
