//! Create: from a body to a stored object.

use std::sync::Arc;

use jiff::Timestamp;

use super::{check_named, check_type};
use crate::SimCluster;
use crate::admit;
use crate::error::{ApiError, Cause};
use crate::kinds::{Generation, KindId, KindInfo};
use crate::object::{Key, Object, whole_seconds};
use crate::request::{Content, Options, Reply, Request, Verb};

/// The longest name a generated suffix is put behind.
const LONGEST_BASE: usize = 58;
/// The letters generated names are made of: no vowels, nothing that looks like another.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Spreads consecutive numbers over all five-letter suffixes; has no divisor in common with 27.
const SPREAD: u64 = 7_368_787;

impl SimCluster {
    pub(super) fn create(
        &mut self,
        mut request: Request,
        kind: &KindInfo,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        check_named(kind, &request.body)?;
        let name = request.body["metadata"]["name"].as_str().unwrap_or_default();
        check_type(kind, &request.body, name)?;
        let body = Arc::unwrap_or_clone(std::mem::take(&mut request.body));
        let mut object = Object::from_json(kind.stored_as, body)?;
        let meta = Arc::make_mut(&mut object.meta);
        if kind.namespaced {
            if meta.namespace.is_empty() {
                meta.namespace = request.namespace.clone();
            } else if meta.namespace != request.namespace {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on \
                     the request",
                ));
            }
        } else {
            meta.namespace = Arc::default();
        }
        if object.version != 0 {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::internal(message));
        }
        admit::check_shape(kind, &object)?;
        let warnings = admit::unknown_fields(kind, &object, &request.options)?;
        admit::complete(&mut object, kind);
        if kind.has_status && object.kind != KindId::NODE {
            // A status has a path of its own; only a node reports itself.
            object.status = Arc::default();
        }
        let stored = self.create_object(object, None, kind, &request.options, now)?;
        Ok(Reply { content: Content::Object(stored), created: true, warnings })
    }

    /// Stores a new object whose defaults are filled in already. `like` is one that shares parts
    /// with it and was found right.
    pub(crate) fn create_object(
        &mut self,
        mut object: Object,
        like: Option<&Object>,
        kind: &KindInfo,
        options: &Options,
        now: Timestamp,
    ) -> Result<Arc<Object>, ApiError> {
        self.name(&mut object, kind)?;
        if kind.namespaced {
            let namespace = self.namespace_for(&object, kind)?;
            Arc::make_mut(&mut object.meta).namespace = namespace;
        }
        if kind.custom && self.definition_of(kind).is_some_and(|one| one.meta.deleting.is_some()) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(kind, &object.meta.name, why));
        }
        self.begin(&mut object, kind, now);
        let causes = admit::check_new(&object, like, kind);
        if !causes.is_empty() {
            return Err(ApiError::invalid(kind, &object.meta.name, causes));
        }
        self.allocate(&mut object);
        self.check_quota(&object, kind)?;
        self.check_denials(&object, kind)?;
        if let Some(there) = self.store.get(object.kind, &object.key()) {
            return Err(already_exists(there, kind));
        }
        self.install(&mut object, None, kind, options, now)?;
        if options.dry_run {
            return Ok(Arc::new(object));
        }
        Ok(self.put(object, Verb::Create, options.writer()))
    }

    fn name(&mut self, object: &mut Object, kind: &KindInfo) -> Result<(), ApiError> {
        if !object.meta.name.is_empty() {
            return Ok(());
        }
        if object.meta.generate_name.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(ApiError::invalid(kind, "", vec![cause]));
        }
        let number = self.count();
        let meta = Arc::make_mut(&mut object.meta);
        meta.name = generated(&meta.generate_name, number).into();
        Ok(())
    }

    /// What only the server decides about a new object.
    fn begin(&mut self, object: &mut Object, kind: &KindInfo, now: Timestamp) {
        let uid = uid(self.count());
        let meta = Arc::make_mut(&mut object.meta);
        meta.uid = uid;
        meta.created = whole_seconds(now);
        meta.deleting = None;
        meta.grace_seconds = None;
        meta.generation = i64::from(kind.generation == Generation::Content);
        if kind.has_status && object.status.is_null() {
            object.status = admit::first_status(object);
        }
    }

    /// The name of the namespace an object goes to, which all objects in it share.
    fn namespace_for(&self, object: &Object, kind: &KindInfo) -> Result<Arc<str>, ApiError> {
        let namespace = &object.meta.namespace;
        let key = Key { namespace: Arc::default(), name: namespace.clone() };
        let Some(found) = self.store.get(KindId::NAMESPACE, &key) else {
            return Err(ApiError::not_found(self.kinds.get(KindId::NAMESPACE), namespace));
        };
        if found.meta.deleting.is_none() {
            return Ok(found.meta.name.clone());
        }
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut refusal = ApiError::forbidden(kind, &object.meta.name, &why);
        if let Some(details) = &mut refusal.details {
            let message = format!("namespace {namespace} is being terminated");
            details.causes =
                vec![Cause::new("NamespaceTerminating", "metadata.namespace", message)];
        }
        Err(refusal)
    }
}

fn already_exists(there: &Object, kind: &KindInfo) -> ApiError {
    let mut refusal = ApiError::already_exists(kind, &there.meta.name);
    if there.meta.deleting.is_some() {
        refusal.message.insert_str(0, "object is being deleted: ");
    }
    refusal
}

/// An object's uid: its number, in the shape of a random one.
fn uid(number: u64) -> Arc<str> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = *b"00000000-0000-4000-8000-000000000000";
    let mut rest = number;
    for digit in text.iter_mut().rev().take(12) {
        *digit = DIGITS[usize::try_from(rest % 16).expect("less than 16")];
        rest /= 16;
    }
    str::from_utf8(&text).expect("digits and dashes").into()
}

fn generated(base: &str, number: u64) -> String {
    let mut end = base.len().min(LONGEST_BASE);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = String::with_capacity(end + 5);
    name.push_str(&base[..end]);
    let mut rest = number.wrapping_mul(SPREAD);
    for _ in 0..5 {
        let digit = usize::try_from(rest % 27).expect("less than 27");
        name.push(char::from(LETTERS[digit]));
        rest /= 27;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn generated_names_differ_and_look_like_the_real_ones() {
        let names: BTreeSet<String> = (0..50_000).map(|n| generated("web-", n)).collect();
        assert_eq!(names.len(), 50_000);
        assert!(names.iter().all(|name| name.len() == 9 && name.starts_with("web-")));
        assert_eq!(generated(&"x".repeat(80), 1).len(), 63);
    }
}
