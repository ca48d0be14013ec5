//! How are objects read and written, and what does a refusal say to a person?

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
pub use gradus_controller::cluster::ResourcePart;
use gradus_controller::one_line::one_line;
use gradus_engine::decision::Kind;
use http::{Method, Request, header};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::Value;
use thiserror::Error;

/// Who owns the fields we write, as `managedFields` shows it.
const FIELD_MANAGER: &str = "kubectl-argo-rollouts";

/// How soon a broken watch is tried again: somebody is looking.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A cluster, and the namespace that is meant.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    server: String,
    limit: Option<Duration>,
    /// The namespace that flags or the kubeconfig name.
    pub namespace: String,
}

/// Why something could not be read or written, sorted by what a person does about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// There is no such object.
    #[error("{0}")]
    NotFound(String),
    /// Somebody else changed it meanwhile.
    #[error("{0}")]
    Conflict(String),
    /// The server says no, in its words.
    #[error("{0}")]
    Denied(String),
    /// The server does not know who we are.
    #[error("the server {server} does not accept your credentials: {message}")]
    Unauthorized {
        /// Where.
        server: String,
        /// In the server's words.
        message: String,
    },
    /// There is no server.
    #[error(
        "cannot reach the API server {server}: {reason} (is the cluster up, and the context right?)"
    )]
    Unreachable {
        /// Where.
        server: String,
        /// What went wrong.
        reason: String,
    },
}

/// How a patch is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 7386.
    Merge,
    /// RFC 6902.
    Json,
}

/// What a watch tells.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// An object as it is now.
    Applied(Value),
    /// The name of an object that is gone.
    Deleted(String),
    /// The names of everything there is; all of it was told before.
    Synced(Vec<String>),
}

impl Cluster {
    /// A cluster behind a client; a request may take so long.
    pub fn new(client: Client, namespace: String, server: String, limit: Option<Duration>) -> Self {
        Cluster { client, server, limit, namespace }
    }

    /// One object.
    pub async fn get(&self, kind: &Kind, name: &str) -> Result<Value, Refusal> {
        let path = self.path_of(kind, name)?;
        self.send(Method::GET, &path, None).await
    }

    /// All objects of a kind in the namespace; `selector` as the API server reads it.
    pub async fn list(&self, kind: &Kind, selector: &str) -> Result<Vec<Value>, Refusal> {
        let query = match selector {
            "" => String::new(),
            selector => format!("?labelSelector={}", escaped(selector)),
        };
        self.list_at(kind, &format!("{}{query}", self.path(kind))).await
    }

    /// The objects of a kind that a watch of this scope would tell of.
    pub async fn list_scope(&self, kind: &Kind, scope: Scope<'_>) -> Result<Vec<Value>, Refusal> {
        let place = match scope.everywhere {
            true => collection(kind, ""),
            false => self.path(kind),
        };
        let query = scope.fields().map(|fields| format!("?fieldSelector={}", escaped(&fields)));
        self.list_at(kind, &(place + &query.unwrap_or_default())).await
    }

    async fn list_at(&self, kind: &Kind, path: &str) -> Result<Vec<Value>, Refusal> {
        let mut list = self.send(Method::GET, path, None).await?;
        let Value::Array(mut items) = list["items"].take() else { return Ok(Vec::new()) };
        for item in &mut items {
            // Items of a list do not say what they are.
            item["apiVersion"] = kind.api_version().into();
            item["kind"] = (*kind.name).into();
        }
        Ok(items)
    }

    /// Makes an object in a namespace, with fields that the server does not know refused.
    pub async fn create(
        &self,
        kind: &Kind,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, Refusal> {
        let path = format!("{}?fieldValidation=Strict", collection(kind, namespace));
        self.send(Method::POST, &path, Some((JSON, object))).await
    }

    /// Puts an object as a whole in place of the one it was made from.
    pub async fn replace(&self, kind: &Kind, name: &str, object: &Value) -> Result<Value, Refusal> {
        let path = self.path_of(kind, name)?;
        self.send(Method::PUT, &path, Some((JSON, object))).await
    }

    /// Changes a part of an object.
    pub async fn patch(
        &self,
        kind: &Kind,
        name: &str,
        part: ResourcePart,
        patch: (PatchKind, &Value),
    ) -> Result<Value, Refusal> {
        let subresource = if part == ResourcePart::Status { "/status" } else { "" };
        let path = self.path_of(kind, name)? + subresource;
        let content = match patch.0 {
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::Json => "application/json-patch+json",
        };
        self.send(Method::PATCH, &path, Some((content, patch.1))).await
    }

    /// Tells of all objects of a kind from now on; of one name alone, if one is given.
    pub fn watch(
        &self,
        kind: &Kind,
        scope: Scope<'_>,
    ) -> BoxStream<'static, Result<WatchEvent, Refusal>> {
        let resource = ApiResource {
            group: kind.group.to_string(),
            version: kind.version.to_string(),
            api_version: kind.api_version(),
            kind: kind.name.to_string(),
            plural: kind.plural.to_string(),
        };
        let client = self.client.clone();
        let api: Api<DynamicObject> = match scope.everywhere {
            true => Api::all_with(client, &resource),
            false => Api::namespaced_with(client, &self.namespace, &resource),
        };
        let mut config = watcher::Config::default();
        if let Some(fields) = scope.fields() {
            config = config.fields(&fields);
        }
        let cluster = self.clone();
        let events =
            watcher(api, config).backoff(Steady).map_err(move |error| cluster.not_watched(&error));
        let mut listed = Vec::new();
        events
            .try_filter_map(move |event| {
                let told = tell(event, &mut listed);
                async move { Ok(told) }
            })
            .boxed()
    }

    fn not_watched(&self, error: &watcher::Error) -> Refusal {
        use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
        match error {
            InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
                self.refusal(error)
            }
            other => Refusal::Unreachable { server: self.server.clone(), reason: one_line(other) },
        }
    }

    /// The path of one object. A name that is none would be the path of something else.
    fn path_of(&self, kind: &Kind, name: &str) -> Result<String, Refusal> {
        match wrong_with(name) {
            Some(wrong) => {
                Err(Refusal::Denied(format!("invalid resource name {name:?}: it {wrong}")))
            }
            None => Ok(format!("{}/{}", self.path(kind), escaped(name))),
        }
    }

    fn path(&self, kind: &Kind) -> String {
        collection(kind, &self.namespace)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, Refusal> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = match method {
            Method::GET => path.to_owned(),
            _ => format!("{path}{separator}fieldManager={FIELD_MANAGER}"),
        };
        let mut request = Request::builder().method(method).uri(path);
        let mut bytes = Vec::new();
        if let Some((content, body)) = body {
            request = request.header(header::CONTENT_TYPE, content);
            bytes = body.to_string().into_bytes();
        }
        let request = request.body(bytes).map_err(|error| Refusal::Denied(error.to_string()))?;
        let answer = self.client.request::<Value>(request);
        let answer = match self.limit {
            None => answer.await,
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => {
                    let reason = format!("no answer within {} s", limit.as_secs());
                    return Err(Refusal::Unreachable { server: self.server.clone(), reason });
                }
            },
        };
        answer.map_err(|error| self.refusal(&error))
    }

    fn refusal(&self, error: &kube::Error) -> Refusal {
        let kube::Error::Api(status) = error else {
            let reason = one_line(error);
            return Refusal::Unreachable { server: self.server.clone(), reason };
        };
        let message = match status.message.trim() {
            "" => format!("the server answered {}", status.code),
            // What a server without this kind says.
            "404 page not found" => "the server could not find the requested resource".to_owned(),
            message => message.to_owned(),
        };
        match status.code {
            401 => Refusal::Unauthorized { server: self.server.clone(), message },
            404 => Refusal::NotFound(message),
            409 => Refusal::Conflict(message),
            _ => Refusal::Denied(message),
        }
    }
}

/// The same pause before every attempt.
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(TRY_AGAIN)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}

/// Which objects a list or a watch is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope<'n> {
    /// Only those of this name.
    pub name: Option<&'n str>,
    /// Those of all namespaces.
    pub everywhere: bool,
}

impl<'n> Scope<'n> {
    /// One object of the namespace.
    pub fn named(name: &'n str) -> Self {
        Scope { name: Some(name), everywhere: false }
    }

    fn fields(self) -> Option<String> {
        self.name.map(|name| format!("metadata.name={name}"))
    }
}

const JSON: &str = "application/json";

/// The path of all objects of a kind in a namespace, or in none.
fn collection(kind: &Kind, namespace: &str) -> String {
    let (group, version, plural) = (&kind.group, &kind.version, &kind.plural);
    let root = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    match namespace {
        "" => format!("{root}/{plural}"),
        namespace => format!("{root}/namespaces/{namespace}/{plural}"),
    }
}

/// Why a text can be the name of no object, in one path.
fn wrong_with(name: &str) -> Option<String> {
    match name {
        "" => Some("may not be empty".to_owned()),
        "." | ".." => Some(format!("may not be '{name}'")),
        _ if name.contains('%') => Some("may not contain '%'".to_owned()),
        _ => name.rsplit_once('/').map(|(_, last)| match last {
            "" => "may not contain '/'".to_owned(),
            last => format!("may not contain '/'\n  write the name alone: {last}"),
        }),
    }
}

fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn tell(event: watcher::Event<DynamicObject>, listed: &mut Vec<String>) -> Option<WatchEvent> {
    let name = |object: &DynamicObject| object.metadata.name.clone().unwrap_or_default();
    let applied =
        |object: &DynamicObject| serde_json::to_value(object).ok().map(WatchEvent::Applied);
    match event {
        watcher::Event::Init => {
            listed.clear();
            None
        }
        watcher::Event::InitApply(object) => {
            listed.push(name(&object));
            applied(&object)
        }
        watcher::Event::InitDone => Some(WatchEvent::Synced(std::mem::take(listed))),
        watcher::Event::Apply(object) => applied(&object),
        watcher::Event::Delete(object) => Some(WatchEvent::Deleted(name(&object))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_engine::kinds;

    #[test]
    fn paths_are_the_api_servers() {
        let cases = [
            (kinds::ROLLOUT, "shop", "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts"),
            (kinds::POD, "shop", "/api/v1/namespaces/shop/pods"),
            (kinds::DEPLOYMENT, "", "/apis/apps/v1/deployments"),
        ];
        for (kind, namespace, expected) in cases {
            assert_eq!(collection(&kind, namespace), expected);
        }
        let names = [
            ("web", None),
            ("", Some("may not be empty")),
            ("..", Some("may not be '..'")),
            ("a%2Fb", Some("may not contain '%'")),
            ("../web", Some("may not contain '/'\n  write the name alone: web")),
        ];
        for (name, expected) in names {
            assert_eq!(wrong_with(name).as_deref(), expected, "{name}");
        }
        assert_eq!(escaped("app=web,tier in (a)"), "app%3Dweb%2Ctier%20in%20%28a%29");
    }
}
