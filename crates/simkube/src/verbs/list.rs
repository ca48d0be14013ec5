//! List: selectors, pages and versions.

use std::borrow::Cow;
use std::sync::Arc;

use super::SimCluster;
use crate::error::ApiError;
use crate::kinds::{KindId, KindInfo};
use crate::object::{Key, Object};
use crate::request::{Content, List, Options, Reply, Request};
use crate::selector::{FieldSelector, LabelSelector};

impl SimCluster {
    pub(super) fn list_verb(&self, request: &Request, kind: &KindInfo) -> Result<Reply, ApiError> {
        let options = &request.options;
        let filter = Filter::of(options, kind)?;
        let after = options.continue_token.as_deref().map(page).transpose()?;
        let version = self.version_to_list(options, after.as_ref())?;
        let found = self.listed_at(kind, &request.namespace, version)?;
        let mut rest =
            found.iter().filter(|one| after.as_ref().is_none_or(|(_, key)| one.key() > *key));
        let limit = options.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let items = rest.by_ref().filter(|object| filter.accepts(object)).take(limit);
        let items: Vec<Arc<Object>> = items.cloned().collect();
        // Whether any of them would be selected, only the next page finds out.
        let remaining = rest.count();
        let token = match items.last() {
            Some(last) if remaining > 0 => token(version, last),
            _ => String::new(),
        };
        let list = List {
            kind: kind.stored_as,
            version,
            items,
            continue_token: token,
            remaining: (remaining > 0 && filter.is_empty()).then_some(remaining),
        };
        Ok(Reply { content: Content::List(list), created: false, warnings: Vec::new() })
    }

    /// Which moment a list shows: pages go on with that of the first, others may name one.
    fn version_to_list(
        &self,
        options: &Options,
        after: Option<&(u64, Key)>,
    ) -> Result<u64, ApiError> {
        let current = self.version();
        match (after, options.resource_version) {
            (Some(_), Some(asked)) if asked > 0 => Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            )),
            (Some((version, _)), _) => Ok(*version),
            (None, Some(asked)) if asked > current => {
                Err(ApiError::too_large_version(asked, current))
            }
            (None, Some(asked)) if options.exact_version => Ok(asked),
            (None, _) => Ok(current),
        }
    }

    /// The objects of a kind as they were at a version, as long as that is remembered.
    fn listed_at(
        &self,
        kind: &KindInfo,
        namespace: &str,
        version: u64,
    ) -> Result<Vec<Arc<Object>>, ApiError> {
        if version == self.version() {
            return Ok(self.store.list(kind.stored_as, namespace).cloned().collect());
        }
        self.store.list_at(kind.stored_as, namespace, version).map_err(|_| {
            ApiError::gone(format!(
                "The resourceVersion for the provided list is too old: {version}"
            ))
        })
    }
}

/// The selectors of a list.
pub(crate) struct Filter {
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
}

impl Filter {
    pub(crate) fn of(options: &Options, kind: &KindInfo) -> Result<Self, ApiError> {
        let labels = options.label_selector.as_deref().map(LabelSelector::parse).transpose();
        let labels = labels.map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields = options.field_selector.as_deref().map(FieldSelector::parse).transpose();
        let fields = fields.map_err(|error| ApiError::bad_request(error.to_string()))?;
        for field in fields.iter().flat_map(FieldSelector::fields) {
            if !is_selectable(kind, field) {
                return Err(ApiError::bad_request(not_selectable(kind, field)));
            }
        }
        Ok(Self { labels, fields })
    }

    pub(crate) fn accepts(&self, object: &Object) -> bool {
        self.labels.as_ref().is_none_or(|labels| labels.matches(&object.meta.labels))
            && self.fields.as_ref().is_none_or(|fields| {
                fields.matches(|field| Cow::Owned(object.field(field).unwrap_or_default()))
            })
    }

    fn is_empty(&self) -> bool {
        self.labels.as_ref().is_none_or(LabelSelector::is_empty)
            && self.fields.as_ref().is_none_or(FieldSelector::is_empty)
    }
}

/// Which fields a kind can be selected by.
fn is_selectable(kind: &KindInfo, field: &str) -> bool {
    field == "metadata.name"
        || (field == "metadata.namespace" && kind.namespaced)
        || own_fields(kind).contains(&field)
}

fn not_selectable(kind: &KindInfo, field: &str) -> String {
    match kind.stored_as {
        KindId::JOB => format!("field label {field:?} not supported for Job"),
        _ if kind.custom || !own_fields(kind).is_empty() => {
            format!("field label not supported: {field}")
        }
        _ => format!(
            "{field:?} is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
        ),
    }
}

/// The fields beyond name and namespace that a built-in kind can be selected by.
fn own_fields(kind: &KindInfo) -> &'static [&'static str] {
    match kind.stored_as {
        KindId::POD => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        KindId::EVENT => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        KindId::NAMESPACE => &["status.phase"],
        KindId::NODE => &["spec.unschedulable"],
        KindId::SECRET => &["type"],
        KindId::SERVICE => &["spec.clusterIP", "spec.type"],
        KindId::JOB => &["status.successful"],
        _ => &[],
    }
}

fn token(version: u64, last: &Object) -> String {
    format!("{version}.{}/{}", last.meta.namespace, last.meta.name)
}

fn page(token: &str) -> Result<(u64, Key), ApiError> {
    let parsed = token.split_once('.').and_then(|(version, place)| {
        let (namespace, name) = place.split_once('/')?;
        Some((version.parse().ok()?, Key::new(namespace, name)))
    });
    parsed.ok_or_else(|| {
        let why = format!("invalid continue token: continue key is not valid: {token:?}");
        ApiError::bad_request(why)
    })
}
