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
    /// How many objects of each demanded kind are named, and how often some are selected.
    demanded: BTreeMap<Kind, usize>,
    /// What Rollouts select instead of naming it.
    selections: BTreeMap<Key, Vec<RouteSelection>>,
    /// Who selects objects of a kind in a namespace.
    selecting: BTreeMap<(Kind, Arc<str>), BTreeSet<Key>>,
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
        if !self.by_object.contains_key(object) && is_on_demand(&object.kind) {
            self.demand(&object.kind);
        }
        self.by_object.entry(object.clone()).or_default().insert(rollout.clone());
    }

    fn demand(&mut self, kind: &Kind) {
        *self.demanded.entry(kind.clone()).or_default() += 1;
    }

    fn demand_no_more(&mut self, kind: &Kind) {
        if let Some(count) = self.demanded.get_mut(kind) {
            *count -= 1;
            if *count == 0 {
                self.demanded.remove(kind);
            }
        }
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
        self.demand_no_more(&object.kind);
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
        self.demanded.keys().cloned().collect()
    }

    /// Notes what a Rollout selects.
    pub fn select(&mut self, rollout: &Key, selections: Vec<RouteSelection>) {
        for one in &selections {
            self.demand(&one.kind);
        }
        for one in self.selections.remove(rollout).unwrap_or_default() {
            self.demand_no_more(&one.kind);
            let place = (one.kind, one.namespace);
            if let Some(them) = self.selecting.get_mut(&place) {
                them.remove(rollout);
                if them.is_empty() {
                    self.selecting.remove(&place);
                }
            }
        }
        for one in &selections {
            let place = (one.kind.clone(), Arc::clone(&one.namespace));
            self.selecting.entry(place).or_default().insert(rollout.clone());
        }
        if !selections.is_empty() {
            self.selections.insert(rollout.clone(), selections);
        }
    }

    /// The objects that a Rollout selects, as far as they have been seen.
    pub fn selected(&self, rollout: &Key) -> Vec<ObjectRef> {
        let all = self.selections.get(rollout).into_iter().flatten();
        let found: BTreeSet<&ObjectRef> = all.flat_map(|one| self.selected_by(one)).collect();
        found.into_iter().cloned().collect()
    }

    fn selected_by(&self, selection: &RouteSelection) -> impl Iterator<Item = &ObjectRef> {
        let first = ObjectRef::new(selection.kind.clone(), &selection.namespace, &"".into());
        let is_there = move |object: &ObjectRef| {
            object.kind == selection.kind && object.namespace == selection.namespace
        };
        let here = self.labels.range(first..).take_while(move |(object, _)| is_there(object));
        here.filter(move |(object, labels)| selects(selection, object, labels))
            .map(|(object, _)| object)
    }

    /// The kinds of which a Rollout selects objects, and of which no list is complete yet.
    pub fn unlisted(&self, rollout: &Key) -> Vec<&RouteSelection> {
        let selections = self.selections.get(rollout).into_iter().flatten();
        selections.filter(|selection| !self.synced.contains(&selection.kind)).collect()
    }

    /// Notes the labels of an object that may be selected; returns who selects it now, or did before.
    pub fn label(&mut self, object: &ObjectRef, labels: Option<Arc<TextMap>>) -> Vec<Key> {
        if !traffic::is_selectable(&object.kind) {
            return Vec::new();
        }
        let former = match &labels {
            Some(labels) => self.labels.insert(object.clone(), Arc::clone(labels)),
            None => self.labels.remove(object),
        };
        if former == labels {
            return Vec::new();
        }
        let is_selected = |rollout: &&Key| {
            let mut selections = self.selections.get(*rollout).into_iter().flatten();
            selections.any(|one| {
                let mut both = former.iter().chain(&labels);
                both.any(|labels| selects(one, object, labels))
            })
        };
        let place = (object.kind.clone(), Arc::clone(&object.namespace));
        let here = self.selecting.get(&place).into_iter().flatten();
        here.filter(is_selected).cloned().collect()
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
        let first: (Kind, Arc<str>) = (kind.clone(), "".into());
        let selecting = self.selecting.range(first..).take_while(|((of, _), _)| of == kind);
        woken.extend(selecting.flat_map(|(_, rollouts)| rollouts.iter().cloned()));
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

fn selects(selection: &RouteSelection, object: &ObjectRef, labels: &TextMap) -> bool {
    selection.selects(object, |key| labels.get(key).map(String::as_str))
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

    #[test]
    fn an_object_wakes_those_alone_who_select_it_or_did_before() {
        let kind = traffic::released_kind(8); // HTTPRoutes
        let key = |name: &str| Key { namespace: "shop".into(), name: name.into() };
        let selection = |namespace: &str, app: &str| RouteSelection {
            kind: kind.clone(),
            namespace: namespace.into(),
            selector: serde_json::from_value(json!({ "matchLabels": { "app": app } })).unwrap(),
        };
        let mut named = Named::default();
        named.select(&key("web"), vec![selection("shop", "web")]);
        named.select(&key("api"), vec![selection("shop", "api")]);
        named.select(&key("far"), vec![selection("elsewhere", "web")]);
        assert_eq!(named.demands(), std::slice::from_ref(&kind));
        let route = |name: &str| ObjectRef::new(kind.clone(), &"shop".into(), &name.into());
        let labels = |app: &str| -> Arc<TextMap> {
            Arc::new(serde_json::from_value(json!({ "app": app })).unwrap())
        };
        let steps = [
            // what, which route, its app; who is woken, and how many routes are web's afterwards
            ("one of web's", "one", Some("web"), "web", 1),
            ("nobody's", "other", Some("none"), "", 1),
            ("the same again", "one", Some("web"), "", 1),
            ("another of web's", "two", Some("web"), "web", 2),
            ("it becomes api's", "one", Some("api"), "api web", 1),
            ("it goes", "one", None, "api", 1),
            ("it goes again", "one", None, "", 1),
        ];
        for (what, name, app, woken, count) in steps {
            let found = named.label(&route(name), app.map(labels));
            let names: Vec<&str> = found.iter().map(|key| &*key.name).collect();
            assert_eq!(names.join(" "), woken, "{what}");
            assert_eq!(named.selected(&key("web")).len(), count, "{what}");
        }
        assert_eq!(named.listed(&kind), [key("far"), key("api"), key("web")], "all who select");
        for name in ["web", "api", "far"] {
            named.select(&key(name), Vec::new());
        }
        assert_eq!((named.demands(), named.selecting.len()), (Vec::new(), 0));
    }
}
