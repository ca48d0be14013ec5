//! Who asked the API server for what, and how often? Read from its audit log, which the server
//! writes before it answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::PathBuf,
};

use jiff::Timestamp;
use serde::Deserialize;
use thiserror::Error;

use crate::plane::User;

/// Why the log could not be read.
#[derive(Debug, Error)]
pub enum AuditError {
    #[error("audit log {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("audit log {path}: expected one JSON event in each line: {source}")]
    Line { path: PathBuf, source: serde_json::Error },
}

/// The audit log from a certain moment on.
#[derive(Clone, Debug)]
pub struct Audit {
    path: PathBuf,
    offset: u64,
}

/// One request as the server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub user: String,
    pub verb: String,
    /// The API group; empty for the core's.
    pub group: String,
    /// `rollouts`, `rollouts/status`; a path for what is no resource.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    /// HTTP status of the answer; 0 if there was none.
    pub code: u16,
    /// When it came in.
    pub received: Timestamp,
    /// When it was answered.
    pub at: Timestamp,
}

impl Audit {
    /// Only what comes after this call.
    pub fn from_now(path: PathBuf) -> Result<Self, AuditError> {
        match std::fs::metadata(&path) {
            Ok(metadata) => Ok(Self { offset: metadata.len(), path }),
            Err(source) => Err(AuditError::File { path, source }),
        }
    }

    /// The requests so far, each once, in the order in which they were answered.
    pub fn requests(&self) -> Result<Vec<Request>, AuditError> {
        self.parse(requests)
    }

    /// The requests so far in one namespace; much quicker where many namespaces are busy.
    pub fn requests_in(&self, namespace: &str) -> Result<Vec<Request>, AuditError> {
        let mark = format!("\"namespace\":\"{namespace}\"");
        self.parse(|text| {
            let lines = text.split_inclusive('\n');
            requests(&lines.filter(|line| line.contains(&mark)).collect::<String>())
        })
    }

    fn parse(
        &self,
        parse: impl FnOnce(&str) -> Result<Vec<Request>, serde_json::Error>,
    ) -> Result<Vec<Request>, AuditError> {
        let path = || self.path.clone();
        let text = self.text().map_err(|source| AuditError::File { path: path(), source })?;
        parse(&text).map_err(|source| AuditError::Line { path: path(), source })
    }

    /// Whole lines. The moment may lie within a line that the server was just writing: its request
    /// came before.
    fn text(&self) -> io::Result<String> {
        let mut log = BufReader::new(File::open(&self.path)?);
        if let Some(last_before) = self.offset.checked_sub(1) {
            log.seek(SeekFrom::Start(last_before))?;
            log.skip_until(b'\n')?;
        }
        let mut text = String::new();
        log.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Request {
    pub fn is_by(&self, user: User) -> bool {
        self.user == user.name()
    }

    /// A watch is begun again every few minutes, whatever happens in the cluster.
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// The Lease says who leads, and is renewed whatever happens in the cluster.
    pub fn is_of_election(&self) -> bool {
        self.resource == "leases"
    }

    pub fn is_write(&self) -> bool {
        ["create", "update", "patch", "delete", "deletecollection"].contains(&self.verb.as_str())
    }
}

/// How often each object was asked for what.
pub fn tally<'a>(requests: impl IntoIterator<Item = &'a Request>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for Request { verb, resource, namespace, name, .. } in requests {
        *counts.entry(format!("{verb} {resource} {namespace}/{name}")).or_default() += 1;
    }
    counts
}

/// The part of an audit event that we read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: EventUser,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct EventUser {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    #[serde(rename = "apiGroup")]
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

/// A watch has two events, at its start and at its end; each request counts at its first. The last
/// line is left out while the server is still writing it.
fn requests(text: &str) -> Result<Vec<Request>, serde_json::Error> {
    let mut seen = BTreeSet::new();
    let mut list = Vec::new();
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let event: Event = serde_json::from_str(line)?;
        if seen.insert(event.audit_id.clone()) {
            list.push(request(event));
        }
    }
    Ok(list)
}

fn request(event: Event) -> Request {
    let ObjectRef { api_group, resource, subresource, namespace, name } = event.object_ref;
    let resource = match (resource.as_str(), subresource.as_str()) {
        ("", _) => event.request_uri.split('?').next().unwrap_or_default().to_owned(),
        (_, "") => resource,
        (_, below) => format!("{resource}/{below}"),
    };
    Request {
        user: event.user.username,
        verb: event.verb,
        group: api_group,
        resource,
        namespace,
        name,
        code: event.response_status.code,
        received: event.request_received_timestamp,
        at: event.stage_timestamp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;
    use serde_json::json;

    fn line(id: &str, stage: &str, verb: &str, object: serde_json::Value) -> String {
        let event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": id, "stage": stage, "verb": verb,
            "requestURI": "/somewhere?limit=500",
            "user": { "username": "person", "groups": ["system:masters"] },
            "objectRef": object,
            "responseStatus": { "metadata": {}, "code": 200 },
            "requestReceivedTimestamp": "2026-11-15T23:38:16.340000Z",
            "stageTimestamp": "2026-11-15T23:38:16.343154Z",
        });
        format!("{event}\n")
    }

    #[test]
    fn each_request_counts_once_under_its_resource() {
        let rollout = json!({ "resource": "rollouts", "namespace": "a", "name": "x" });
        let status = json!({ "resource": "rollouts", "subresource": "status", "name": "x" });
        let text = [
            line("1", "ResponseStarted", "watch", rollout.clone()),
            line("2", "ResponseComplete", "patch", status.clone()),
            line("3", "ResponseComplete", "patch", status),
            line("1", "ResponseComplete", "watch", rollout),
            line("4", "ResponseComplete", "get", json!({})),
        ]
        .concat();
        let counts = tally(&requests(&text).unwrap());
        let seen: Vec<_> = counts.iter().map(|(what, count)| (what.as_str(), *count)).collect();
        let expected =
            [("get /somewhere /", 1), ("patch rollouts/status /x", 2), ("watch rollouts a/x", 1)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_line_that_is_still_being_written_waits() {
        let whole = line("1", "ResponseComplete", "get", json!({ "resource": "pods" }));
        let text = format!("{whole}{}", &whole[..whole.len() / 2]);
        assert_eq!(requests(&text).unwrap().len(), 1);
    }

    #[test]
    fn a_line_that_was_being_written_came_before() {
        let folder = Folder::create("audit").unwrap();
        let path = folder.path().join("audit.log");
        let get = |id: &str| line(id, "ResponseComplete", "get", json!({ "resource": "pods" }));
        let (first, second) = (get("1"), get("2"));
        let cases = [
            ("nothing is there yet", 0, 2),
            ("within the first line", first.len() / 2, 1),
            ("its last letter is missing", first.len() - 1, 1),
            ("between two lines", first.len(), 1),
            ("within the second line", first.len() + second.len() / 2, 0),
        ];
        for (what, written, expected) in cases {
            let whole = format!("{first}{second}");
            std::fs::write(&path, &whole[..written]).unwrap();
            let audit = Audit::from_now(path.clone()).unwrap();
            std::fs::write(&path, &whole).unwrap();
            assert_eq!(audit.requests().unwrap().len(), expected, "{what}");
        }
    }

    #[test]
    fn a_line_that_is_no_event_is_an_error() {
        assert!(requests("{}\n").is_err());
    }
}
