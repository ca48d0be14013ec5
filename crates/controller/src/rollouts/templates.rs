//! Which templates of analyses are there, and which of them name each other?

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::kinds;
use gradus_engine::rollout::references;
use gradus_engine::world::{Known, RolloutView, TemplateView, Templates};

/// AnalysisTemplates and ClusterAnalysisTemplates.
#[derive(Default)]
pub(crate) struct TemplateIndex {
    views: BTreeMap<ObjectRef, Arc<TemplateView>>,
    /// Which templates name one of that name, and whether of the cluster.
    parents: BTreeMap<(String, bool), BTreeSet<ObjectRef>>,
}

impl TemplateIndex {
    pub fn get(&self, object: &ObjectRef) -> Option<&Arc<TemplateView>> {
        self.views.get(object)
    }

    pub fn insert(&mut self, object: ObjectRef, view: TemplateView) {
        self.remove(&object);
        for (name, is_cluster) in view.nested() {
            let parents = self.parents.entry((name.to_owned(), is_cluster)).or_default();
            parents.insert(object.clone());
        }
        self.views.insert(object, Arc::new(view));
    }

    pub fn remove(&mut self, object: &ObjectRef) {
        let Some(view) = self.views.remove(object) else { return };
        for (name, is_cluster) in view.nested() {
            let named = (name.to_owned(), is_cluster);
            if let Some(parents) = self.parents.get_mut(&named) {
                parents.remove(object);
                if parents.is_empty() {
                    self.parents.remove(&named);
                }
            }
        }
    }

    /// All templates of a kind.
    pub fn objects(&self, kind: &Kind) -> Vec<ObjectRef> {
        self.views.keys().filter(|object| object.kind == *kind).cloned().collect()
    }

    /// A template and all that name it, over others too: whoever names one of them is concerned.
    pub fn concerned(&self, object: &ObjectRef) -> BTreeSet<ObjectRef> {
        let mut found = BTreeSet::from([object.clone()]);
        let mut left = vec![object.clone()];
        while let Some(named) = left.pop() {
            let is_cluster = named.namespace.is_empty();
            let parents = self.parents.get(&(named.name.to_string(), is_cluster));
            // A template of the cluster may name those of any namespace; others those of their own.
            let is_here = |parent: &&ObjectRef| {
                is_cluster || parent.namespace.is_empty() || parent.namespace == named.namespace
            };
            for parent in parents.into_iter().flatten().filter(is_here) {
                if found.insert(parent.clone()) {
                    left.push(parent.clone());
                }
            }
        }
        found
    }

    /// The templates a Rollout names, and those that these name, there or not.
    pub fn of(
        &self,
        rollout: &RolloutView,
        unreadable: impl Fn(&Kind) -> Option<String>,
    ) -> Templates {
        self.all(&rollout.namespace, references::templates(rollout), unreadable)
    }

    /// These templates, and those that they name, there or not.
    pub fn all(
        &self,
        namespace: &Arc<str>,
        named: Vec<ObjectRef>,
        unreadable: impl Fn(&Kind) -> Option<String>,
    ) -> Templates {
        let mut found = Templates::default();
        let mut left = named;
        while let Some(object) = left.pop() {
            let is_cluster = object.kind == kinds::CLUSTER_ANALYSIS_TEMPLATE;
            let list = if is_cluster { &mut found.cluster } else { &mut found.namespaced };
            if list.contains_key(&object.name) {
                continue;
            }
            let view = self.views.get(&object);
            for (name, is_cluster) in view.iter().flat_map(|view| view.nested()) {
                left.push(references::template(namespace, name, is_cluster));
            }
            let known = match unreadable(&object.kind) {
                Some(message) => Known::Unknown(message),
                None => view.cloned().map_or(Known::Absent, Known::Present),
            };
            list.insert(object.name, known);
        }
        found
    }
}
