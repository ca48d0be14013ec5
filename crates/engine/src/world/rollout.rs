//! What does a decision need of a Rollout? Its spec parsed once per generation, the template as text.

use std::sync::Arc;

use gradus_api::decode::decode;
use gradus_api::names;
use gradus_api::rollout::{RolloutSpec, RolloutStatus};
use gradus_api::validate::{SpecSource, is_empty_template, validate};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::decision::ObjectRef;
use crate::frame::{Frame, TextMap};
use crate::kinds;
use crate::rollout::selector;
use crate::template::{self, TemplateSide};
use crate::uid::Uid;

/// A Rollout as decisions see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolloutView {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Identity.
    pub uid: Uid,
    /// `resourceVersion`.
    pub version: u64,
    /// Rises with the spec.
    pub generation: i64,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Is its deletion asked for?
    pub deleting: bool,
    /// Its labels.
    pub labels: Arc<TextMap>,
    /// Its annotations, without kubectl's copy of the whole object.
    pub annotations: Arc<TextMap>,
    /// What is asked for.
    pub spec: Arc<Spec>,
    /// What was last written.
    pub status: Arc<RolloutStatus>,
    /// Hash of the template for the collision count of the status.
    pub hash: Arc<str>,
    /// The same as Argo up to 1.8 computed it.
    pub legacy_hash: Arc<str>,
}

/// The spec, parsed once per generation, with what is derived from it alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// All fields; the template is left out here.
    pub fields: RolloutSpec,
    /// The pod template as compact JSON, exactly as stored.
    pub template: Arc<str>,
    /// The template, normalised for equality.
    #[serde(with = "super::digest::hexadecimal")]
    pub template_digest: u128,
    /// Hash of the canary steps, empty for blue-green.
    pub step_hash: Arc<str>,
    /// The same as older versions of Argo computed it.
    pub older_step_hashes: Vec<String>,
    /// The label selector as text, empty where there is none.
    pub selector: Arc<str>,
    /// What is wrong with it: the first is shown to the user.
    pub errors: Vec<String>,
    /// How many of the errors are about values of a wrong type.
    #[serde(default)]
    pub malformed: usize,
    /// Where the template comes from.
    #[serde(default)]
    pub origin: Origin,
}

/// Where the pod template of a Rollout comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// It is written in the spec.
    #[default]
    Written,
    /// From a workload that has not been found yet.
    Referred,
    /// From this workload, as it was at this generation.
    Resolved {
        /// The workload.
        uid: Uid,
        /// Its generation, as text.
        generation: Arc<str>,
    },
    /// It is written although the spec refers to a workload.
    Both,
}

impl Origin {
    /// The generation of the workload that the template is from.
    pub fn generation(&self) -> Option<&Arc<str>> {
        match self {
            Origin::Resolved { generation, .. } => Some(generation),
            Origin::Written | Origin::Referred | Origin::Both => None,
        }
    }
}

impl RolloutView {
    /// The view of a frame. `earlier` spares the parsing of parts that have not changed.
    pub fn read(frame: &Frame, earlier: Option<&RolloutView>) -> Self {
        let meta = &frame.meta;
        let same = earlier.filter(|view| view.uid == meta.uid);
        let spec = match same.filter(|view| view.generation == meta.generation) {
            Some(view) => Arc::clone(&view.spec),
            None => Arc::new(Spec::read(&frame.spec)),
        };
        let status: Arc<RolloutStatus> = Arc::new(decode(&frame.status).0);
        let unchanged = same.filter(|view| {
            Arc::ptr_eq(&view.spec, &spec) && view.status.collision_count == status.collision_count
        });
        let (hash, legacy_hash) = match unchanged {
            Some(view) => (Arc::clone(&view.hash), Arc::clone(&view.legacy_hash)),
            None => hashes(&frame.spec["template"], status.collision_count),
        };
        RolloutView {
            namespace: Arc::clone(&meta.namespace),
            name: Arc::clone(&meta.name),
            uid: meta.uid,
            version: meta.version,
            generation: meta.generation,
            created: meta.created,
            deleting: meta.deleting.is_some(),
            labels: kept(&meta.labels, same.map(|view| &view.labels)),
            annotations: kept(&meta.annotations, same.map(|view| &view.annotations)),
            spec,
            status,
            hash,
            legacy_hash,
        }
    }

    /// The same Rollout with template and, where it says none itself, selector of the workload it
    /// refers to. `earlier` spares the work while neither has changed.
    pub fn resolved(&self, workload: &Value, earlier: Option<&RolloutView>) -> Self {
        let (meta, workload) = (&workload["metadata"], &workload["spec"]);
        let uid = meta["uid"].as_str().map_or_else(Uid::default, Uid::parse);
        let generation = meta["generation"].as_i64().unwrap_or(0).to_string().into();
        let origin = Origin::Resolved { uid, generation };
        let same = earlier.filter(|view| {
            view.uid == self.uid && view.generation == self.generation && view.spec.origin == origin
        });
        let spec = match same {
            Some(view) => Arc::clone(&view.spec),
            None => Arc::new(self.spec.resolved(workload, origin)),
        };
        let count = self.status.collision_count;
        let (hash, legacy_hash) = match same.filter(|view| view.status.collision_count == count) {
            Some(view) => (Arc::clone(&view.hash), Arc::clone(&view.legacy_hash)),
            None => hashes(&workload["template"], count),
        };
        RolloutView { spec, hash, legacy_hash, ..self.clone() }
    }

    /// A reference to it.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef::new(kinds::ROLLOUT, &self.namespace, &self.name)
    }

    /// What the objects it makes say of it.
    pub fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": names::API_VERSION,
            "kind": names::kind::ROLLOUT,
            "name": &*self.name,
            "uid": self.uid.to_string(),
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// A reference to one of its Services.
    pub fn service(&self, name: &Arc<str>) -> ObjectRef {
        ObjectRef::new(kinds::SERVICE, &self.namespace, name)
    }

    /// A reference to one of its ReplicaSets.
    pub fn replica_set(&self, name: &Arc<str>) -> ObjectRef {
        ObjectRef::new(kinds::REPLICA_SET, &self.namespace, name)
    }
}

impl Spec {
    fn read(raw: &Value) -> Self {
        let (mut fields, field_errors) = decode::<RolloutSpec>(raw);
        let invalid = validate(&fields, SpecSource::Written);
        fields.template = Arc::new(Value::Null);
        let steps = &raw["strategy"]["canary"]["steps"];
        let is_canary = fields.strategy.canary.is_some();
        let malformed = field_errors.len();
        let field_errors = field_errors.into_iter().map(|error| error.within("spec").to_string());
        let errors = field_errors.chain(invalid.iter().map(ToString::to_string)).collect();
        let origin = match &fields.workload_ref {
            None => Origin::Written,
            Some(_) if is_empty_template(&raw["template"]) => Origin::Referred,
            Some(_) => Origin::Both,
        };
        Spec {
            template: raw["template"].to_string().into(),
            template_digest: template::normalized_digest(
                &raw["template"],
                None,
                TemplateSide::Desired,
            ),
            step_hash: if is_canary { template::step_hash(steps).into() } else { "".into() },
            older_step_hashes: if is_canary {
                template::older_step_hashes(steps)
            } else {
                Vec::new()
            },
            selector: fields.selector.as_ref().map_or_else(String::new, selector::text).into(),
            errors,
            malformed,
            origin,
            fields,
        }
    }

    /// The spec with what the workload says, judged anew.
    fn resolved(&self, workload: &Value, origin: Origin) -> Self {
        let template = &workload["template"];
        let mut fields = self.fields.clone();
        fields.template = Arc::new(template.clone());
        if fields.selector.is_none() {
            fields.selector = workload.get("selector").map(|selector| decode(selector).0);
        }
        let mut errors = self.errors[..self.malformed].to_vec();
        errors.extend(validate(&fields, SpecSource::Resolved).iter().map(ToString::to_string));
        fields.template = Arc::new(Value::Null);
        Spec {
            selector: fields.selector.as_ref().map_or_else(String::new, selector::text).into(),
            template: template.to_string().into(),
            template_digest: template::normalized_digest(template, None, TemplateSide::Desired),
            errors,
            origin,
            fields,
            ..self.clone()
        }
    }
}

fn hashes(template: &Value, collision_count: Option<i32>) -> (Arc<str>, Arc<str>) {
    (
        template::pod_template_hash(template, collision_count).into(),
        template::legacy_pod_template_hash(template, collision_count).into(),
    )
}

/// The texts without kubectl's copy, which can be as large as the object; the earlier ones if equal.
fn kept(texts: &TextMap, earlier: Option<&Arc<TextMap>>) -> Arc<TextMap> {
    let ours = || texts.iter().filter(|(key, _)| *key != names::annotation::LAST_APPLIED);
    match earlier {
        Some(earlier) if ours().eq(earlier.iter()) => Arc::clone(earlier),
        _ => Arc::new(ours().map(|(key, text)| (key.clone(), text.clone())).collect()),
    }
}
