//! What does a scenario begin on? A cluster with the custom kinds of its controller, made once for
//! many scenarios, and then with the scenario's own objects.

use std::sync::Arc;

use gradus_simkube::behave::Behaviours;
use gradus_simkube::kinds::KindId;
use gradus_simkube::object::Key;
use gradus_simkube::request::Request;
use gradus_simkube::{ApiError, Place, SimCluster};
use jiff::Timestamp;
use serde_json::Value;

use super::watches::{self, Feed};
use crate::deeds::{NAMESPACE, PERSON};
use crate::scenario::Scenario;
use crate::subject::{Erased, Gradus, Subject};

/// When every scenario begins.
const BEGINNING: &str = "2026-01-01T00:00:00Z";

/// A cluster that knows the kinds of a controller, and nothing else.
#[derive(Clone, Debug)]
pub struct Ground {
    cluster: SimCluster,
    kind: KindId,
    start: Timestamp,
    subject: Erased,
    feeds: Vec<Feed>,
}

/// A scenario on a cluster that is ready for it: made once, run many times.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(super) scenario: Arc<Scenario>,
    pub(super) cluster: SimCluster,
    pub(super) rollout: Place,
    pub(super) start: Timestamp,
    pub(super) subject: Erased,
    /// The watches of the controller before they have shown anything.
    pub(super) feeds: Vec<Feed>,
}

/// Why a scenario cannot begin.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {object} is refused: {source}")]
pub struct Unprepared {
    what: String,
    object: String,
    source: ApiError,
}

impl Ground {
    /// The ground of scenarios about Rollouts.
    pub fn new() -> Result<Self, Unprepared> {
        Ground::about::<Gradus>()
    }

    /// Installs the kinds of a controller.
    pub fn about<S: Subject>() -> Result<Self, Unprepared> {
        let start: Timestamp = BEGINNING.parse().expect("the beginning is a time");
        let mut cluster = SimCluster::new(Behaviours::default(), start);
        for (name, definition) in S::definitions() {
            let request = Request::create(KindId::CUSTOM_RESOURCE_DEFINITION, "", definition);
            cluster.call(&request, start).map_err(|source| Unprepared {
                what: "the definitions".to_owned(),
                object: name.to_owned(),
                source,
            })?;
        }
        cluster.settle(start);
        let main = S::ENGINES.main_kind();
        let kind = cluster.kinds().by_group(&main.group, &main.name);
        let kind = kind.expect("the CRD of the subject was just installed");
        let subject = Erased::of::<S>();
        let feeds = watches::feeds(subject.engines, &cluster);
        Ok(Ground { cluster, kind, start, subject, feeds })
    }

    /// The cluster itself.
    #[cfg(test)]
    pub(crate) fn cluster(&self) -> &SimCluster {
        &self.cluster
    }

    /// Prepares a scenario: checks that its objects are accepted.
    pub fn prepare(&self, scenario: Scenario) -> Result<Prepared, Unprepared> {
        let start = self.start;
        let mut cluster = self.cluster.clone();
        cluster.set_behaviours(scenario.images.clone());
        for object in &scenario.objects {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
            let refused = |source: ApiError| Unprepared {
                what: format!("scenario {}", scenario.name),
                object: kind.clone(),
                source,
            };
            let id = cluster.kinds().by_name(&version, &kind);
            let id = id.ok_or_else(|| refused(ApiError::bad_request("no such kind")))?;
            let namespace = if cluster.kinds().get(id).namespaced { NAMESPACE } else { "" };
            let mut request = Request::create(id, namespace, object.clone());
            request.options.user = PERSON.into();
            cluster.call(&request, start).map_err(refused)?;
        }
        let rollout = Place { kind: self.kind, key: Key::new(NAMESPACE, scenario.rollout_name()) };
        let (subject, feeds) = (self.subject, self.feeds.clone());
        Ok(Prepared { scenario: Arc::new(scenario), cluster, rollout, start, subject, feeds })
    }
}

impl Prepared {
    /// Prepares a scenario about a Rollout. Whoever has many makes the [`Ground`] once.
    pub fn new(scenario: Scenario) -> Result<Self, Unprepared> {
        Prepared::about::<Gradus>(scenario)
    }

    /// Prepares a scenario about an object of this kind.
    pub fn about<S: Subject>(scenario: Scenario) -> Result<Self, Unprepared> {
        Ground::about::<S>()?.prepare(scenario)
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The cluster as the scenario finds it.
    pub(crate) fn cluster(&self) -> &SimCluster {
        &self.cluster
    }

    /// The object the scenario is about.
    pub(crate) fn rollout(&self) -> &Place {
        &self.rollout
    }

    /// The controller the scenario is about.
    pub(crate) fn subject(&self) -> Erased {
        self.subject
    }

    /// When the scenario begins.
    pub(crate) fn start(&self) -> Timestamp {
        self.start
    }
}
