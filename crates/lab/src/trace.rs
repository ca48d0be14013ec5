//! What happened in a run, in which order and when? A running hash for comparing, and records that
//! can be printed when they are asked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;

use crate::faults::{Fault, LeadFault};

/// What happened, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    hash: u64,
    count: usize,
    met: Met,
    records: Option<Vec<(Timestamp, Record)>>,
}

/// What has disturbed runs, by kind, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met(BTreeMap<&'static str, u64>);

impl Met {
    fn one(&mut self, kind: &'static str) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// Adds what another run has met.
    pub fn add(&mut self, other: &Met) {
        for (kind, times) in &other.0 {
            *self.0.entry(kind).or_default() += times;
        }
    }

    /// How often something of this kind was met.
    pub fn times(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> =
            self.0.iter().map(|(kind, times)| format!("{kind} {times}")).collect();
        write!(f, "{}", all.join(", "))
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// A worker of the cluster has handled an object.
    Worked(&'static str),
    /// The watch has shown a version of an object to the controller.
    Shown(Arc<str>, u64),
    /// The watch has lost an event; a list will show it.
    Lost(Arc<str>, u64),
    /// The watch falls silent before it shows this version, and all after it.
    Late(Arc<str>, u64),
    /// The watch shows this version twice.
    Twice(Arc<str>, u64),
    /// The watch shows the next event before this version.
    Overtaken(Arc<str>, u64),
    /// A request of ours takes its time.
    Slow,
    /// The controller has listed a kind.
    Listed(Cow<'static, str>),
    /// The controller has decided: so many changes, and whether a status.
    Decided(usize, bool),
    /// A write of ours was done and made this version.
    Wrote(&'static str, Arc<str>, u64),
    /// A write of ours was refused.
    Refused(&'static str, Arc<str>, String),
    /// The controller has read an object.
    Read(Arc<str>),
    /// The controller has told of an Event.
    Told(String, String),
    /// The controller wants the operator to hear something.
    Alarm(String),
    /// A fault has struck a write of ours.
    Struck(Fault),
    /// A read of ours has failed.
    Unread(Fault),
    /// Something has happened to the controller that leads.
    LeadStruck(LeadFault),
    /// This controller of two leads from now on,
    Leads(usize),
    /// or no longer.
    StandsBy(usize),
    /// The controller has started anew.
    Restarted,
    /// A person has done what this step of the scenario says.
    Acted(String),
    /// Somebody who is not part of the scenario is about to do something of this kind.
    Meddled(&'static str),
}

impl Record {
    /// The kind of disturbance that this is, if it is one.
    fn disturbance(&self) -> Option<&'static str> {
        match self {
            Record::Struck(fault) => Some(fault.name()),
            Record::LeadStruck(fault) => Some(fault.name()),
            Record::Leads(_) => Some("takeover"),
            Record::Unread(_) => Some("read failed"),
            Record::Lost(..) => Some("event lost"),
            Record::Late(..) => Some("events late"),
            Record::Twice(..) => Some("event doubled"),
            Record::Overtaken(..) => Some("event overtaken"),
            Record::Slow => Some("request slow"),
            Record::Meddled(kind) => Some(kind),
            _ => None,
        }
    }
}

impl Trace {
    /// An empty trace that keeps its hash alone.
    pub fn hashed() -> Self {
        Trace { hash: 0, count: 0, met: Met::default(), records: None }
    }

    /// An empty trace that keeps everything.
    pub fn printable() -> Self {
        Trace { records: Some(Vec::new()), ..Trace::hashed() }
    }

    /// Adds what has happened at `now`.
    pub fn note(&mut self, now: Timestamp, record: Record) {
        let mut hasher = Mixed(self.hash);
        (now.as_second(), now.subsec_nanosecond()).hash(&mut hasher);
        record.hash(&mut hasher);
        self.hash = hasher.0;
        self.count += 1;
        if let Some(kind) = record.disturbance() {
            self.met.one(kind);
        }
        if let Some(records) = &mut self.records {
            records.push((now, record));
        }
    }

    /// A number that is the same for equal traces.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many things have happened.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What has disturbed the run.
    pub fn met(&self) -> &Met {
        &self.met
    }

    /// Everything that was kept.
    pub fn records(&self) -> &[(Timestamp, Record)] {
        self.records.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (now, record) in self.records() {
            writeln!(f, "{now} {record}")?;
        }
        write!(f, "{} records, hash {:016x}", self.count, self.hash)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Record::Worked(who) => write!(f, "cluster: {who}"),
            Record::Shown(name, version) => write!(f, "watch: {name} at {version}"),
            Record::Lost(name, version) => write!(f, "watch: {name} at {version} is lost"),
            Record::Late(name, version) => write!(f, "watch: {name} at {version} is late"),
            Record::Twice(name, version) => write!(f, "watch: {name} at {version} comes twice"),
            Record::Overtaken(name, version) => {
                write!(f, "watch: {name} at {version} is overtaken")
            }
            Record::Slow => write!(f, "controller: a request takes its time"),
            Record::Listed(kind) => write!(f, "watch: {kind} listed"),
            Record::Decided(changes, status) => {
                write!(f, "controller: decided {changes} changes, status: {status}")
            }
            Record::Wrote(verb, name, version) => {
                write!(f, "controller: {verb} {name}, now at {version}")
            }
            Record::Refused(verb, name, message) => {
                write!(f, "controller: {verb} {name} refused: {message}")
            }
            Record::Read(name) => write!(f, "controller: reads {name}"),
            Record::Told(reason, message) => write!(f, "event: {reason}: {message}"),
            Record::Alarm(text) => write!(f, "alarm: {text}"),
            Record::Struck(fault) => write!(f, "fault: {fault:?}"),
            Record::Unread(fault) => write!(f, "fault of a read: {fault:?}"),
            Record::LeadStruck(fault) => write!(f, "fault: {}", fault.name()),
            Record::Leads(replica) => write!(f, "controller {replica}: leads"),
            Record::StandsBy(replica) => write!(f, "controller {replica}: stands by"),
            Record::Restarted => write!(f, "controller: starts"),
            Record::Acted(action) => write!(f, "person: {action}"),
            Record::Meddled(kind) => write!(f, "not of the scenario: {kind}"),
        }
    }
}

/// Word by word, rotated and multiplied: the same on every machine and in every release, which the
/// standard hasher is not.
struct Mixed(u64);

/// An odd number without a pattern: the golden ratio in 64 bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        let last = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.write_u64(last << 8 | rest.len() as u64);
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(23) ^ number).wrapping_mul(FACTOR);
        self.0 = mixed ^ mixed >> 32;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_time_and_content_all_count() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let trace = |records: &[(i64, Record)]| {
            let mut trace = Trace::hashed();
            for (second, record) in records {
                trace.note(at(*second), record.clone());
            }
            trace.hash()
        };
        let (a, b) = (Record::Restarted, Record::Worked("pods"));
        let plain = trace(&[(1, a.clone()), (2, b.clone())]);
        assert_eq!(plain, trace(&[(1, a.clone()), (2, b.clone())]));
        assert_ne!(plain, trace(&[(1, b.clone()), (2, a.clone())]), "order");
        assert_ne!(plain, trace(&[(1, a.clone()), (3, b)]), "time");
        assert_ne!(plain, trace(&[(1, a), (2, Record::Worked("sets"))]), "content");
    }
}
