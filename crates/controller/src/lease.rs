//! Leader election: of several controllers one acts. The Lease is Argo Rollouts' own, so that the
//! two never act side by side.
//!
//! [`election`] is the protocol, without a clock and without a server. Here it is carried out, and
//! its result stands at the door of every write.

pub mod election;

use std::time::Duration;

use gradus_engine::ask::Class;
use gradus_engine::decision::{Expect, Kind, ObjectRef, Op};
use gradus_engine::frame::Frame;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::clock::Stopwatch;
use crate::cluster::{
    Cluster, Lane, Listing, PostedEvent, ResourcePart, Write, WriteError, Written,
};
use crate::random;
use election::{Candidate, LeadUntil, LeaseDurations, LeaseRecord, NextTry, TryFailed};

#[cfg(test)]
mod tests;

/// The Lease of coordination.k8s.io.
pub const LEASE: Kind = Kind::new("coordination.k8s.io", "v1", "Lease", "leases");

/// An election to take part in.
#[derive(Clone, Debug)]
pub struct Election {
    /// The Lease that says who leads.
    pub lease: ObjectRef,
    /// This process.
    pub candidate: Candidate,
}

impl Election {
    /// The election of Argo Rollouts' controllers in this namespace, of one instance.
    pub fn of_rollouts(
        namespace: &str,
        instance_id: &str,
        durations: LeaseDurations,
    ) -> Result<Self, WriteError> {
        let suffix = if instance_id.is_empty() { "" } else { "-" };
        let name = format!("{LEASE_NAME}{suffix}{instance_id}");
        let lease = ObjectRef { kind: LEASE, namespace: namespace.into(), name: name.into() };
        Ok(Election { lease, candidate: Candidate::new(identity()?, durations) })
    }
}

/// The Lease of Argo Rollouts' controllers.
const LEASE_NAME: &str = "argo-rollouts-controller-lock";

/// The namespace of an installation that does not say otherwise.
const DEFAULT_NAMESPACE: &str = "argo-rollouts";

/// Where Kubernetes tells a pod its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace this process belongs to: its pod's, or else that of an installation.
pub fn own_namespace() -> String {
    let given = std::env::var("POD_NAMESPACE").ok();
    let mounted = || std::fs::read_to_string(NAMESPACE_FILE).ok();
    let known = given.filter(|name| !name.is_empty()).or_else(mounted);
    known.map_or_else(|| DEFAULT_NAMESPACE.to_owned(), |name| name.trim().to_owned())
}

/// Who this process is: its host, and a UUID that no other process has.
fn identity() -> Result<String, WriteError> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.or_else(|_| std::env::var("HOSTNAME")).unwrap_or_default();
    let random = random::bytes(16)?;
    Ok(format!("{}_{}", host.trim(), uuid(&random)))
}

/// A UUID of these sixteen bytes: of version 4, a random one.
fn uuid(random: &[u8]) -> String {
    let digits = |(at, byte): (usize, &u8)| {
        let byte = match at {
            6 => byte & 0x0f | 0x40,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        let dash = if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
        format!("{dash}{byte:02x}")
    };
    random.iter().enumerate().map(digits).collect()
}

/// Does this process lead? Everybody who writes holds a copy.
#[derive(Clone, Debug)]
pub struct Leadership {
    until: Option<watch::Receiver<Option<LeadUntil>>>,
    stopwatch: Stopwatch,
}

impl Leadership {
    /// Without an election: this process acts alone.
    pub fn alone(stopwatch: Stopwatch) -> Self {
        Leadership { until: None, stopwatch }
    }

    /// By election: nobody leads until the sender says so.
    pub fn elected(stopwatch: Stopwatch) -> (watch::Sender<Option<LeadUntil>>, Self) {
        let (sender, until) = watch::channel(None);
        (sender, Leadership { until: Some(until), stopwatch })
    }

    /// May this process act now? Looked up at each write: a process that was stopped for a while
    /// must not act on what it knew before.
    pub fn holds(&self) -> bool {
        self.until.as_ref().is_none_or(|until| {
            until.borrow().is_some_and(|until| until.holds_at(self.stopwatch.moment()))
        })
    }

    /// Waits until the lead was gained, renewed or lost.
    pub async fn changed(&mut self) {
        let has_ended = match &mut self.until {
            Some(until) => until.changed().await.is_err(),
            None => true,
        };
        if has_ended {
            std::future::pending().await
        }
    }
}

/// A cluster that only the leader writes to. Everybody reads.
#[derive(Clone)]
pub struct LedCluster<C> {
    inner: C,
    leadership: Leadership,
}

impl<C> LedCluster<C> {
    /// The door to `inner`, open while this process leads.
    pub fn new(inner: C, leadership: Leadership) -> Self {
        LedCluster { inner, leadership }
    }

    fn enter(&self, what: &str) -> Result<(), WriteError> {
        if self.leadership.holds() {
            return Ok(());
        }
        Err(WriteError {
            class: Class::Unreachable,
            message: format!("{what} was not written: this controller is not the leader"),
            retry_after_secs: None,
        })
    }
}

impl<C: Cluster> Cluster for LedCluster<C> {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        self.enter(&write.target.to_string())?;
        self.inner.write(write).await
    }

    async fn read(&self, target: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        self.inner.read(target).await
    }

    async fn read_whole(&self, target: &ObjectRef) -> Result<Option<Value>, WriteError> {
        self.inner.read_whole(target).await
    }

    async fn permit(&self) -> Result<(), WriteError> {
        self.enter("what is outside the cluster")?;
        self.inner.permit().await
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Frame>, WriteError> {
        self.inner.list(listing).await
    }

    async fn post(&self, event: &PostedEvent) -> Result<(), WriteError> {
        self.enter("an Event")?;
        self.inner.post(event).await
    }
}

/// Takes part in the election until `stop` is ready, then gives the Lease back. `cluster` is the
/// one door that stays open to a standby.
pub async fn elect<C: Cluster>(
    cluster: &C,
    lease: &ObjectRef,
    mut candidate: Candidate,
    stopwatch: Stopwatch,
    lead: watch::Sender<Option<LeadUntil>>,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut log = ElectionLog::default();
    loop {
        let now = stopwatch.moment();
        candidate.expire(now);
        let next = candidate.next(now);
        let wait = if let NextTry::Wait(at) = &next { Some(*at) } else { None };
        let step = async {
            match wait {
                Some(at) => stopwatch.sleep_until(at).await,
                None => log.tried(take(cluster, lease, &mut candidate, next, &stopwatch).await),
            }
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            () = step => {}
        }
        lead.send_replace(candidate.leads_until());
        log.seen(&candidate, lease);
    }
    lead.send_replace(None);
    if let Some((record, version)) = candidate.release(stopwatch.moment()) {
        match cluster.write(lease_write(lease, &record, version)).await {
            Ok(_) => tracing::info!(%lease, "released the leader election lease"),
            Err(error) => tracing::warn!(%lease, %error, "could not release the lease"),
        }
    }
}

/// Carries one try out.
async fn take<C: Cluster>(
    cluster: &C,
    lease: &ObjectRef,
    candidate: &mut Candidate,
    next: NextTry,
    stopwatch: &Stopwatch,
) -> Result<(), WriteError> {
    let sent = stopwatch.moment();
    let (record, write) = match next {
        NextTry::Wait(_) => return Ok(()),
        NextTry::Read => {
            let read = cluster.read(lease).await;
            let now = stopwatch.moment();
            return match read {
                Ok(found) => {
                    candidate.read(found.map(|frame| (record_of(&frame), frame.meta.version)), now);
                    Ok(())
                }
                Err(error) => {
                    candidate.failed(TryFailed::NoAnswer, now);
                    Err(error)
                }
            };
        }
        NextTry::Create(record) => {
            let write = lease_create(lease, &record);
            (record, write)
        }
        NextTry::Update(record, version) => {
            let write = lease_write(lease, &record, version);
            (record, write)
        }
    };
    let is_create = matches!(write.op, Op::Create(_));
    let written = cluster.write(write).await;
    let now = stopwatch.moment();
    match written {
        Ok(Written { version, .. }) => {
            candidate.written(record, version, sent, now);
            Ok(())
        }
        Err(error) => {
            let is_overtaken = match error.class {
                Class::Stale | Class::Exists => true,
                // Of a create it is the namespace that does not exist.
                Class::Gone => !is_create,
                _ => false,
            };
            if is_overtaken {
                candidate.failed(TryFailed::Overtaken, now);
                return Ok(());
            }
            candidate.failed(TryFailed::NoAnswer, now);
            Err(if error.class == Class::Gone { without_namespace(error, lease) } else { error })
        }
    }
}

/// A Lease cannot be created where there is no such namespace: what helps is said.
fn without_namespace(error: WriteError, lease: &ObjectRef) -> WriteError {
    let message = format!(
        "{}; create the namespace {}, or name another one in POD_NAMESPACE, or run one controller \
         with --leader-elect=false",
        error.message, lease.namespace
    );
    WriteError { message, ..error }
}

/// What was last logged of the election: each change is one line.
#[derive(Default)]
struct ElectionLog {
    leads: bool,
    holder: Option<String>,
    problem: Option<String>,
}

impl ElectionLog {
    fn tried(&mut self, outcome: Result<(), WriteError>) {
        let problem = outcome.err().map(|error| error.message);
        if let Some(message) = problem.as_ref().filter(|_| self.problem != problem) {
            tracing::warn!(error = message, "leader election: cannot use the lease; trying again");
        }
        self.problem = problem;
    }

    fn seen(&mut self, candidate: &Candidate, lease: &ObjectRef) {
        let leads = candidate.leads_until().is_some();
        match (self.leads, leads) {
            (false, true) => tracing::info!(%lease, "became the leader"),
            (true, false) => tracing::warn!(%lease, "lost the lease: no longer the leader"),
            _ => {}
        }
        self.leads = leads;
        let holder = candidate.holder().filter(|holder| !leads && !holder.is_empty());
        if holder != self.holder.as_deref() {
            if let Some(holder) = holder {
                tracing::info!(%lease, holder, "standing by: another controller leads");
            }
            self.holder = holder.map(str::to_owned);
        }
    }
}

fn lease_create(lease: &ObjectRef, record: &LeaseRecord) -> Write {
    let body = json!({
        "apiVersion": lease.kind.api_version(),
        "kind": &lease.kind.name,
        "metadata": { "name": &*lease.name, "namespace": &*lease.namespace },
        "spec": spec_of(record),
    });
    let op = Op::Create(body.into());
    let (target, lane) = (lease.clone(), Lane::Urgent);
    Write { target, part: ResourcePart::Main, op, expect: Expect::Nothing, lane }
}

fn lease_write(lease: &ObjectRef, record: &LeaseRecord, version: u64) -> Write {
    let op = Op::Merge(json!({ "spec": spec_of(record) }).into());
    let (target, lane) = (lease.clone(), Lane::Urgent);
    Write { target, part: ResourcePart::Main, op, expect: Expect::Version(version), lane }
}

fn spec_of(record: &LeaseRecord) -> Value {
    // As client-go writes times there: microseconds, six digits.
    let micro = |at: Option<Timestamp>| at.map(|at| format!("{at:.6}"));
    json!({
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration.as_secs(),
        "acquireTime": micro(record.acquired),
        "renewTime": micro(record.renewed),
        "leaseTransitions": record.transitions,
    })
}

fn record_of(frame: &Frame) -> LeaseRecord {
    let spec = &frame.spec;
    let time = |field: &str| spec[field].as_str().and_then(|text| text.parse().ok());
    LeaseRecord {
        holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
        duration: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default()),
        acquired: time("acquireTime"),
        renewed: time("renewTime"),
        transitions: spec["leaseTransitions"]
            .as_i64()
            .and_then(|count| count.try_into().ok())
            .unwrap_or_default(),
    }
}
