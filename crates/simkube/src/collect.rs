//! What has lost its owners goes; what is deleted in the foreground waits for its dependents; what
//! is deleted as an orphan maker lets its dependents go first.

use std::sync::Arc;

use jiff::Timestamp;

use crate::SimCluster;
use crate::kinds::KindId;
use crate::object::{Meta, Object, OwnerReference};
use crate::request::{Options, PatchKind, Propagation, Verb};
use crate::store::Place;
use crate::verbs::{FOREGROUND, ORPHAN};

/// What a reference to an owner leads to.
enum Owner {
    /// Nowhere.
    Gone,
    /// To one that waits for its dependents to go.
    Waits,
    /// To one that stays.
    Stays,
    /// Where nobody can look: nothing is done about its dependent.
    Unknowable,
}

impl SimCluster {
    /// Looks at one object that may have to go, or may have to be let go.
    pub(crate) fn collect(&mut self, place: &Place, now: Timestamp) {
        let Some(object) = self.store.get(place.kind, &place.key).cloned() else { return };
        let has = |name: &str| object.meta.finalizers.iter().any(|one| one == name);
        if object.meta.deleting.is_some() {
            if has(ORPHAN) {
                self.let_dependents_go(&object);
            } else if has(FOREGROUND) {
                self.delete_dependents_first(&object, now);
            }
            return;
        }
        self.delete_if_lost(&object, now);
    }

    /// An object goes when all its owners are gone, or wait for it. While one stays, references
    /// to the others are taken off.
    fn delete_if_lost(&mut self, object: &Arc<Object>, now: Timestamp) {
        let mut waiting = false;
        let mut staying = Vec::new();
        for reference in &object.meta.owners {
            match self.owner(object, reference) {
                Owner::Unknowable => return,
                Owner::Gone => {}
                Owner::Waits => waiting = true,
                Owner::Stays => staying.push(reference.clone()),
            }
        }
        if staying.len() == object.meta.owners.len() {
            return;
        }
        if !staying.is_empty() {
            self.keep_owners(object, staying);
            return;
        }
        let propagation = if waiting { Propagation::Foreground } else { Propagation::Background };
        let has_dependents = self.store.owned_by(&object.meta.uid).next().is_some();
        let options = Options {
            user: self.work.users.garbage.clone(),
            expect_uid: Some(object.meta.uid.clone()),
            propagation: (has_dependents || !waiting).then_some(propagation),
            ..Options::default()
        };
        let kinds = self.kinds.clone();
        self.delete_object(object, kinds.get(object.kind), &options, now)
            .expect("the uid is the object's own");
    }

    /// What a reference leads to. Owners are looked for where the dependent is, or outside of all
    /// namespaces, under the kind and the name that the reference gives.
    fn owner(&self, dependent: &Object, reference: &OwnerReference) -> Owner {
        let found = self.by_uid(&reference.uid);
        let kind = match found.map(|owner| owner.kind) {
            Some(kind) if self.is_called(kind, reference) => kind,
            _ => match self.kinds.by_name(&reference.api_version, &reference.kind) {
                Some(kind) => kind,
                None => return Owner::Unknowable,
            },
        };
        let kind = self.kinds.get(kind);
        if kind.namespaced && dependent.meta.namespace.is_empty() {
            return Owner::Unknowable;
        }
        let namespace = if kind.namespaced { &*dependent.meta.namespace } else { "" };
        let is_it = |owner: &&Arc<Object>| {
            owner.kind == kind.stored_as
                && *owner.meta.namespace == *namespace
                && owner.meta.name == reference.name
        };
        let Some(owner) = found.filter(is_it) else { return Owner::Gone };
        let is_waiting = owner.meta.deleting.is_some()
            && owner.meta.finalizers.iter().any(|name| name == FOREGROUND);
        if is_waiting { Owner::Waits } else { Owner::Stays }
    }

    fn is_called(&self, kind: KindId, reference: &OwnerReference) -> bool {
        let kind = self.kinds.get(kind);
        *kind.kind == *reference.kind && kind.has_api_version(&reference.api_version)
    }

    fn keep_owners(&mut self, object: &Object, owners: Vec<OwnerReference>) {
        let meta = Meta { owners, ..Meta::clone(&object.meta) };
        let after = Object { meta: Arc::new(meta), ..object.clone() };
        let user = self.work.users.garbage.clone();
        self.put(after, Verb::Patch(PatchKind::Merge), &user);
    }

    /// Every dependent loses its reference to the object, then the object may go.
    fn let_dependents_go(&mut self, object: &Arc<Object>) {
        let dependents: Vec<Place> = self.store.owned_by(&object.meta.uid).cloned().collect();
        for place in dependents {
            let Some(dependent) = self.store.get(place.kind, &place.key).cloned() else { continue };
            let mut owners = dependent.meta.owners.clone();
            owners.retain(|owner| owner.uid != object.meta.uid);
            self.keep_owners(&dependent, owners);
        }
        self.remove_finalizer(object, ORPHAN);
    }

    /// Every dependent is deleted; once none is left that blocks, the object may go.
    fn delete_dependents_first(&mut self, object: &Arc<Object>, now: Timestamp) {
        let dependents: Vec<Place> = self.store.owned_by(&object.meta.uid).cloned().collect();
        for place in &dependents {
            if let Some(dependent) = self.store.get(place.kind, &place.key).cloned()
                && dependent.meta.deleting.is_none()
            {
                self.delete_if_lost(&dependent, now);
            }
        }
        let is_blocked = self.owned_by(&object.meta.uid).any(|dependent| {
            let mut owners = dependent.meta.owners.iter();
            owners.any(|owner| {
                owner.uid == object.meta.uid && owner.block_owner_deletion == Some(true)
            })
        });
        if !is_blocked {
            self.remove_finalizer(object, FOREGROUND);
        }
    }

    fn remove_finalizer(&mut self, object: &Arc<Object>, name: &str) {
        let Some(object) = self.by_uid(&object.meta.uid).cloned() else { return };
        let user = self.work.users.garbage.clone();
        let mut meta = Meta::clone(&object.meta);
        meta.finalizers.retain(|one| one != name);
        let may_go = meta.finalizers.is_empty() && meta.grace_seconds.unwrap_or_default() == 0;
        if may_go {
            self.remove(&object, &user);
        } else {
            let after = Object { meta: Arc::new(meta), ..Object::clone(&object) };
            self.put(after, Verb::Patch(PatchKind::Merge), &user);
        }
    }
}
