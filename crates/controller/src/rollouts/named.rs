//! Which objects do Rollouts name, who names each, and what is known of those of kinds that are
//! watched only because somebody names them?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::{Frame, TextMap};
use gradus_engine::traffic::{self, RouteSelection};
use gradus_engine::world::Known;
use serde_json::Value;

use crate::watched::Key;

/// Who names what; and the named objects of demanded kinds, whole. Others are never kept.
#[derive(Default)]
pub(super) struct Named {
    by_object: BTreeMap<ObjectRef, BTreeSet<Key>>,
    by_rollout: BTreeMap<Key, Vec<ObjectRef>>,
    /// Of each named object of a demanded kind: the object, `None` where it is known not to be
    /// there, no entry while nobody knows.
    kept: BTreeMap<ObjectRef, Option<StoredObject>>,
    /// How many objects of each demanded kind are named.
    demanded: BTreeMap<Kind, usize>,
    /// What Rollouts select instead of naming it.
    selections: BTreeMap<Key, Vec<RouteSelection>>,
    /// The labels of all objects of kinds that can be selected.
    labels: BTreeMap<ObjectRef, Arc<TextMap>>,
    synced: BTreeSet<Kind>,
}

struct StoredObject {
    version: u64,
    object: Arc<Value>,
}

impl Named {
    /// Notes everything a Rollout names: nothing when it is gone.
    pub fn name(&mut self, rollout: &Key, objects: Vec<ObjectRef>) {
        for object in &objects {
            self.take(rollout, object);
        }
        let former = self.by_rollout.remove(rollout).unwrap_or_default();
        for object in former.iter().filter(|object| !objects.contains(object)) {
            self.leave(rollout, object);
        }
        if !objects.is_empty() {
            self.by_rollout.insert(rollout.clone(), objects);
        }
    }

    fn take(&mut self, rollout: &Key, object: &ObjectRef) {
        let users = self.by_object.entry(object.clone()).or_default();
        if users.is_empty() && is_on_demand(&object.kind) {
            *self.demanded.entry(object.kind.clone()).or_default() += 1;
        }
        users.insert(rollout.clone());
    }

    /// What nobody names any more is not kept.
    fn leave(&mut self, rollout: &Key, object: &ObjectRef) {
        let Some(users) = self.by_object.get_mut(object) else { return };
        users.remove(rollout);
        if !users.is_empty() {
            return;
        }
        self.by_object.remove(object);
        self.kept.remove(object);
        if let Some(count) = self.demanded.get_mut(&object.kind) {
            *count -= 1;
            if *count == 0 {
                self.demanded.remove(&object.kind);
            }
        }
    }

    /// What a Rollout names.
    pub fn of(&self, rollout: &Key) -> &[ObjectRef] {
        self.by_rollout.get(rollout).map_or(&[], Vec::as_slice)
    }

    /// Who names an object.
    pub fn users(&self, object: &ObjectRef) -> Vec<Key> {
        self.by_object.get(object).into_iter().flatten().cloned().collect()
    }

    /// The kinds that are watched because somebody names or selects an object of them.
    pub fn demands(&self) -> Vec<Kind> {
        let selected = self.selections.values().flatten().map(|selection| &selection.kind);
        let kinds: BTreeSet<&Kind> = self.demanded.keys().chain(selected).collect();
        kinds.into_iter().cloned().collect()
    }

    /// Notes what a Rollout selects.
    pub fn select(&mut self, rollout: &Key, selections: Vec<RouteSelection>) {
        match selections.is_empty() {
            true => drop(self.selections.remove(rollout)),
            false => drop(self.selections.insert(rollout.clone(), selections)),
        }
    }

    /// The objects that a Rollout selects, as far as they have been seen.
    pub fn selected(&self, rollout: &Key) -> Vec<ObjectRef> {
        let Some(selections) = self.selections.get(rollout) else { return Vec::new() };
        let is_selected = |object: &ObjectRef, labels: &Arc<TextMap>| {
            let label = |key: &str| labels.get(key).map(String::as_str);
            selections.iter().any(|selection| selection.selects(object, label))
        };
        let found = self.labels.iter().filter(|(object, labels)| is_selected(object, labels));
        found.map(|(object, _)| object.clone()).collect()
    }

    /// The kinds of which a Rollout selects objects, and of which no list is complete yet.
    pub fn unlisted(&self, rollout: &Key) -> Vec<&RouteSelection> {
        let selections = self.selections.get(rollout).into_iter().flatten();
        selections.filter(|selection| !self.synced.contains(&selection.kind)).collect()
    }

    /// Notes the labels of an object that may be selected; returns who may select it now, or did before.
    pub fn label(&mut self, object: &ObjectRef, labels: Option<Arc<TextMap>>) -> Vec<Key> {
        if !traffic::is_selectable(&object.kind) {
            return Vec::new();
        }
        let is_same = match labels {
            Some(labels) => {
                let former = self.labels.insert(object.clone(), Arc::clone(&labels));
                former.is_some_and(|former| former == labels)
            }
            None => self.labels.remove(object).is_none(),
        };
        if is_same {
            return Vec::new();
        }
        let concerns = |selection: &RouteSelection| {
            selection.kind == object.kind && selection.namespace == object.namespace
        };
        let concerned = self.selections.iter().filter(|(_, them)| them.iter().any(concerns));
        concerned.map(|(rollout, _)| rollout.clone()).collect()
    }

    /// Objects that a Rollout names and nobody has looked at since, although their kind is watched.
    pub fn unseen(&self, rollout: &Key) -> Option<&ObjectRef> {
        let named = self.by_rollout.get(rollout)?;
        named
            .iter()
            .find(|object| self.synced.contains(&object.kind) && !self.kept.contains_key(*object))
    }

    /// A list of this kind is complete: what it did not show is not there.
    pub fn listed(&mut self, kind: &Kind) -> Vec<Key> {
        if !is_on_demand(kind) {
            return Vec::new();
        }
        self.synced.insert(kind.clone());
        let mut woken = Vec::new();
        for (object, users) in self.by_object.iter().filter(|(object, _)| object.kind == *kind) {
            self.kept.entry(object.clone()).or_insert(None);
            woken.extend(users.iter().cloned());
        }
        // Who selects objects of it knows only now that there are no others.
        let selecting = self
            .selections
            .iter()
            .filter(|(_, them)| them.iter().any(|selection| selection.kind == *kind));
        woken.extend(selecting.map(|(rollout, _)| rollout.clone()));
        woken
    }

    /// Keeps an object if somebody names it.
    pub fn keep(&mut self, kind: &Kind, frame: &Frame) -> Vec<Key> {
        let object = ObjectRef::new(kind.clone(), &frame.meta.namespace, &frame.meta.name);
        if self.by_object.contains_key(&object) {
            let kept =
                StoredObject { version: frame.meta.version, object: Arc::new(frame.object()) };
            self.kept.insert(object.clone(), Some(kept));
        }
        self.users(&object)
    }

    /// An object is gone.
    pub fn drop(&mut self, object: &ObjectRef) -> Vec<Key> {
        if self.by_object.contains_key(object) {
            self.kept.insert(object.clone(), None);
        }
        self.users(object)
    }

    /// The version that is kept of an object.
    pub fn version(&self, object: &ObjectRef) -> Option<u64> {
        self.kept.get(object)?.as_ref().map(|kept| kept.version)
    }

    /// All objects of a kind that are kept.
    pub fn objects(&self, kind: &Kind) -> Vec<ObjectRef> {
        let there =
            self.kept.iter().filter(|(object, kept)| object.kind == *kind && kept.is_some());
        there.map(|(object, _)| object.clone()).collect()
    }

    /// What is known of a named object. Nothing, in no words, while nobody has looked.
    pub fn known(&self, object: &ObjectRef) -> Known<Arc<Value>> {
        match self.kept.get(object) {
            Some(Some(kept)) => Known::Present(Arc::clone(&kept.object)),
            Some(None) => Known::Absent,
            None => Known::Unknown(String::new()),
        }
    }
}

/// Is a kind watched only once a Rollout names an object of it?
pub(super) fn is_on_demand(kind: &Kind) -> bool {
    traffic::routes(kind) || super::WORKLOADS.contains(kind)
}

#[cfg(test)]
mod tests {
    use gradus_engine::kinds;
    use serde_json::json;

    use super::*;

    fn ingress(name: &str) -> ObjectRef {
        ObjectRef::new(kinds::INGRESS, &"default".into(), &name.into())
    }

    #[test]
    fn a_kind_is_demanded_and_an_object_is_kept_as_long_as_somebody_names_it() {
        let key = |name: &str| Key { namespace: "default".into(), name: name.into() };
        let service = ObjectRef::new(kinds::SERVICE, &"default".into(), &"web".into());
        let frame = serde_json::from_value(json!({ "metadata": {
            "name": "web", "namespace": "default", "resourceVersion": "7" } }));
        let frame: Frame = frame.unwrap();
        let mut named = Named::default();
        named.name(&key("one"), vec![service.clone()]);
        assert_eq!(named.demands(), [], "Services are watched anyway");
        let steps: [(&str, Vec<ObjectRef>, usize, Option<u64>); 6] = [
            // who, names what; kinds demanded and version kept afterwards
            ("one", vec![service, ingress("web")], 1, None),
            ("one", vec![ingress("web"), ingress("other")], 1, Some(7)),
            ("two", vec![ingress("web")], 1, Some(7)),
            ("one", vec![ingress("other")], 1, Some(7)),
            ("two", Vec::new(), 1, None),
            ("one", Vec::new(), 0, None),
        ];
        for (at, (who, objects, demanded, version)) in steps.into_iter().enumerate() {
            named.name(&key(who), objects);
            let found = (named.demands().len(), named.version(&ingress("web")));
            assert_eq!(found, (demanded, version), "step {at}");
            if at == 0 {
                assert_eq!(named.keep(&kinds::INGRESS, &frame), [key("one")]);
            }
        }
        assert_eq!(named.users(&ingress("web")), []);
    }
}
