//! Whose Events are posted next? Namespaces take turns, so that one with many objects does not delay the
//! Events of another.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use gradus_engine::decision::ObjectRef;

/// Objects with something to post.
#[derive(Debug, Default)]
pub(super) struct ReadyObjects {
    /// Those of each namespace that has some, who waits longest first.
    objects: BTreeMap<Arc<str>, VecDeque<ObjectRef>>,
    /// Each of these namespaces once: whose turn is next comes first.
    turns: VecDeque<Arc<str>>,
}

impl ReadyObjects {
    /// Adds an object behind those of its namespace.
    pub(super) fn push(&mut self, object: ObjectRef) {
        let namespace = &object.namespace;
        if !self.objects.contains_key(namespace) {
            self.turns.push_back(Arc::clone(namespace));
        }
        self.objects.entry(Arc::clone(namespace)).or_default().push_back(object);
    }

    /// The first object of the namespace whose turn it is.
    pub(super) fn pop(&mut self) -> Option<ObjectRef> {
        let namespace = self.turns.pop_front()?;
        let waiting = self.objects.get_mut(&namespace)?;
        let object = waiting.pop_front();
        if waiting.is_empty() {
            self.objects.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        object
    }
}

#[test]
fn namespaces_take_turns_and_none_is_forgotten() {
    let object = |namespace: &str, name: &str| {
        ObjectRef::new(gradus_engine::kinds::ROLLOUT, &namespace.into(), &name.into())
    };
    let mut ready = ReadyObjects::default();
    for name in ["1", "2", "3"] {
        ready.push(object("busy", name));
    }
    ready.push(object("quiet", "web"));
    ready.push(object("quiet", "api"));
    let mut order = Vec::new();
    while let Some(next) = ready.pop() {
        order.push(format!("{}/{}", next.namespace, next.name));
    }
    assert_eq!(order, ["busy/1", "quiet/web", "busy/2", "quiet/api", "busy/3"]);
    ready.push(object("quiet", "late"));
    assert!(ready.pop().is_some() && ready.pop().is_none());
}
