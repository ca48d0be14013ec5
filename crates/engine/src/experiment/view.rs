//! An Experiment, and a Service of one, as decisions see them.

use std::sync::Arc;

use gradus_api::decode::decode;
use gradus_api::experiment::{ExperimentSpec, ExperimentStatus};
use gradus_api::names::{self, annotation, kind, label};
use gradus_api::values::parse_go_duration;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::decision::{Frees, Guard, ObjectRef, Why};
use crate::frame::Frame;
use crate::kinds;
use crate::uid::Uid;

/// An Experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentView {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// Is its deletion asked for?
    pub is_deleting: bool,
    /// The controller instance whose it is, as its label says; its AnalysisRuns are the same one's.
    pub instance: Option<String>,
    /// The Rollout that controls it, if one does: its name and identity.
    pub rollout: Option<(Arc<str>, Uid)>,
    /// Its spec.
    pub spec: Arc<ExperimentSpec>,
    /// Its status as stored.
    pub status: Arc<ExperimentStatus>,
}

/// A Service of an Experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentService {
    /// Name.
    pub name: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// Is its deletion asked for?
    pub is_deleting: bool,
    /// The Experiment that its annotation names.
    pub experiment: Arc<str>,
    /// The template of the Experiment that its annotation names.
    pub template: Arc<str>,
}

impl ExperimentView {
    /// The view of a frame. Fields of the wrong type count as missing, as everywhere. `earlier` lends
    /// its spec where that is the same.
    pub fn read(frame: &Frame, earlier: Option<&ExperimentView>) -> Self {
        let meta = &frame.meta;
        let spec: ExperimentSpec = decode(&frame.spec).0;
        let same = earlier.filter(|view| *view.spec == spec);
        let owner = meta.controller().filter(|owner| *owner.kind == *kind::ROLLOUT);
        ExperimentView {
            namespace: Arc::clone(&meta.namespace),
            name: Arc::clone(&meta.name),
            uid: meta.uid,
            version: meta.version,
            is_deleting: meta.deleting.is_some(),
            instance: meta.labels.get(label::INSTANCE_ID).cloned(),
            rollout: owner.map(|owner| (Arc::clone(&owner.name), owner.uid)),
            spec: same.map_or_else(|| Arc::new(spec), |view| Arc::clone(&view.spec)),
            status: Arc::new(decode(&frame.status).0),
        }
    }

    /// Which object it is.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef::new(kinds::EXPERIMENT, &self.namespace, &self.name)
    }

    /// What the objects it makes say of it.
    pub fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": names::API_VERSION,
            "kind": kind::EXPERIMENT,
            "name": &*self.name,
            "uid": self.uid.to_string(),
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// The templates that its analyses name, as (name, is it of the cluster).
    pub fn templates(&self) -> impl Iterator<Item = (&str, bool)> {
        self.spec.analyses.iter().map(|one| (one.template_name.as_str(), one.cluster_scope))
    }

    /// How long it runs, if it has such a time.
    pub(super) fn duration(&self) -> Option<SignedDuration> {
        parse_go_duration(&self.spec.duration).ok().filter(|_| !self.spec.duration.is_empty())
    }

    /// Why something is not done now.
    pub(super) fn why(&self, guard: Guard, field: &'static str, frees: Frees) -> Why {
        Why { guard, object: self.reference(), field: field.into(), since: None, frees }
    }
}

impl ExperimentService {
    /// The view of a frame.
    pub fn read(frame: &Frame) -> Self {
        let meta = &frame.meta;
        let text = |key: &str| meta.annotations.get(key).map_or("", String::as_str).into();
        ExperimentService {
            name: Arc::clone(&meta.name),
            uid: meta.uid,
            version: meta.version,
            is_deleting: meta.deleting.is_some(),
            experiment: text(annotation::EXPERIMENT_NAME),
            template: text(annotation::EXPERIMENT_TEMPLATE_NAME),
        }
    }
}
