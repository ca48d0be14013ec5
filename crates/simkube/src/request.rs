//! What can be asked of the API server, and what does it answer?

use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::Details;
use crate::kinds::{KindId, Kinds};
use crate::object::Object;

/// One request, as HTTP or a caller in the same process makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What to do.
    pub verb: Verb,
    /// With which kind (and version of it).
    pub kind: KindId,
    /// Where; empty for cluster-scoped kinds, or to list all namespaces.
    pub namespace: Arc<str>,
    /// With which object; empty for lists, and for creates that leave the name to the body.
    pub name: Arc<str>,
    /// Which side of it.
    pub subresource: Subresource,
    /// The object or the patch; null where there is none.
    pub body: Arc<Value>,
    /// Everything else.
    pub options: Options,
}

/// What to do. A watch is served from [`crate::SimCluster::events_after`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Make one.
    Create,
    /// Replace one.
    Update,
    /// Change one.
    Patch(PatchKind),
    /// Delete one.
    Delete,
    /// Delete many.
    DeleteCollection,
}

/// The language of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 7386.
    Merge,
    /// RFC 6902.
    Json,
    /// Kubernetes' own, for built-in kinds.
    Strategic,
}

/// A side of an object that is read and written by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself.
    #[default]
    None,
    /// `status`.
    Status,
    /// The number of replicas, in the words of autoscaling/v1.
    Scale,
    /// A polite deletion of a pod.
    Eviction,
    /// The choice of a node for a pod.
    Binding,
}

/// What becomes of an object's dependents when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

/// How strictly the body is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Unknown fields are dropped without a word.
    #[default]
    Ignore,
    /// Unknown fields are dropped and named in [`Reply::warnings`], duplicate ones only named.
    Warn,
    /// Unknown and duplicate fields are refused.
    Strict,
}

/// Everything about a request beyond verb, object and body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Answer as if, change nothing.
    pub dry_run: bool,
    /// Who asks: kept in the log of writes. Falls back to `field_manager`.
    pub user: Arc<str>,
    /// Under which name fields are written.
    pub field_manager: Arc<str>,
    /// How strictly the body is read.
    pub field_validation: FieldValidation,
    /// Create and update: fields that the body named more than once.
    pub duplicate_fields: Arc<[String]>,
    /// Delete: what becomes of the dependents.
    pub propagation: Option<Propagation>,
    /// Delete: only the object with this uid.
    pub expect_uid: Option<Arc<str>>,
    /// Delete, update and patch: only this version of the object.
    pub expect_version: Option<u64>,
    /// Delete: how long it may take to stop.
    pub grace_seconds: Option<i64>,
    /// List and delete collection: which labels.
    pub label_selector: Option<Arc<str>>,
    /// List and delete collection: which fields.
    pub field_selector: Option<Arc<str>>,
    /// List: at most so many.
    pub limit: Option<usize>,
    /// List: go on after this token.
    pub continue_token: Option<Arc<str>>,
    /// Get and list: not older than this, or exactly this.
    pub resource_version: Option<u64>,
    /// List: `resource_version` is meant exactly.
    pub exact_version: bool,
}

/// The answer to a request that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What was found or made.
    pub content: Content,
    /// Whether something new was made (HTTP 201).
    pub created: bool,
    /// Sentences for the `Warning` headers.
    pub warnings: Vec<String>,
}

/// What a reply carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// One object.
    Object(Arc<Object>),
    /// Many.
    List(List),
    /// A document made for this answer: a Scale, an Eviction's Status.
    Json(Value),
    /// The object is gone.
    Deleted(Details),
}

/// Many objects of one kind, sorted by namespace and name.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// Which kind.
    pub kind: KindId,
    /// The cluster's version when it was made: where a watch goes on.
    pub version: u64,
    /// The objects.
    pub items: Vec<Arc<Object>>,
    /// How to ask for the rest, empty if there is none.
    pub continue_token: String,
    /// How many the rest are, where the server knows.
    pub remaining: Option<usize>,
}

impl Request {
    /// A request without body and options.
    pub fn new(verb: Verb, kind: KindId, namespace: &str, name: &str) -> Self {
        Self {
            verb,
            kind,
            namespace: namespace.into(),
            name: name.into(),
            subresource: Subresource::None,
            body: Arc::default(),
            options: Options::default(),
        }
    }

    /// A request to create what the body says.
    pub fn create(kind: KindId, namespace: &str, body: Value) -> Self {
        Self::new(Verb::Create, kind, namespace, "").with_body(body)
    }

    /// A request to lay a merge patch over an object.
    pub fn merge(kind: KindId, namespace: &str, name: &str, patch: Value) -> Self {
        Self::new(Verb::Patch(PatchKind::Merge), kind, namespace, name).with_body(patch)
    }

    /// The same with this body.
    pub fn with_body(mut self, body: Value) -> Self {
        self.body = Arc::new(body);
        self
    }

    /// The same for a subresource.
    pub fn on(mut self, subresource: Subresource) -> Self {
        self.subresource = subresource;
        self
    }
}

impl Options {
    /// Who asks, for the log of writes.
    pub fn writer(&self) -> &Arc<str> {
        if self.user.is_empty() { &self.field_manager } else { &self.user }
    }

    /// What is to be said of the body's fields, of which these are unknown.
    pub(crate) fn named(&self, unknown: &[String]) -> Vec<String> {
        let duplicate =
            self.duplicate_fields.iter().map(|field| format!("duplicate field {field:?}"));
        let unknown = unknown.iter().map(|field| format!("unknown field {field:?}"));
        duplicate.chain(unknown).collect()
    }
}

impl Reply {
    /// One object that was there.
    pub fn object(object: Arc<Object>) -> Self {
        Self { content: Content::Object(object), created: false, warnings: Vec::new() }
    }

    /// A document.
    pub fn json(value: Value) -> Self {
        Self { content: Content::Json(value), created: false, warnings: Vec::new() }
    }

    /// The object in it, if it carries one.
    pub fn as_object(&self) -> Option<&Arc<Object>> {
        match &self.content {
            Content::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The list in it, if it carries one.
    pub fn as_list(&self) -> Option<&List> {
        match &self.content {
            Content::List(list) => Some(list),
            _ => None,
        }
    }

    /// The answer as HTTP sends it.
    pub fn to_json(&self, kinds: &Kinds) -> Value {
        match &self.content {
            Content::Object(object) => object.to_json(kinds),
            Content::List(list) => list.to_json(kinds),
            Content::Json(value) => value.clone(),
            Content::Deleted(details) => json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": details.to_json(),
            }),
        }
    }
}

impl List {
    /// The list as HTTP sends it.
    pub fn to_json(&self, kinds: &Kinds) -> Value {
        let kind = kinds.get(self.kind);
        let items: Vec<Value> = self.items.iter().map(|item| item.to_json(kinds)).collect();
        json!({
            "kind": kind.list_kind, "apiVersion": kind.api_version(),
            "metadata": self.metadata(kinds), "items": items,
        })
    }

    /// `metadata` of the list. Lists of custom kinds say so when there is no more.
    pub fn metadata(&self, kinds: &Kinds) -> Value {
        let mut metadata = json!({ "resourceVersion": self.version.to_string() });
        if !self.continue_token.is_empty() || kinds.get(self.kind).custom {
            metadata["continue"] = json!(self.continue_token);
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}
