//! What one phase of the bench used: time, processors, and requests by the server's own log.

use std::{
    collections::BTreeMap,
    io,
    time::{Duration, Instant},
};

use super::side::Running;
use crate::{
    Failure,
    audit::{Audit, Request},
    plane::{Plane, User},
    usage::{Usage, machine_cpu},
};

/// So many times it is waited for what still comes: Events are posted at a rate of their own, and a
/// thousand Rollouts have thousands of them.
const PATIENCE: usize = 30;

/// Between the beginning of a phase and its end.
pub(super) struct Meter<'p> {
    plane: &'p Plane,
    began: Instant,
    cpu: Duration,
    servers: Duration,
    machine: Duration,
    audit: Audit,
}

/// What it came to.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// Without the time that was waited for what still came.
    pub took: Duration,
    /// Of the controller.
    pub cpu: Duration,
    /// Of etcd, the API server and the built-in controllers.
    pub servers: Duration,
    /// Of everything on this machine, whoever else works on it.
    pub machine: Duration,
    /// Of everybody.
    pub requests: Vec<Request>,
}

impl<'p> Meter<'p> {
    pub fn start(plane: &'p Plane, running: &Running) -> Result<Self, Failure> {
        Ok(Self { cpu: running.usage()?.cpu, ..Self::start_anew(plane)? })
    }

    /// For a controller that is started within the phase.
    pub fn start_anew(plane: &'p Plane) -> Result<Self, Failure> {
        Ok(Self {
            plane,
            began: Instant::now(),
            cpu: Duration::ZERO,
            servers: servers(plane)?,
            machine: machine_cpu()?,
            audit: Audit::from_now(plane.audit_log())?,
        })
    }

    /// Ends the phase, and waits for what still comes of it.
    pub async fn read(self, running: &Running, settles: Duration) -> Result<Measured, Failure> {
        let took = self.began.elapsed();
        let (servers, machine) =
            (servers(self.plane)? - self.servers, machine_cpu()? - self.machine);
        let user = running.side().user();
        let mut requests = self.audit.requests()?;
        for _ in 0..PATIENCE {
            tokio::time::sleep(settles).await;
            let known = std::mem::replace(&mut requests, self.audit.requests()?);
            if unrest(&known, user) == unrest(&requests, user) {
                break;
            }
        }
        let cpu = running.usage()?.cpu.saturating_sub(self.cpu);
        Ok(Measured { took, cpu, servers, machine, requests })
    }
}

impl Measured {
    /// Writes of a user that were done, Events and the Lease apart, by verb and resource.
    pub fn writes(&self, user: User) -> BTreeMap<String, usize> {
        let is_counted = |one: &&Request| {
            one.is_write() && one.resource != EVENTS && !one.is_of_election() && one.code < 300
        };
        self.tally(user, is_counted)
    }

    /// Requests of a user beside watches and the Lease.
    pub fn unrest(&self, user: User) -> BTreeMap<String, usize> {
        unrest(&self.requests, user)
    }

    /// Events that were delivered.
    pub fn events(&self, user: User) -> usize {
        let is_event = |one: &&Request| one.resource == EVENTS && one.is_write() && one.code < 300;
        self.tally(user, is_event).values().sum()
    }

    fn tally(&self, user: User, counts: impl Fn(&&Request) -> bool) -> BTreeMap<String, usize> {
        tally(&self.requests, user, counts)
    }
}

fn unrest(requests: &[Request], user: User) -> BTreeMap<String, usize> {
    tally(requests, user, |one| !one.is_watch() && !one.is_of_election())
}

fn tally(
    requests: &[Request],
    user: User,
    counts: impl Fn(&&Request) -> bool,
) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for one in requests.iter().filter(|one| one.is_by(user)).filter(counts) {
        *found.entry(format!("{} {}", one.verb, one.resource)).or_default() += 1;
    }
    found
}

const EVENTS: &str = "events";

fn servers(plane: &Plane) -> io::Result<Duration> {
    plane.pids()?.into_iter().map(|(_, pid)| Ok(Usage::of(pid)?.cpu)).sum()
}
