//! How far has this decision come? The plan so far, and the objects as it leaves them.

use std::sync::Arc;

use jiff::Timestamp;

use super::objects::Objects;
use super::plan::{Plan, Proposal};
use super::replica_sets::Roles;
use super::runs::Findings;
use super::status::{self, UpdateState};
use crate::world::{ReplicaSetView, World};

/// A decision in the making: the objects, and the plan that leaves them so.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draft<'w> {
    /// By address: they go from stage to stage, some forty times in a pass.
    pub objects: Box<Objects<'w>>,
    pub plan: Plan,
}

/// What one pass comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Passed<'w> {
    pub draft: Draft<'w>,
    /// What it has found out about runs and Experiments.
    pub found: Findings,
}

impl<'w> Draft<'w> {
    /// The World as it is, and nothing planned.
    pub fn new(world: &'w World, sets: &[Arc<ReplicaSetView>], now: Timestamp) -> Self {
        Draft { objects: Box::new(Objects::new(world, sets, now)), plan: Plan::default() }
    }

    /// What a stage wants is planned, and the objects are as that leaves them.
    pub fn then(self, stage: impl FnOnce(&Objects<'w>) -> Proposal) -> Self {
        let proposal = stage(&self.objects);
        self.with(proposal)
    }

    /// The same with a proposal that is there already.
    pub fn with(mut self, proposal: Proposal) -> Self {
        self.plan.add(&mut self.objects, proposal);
        self
    }

    /// A created ReplicaSet has got its size.
    pub fn with_size(self) -> Self {
        Draft { plan: self.plan.with_size(), ..self }
    }

    /// The pass ends: the status says how the update stands, and what was found.
    pub fn end(self, roles: Roles, found: Findings, state: UpdateState) -> Passed<'w> {
        let draft = self.then(|objects| status::persist(objects, roles, &found, state));
        Passed { draft, found }
    }

    /// A pass that has looked at no run.
    pub fn passed(self) -> Passed<'w> {
        Passed { draft: self, found: Findings::default() }
    }
}
