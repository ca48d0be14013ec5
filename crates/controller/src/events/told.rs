//! Which failures to post an Event were told already? One per namespace, until one is posted there.

use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_engine::ask::Class;

/// Namespaces remembered; deleted ones would stay for ever. Beyond it all may be told once more.
const LIMIT: usize = 1_000;

/// What was told last of each namespace where Events cannot be posted. The server's words are no
/// measure of news: they name the Event.
#[derive(Debug, Default)]
pub(super) struct ToldNamespaces(BTreeMap<Arc<str>, Class>);

impl ToldNamespaces {
    /// Notes that an Event was given up; true if that is news.
    pub(super) fn is_news(&mut self, namespace: &Arc<str>, class: Class) -> bool {
        if self.0.len() >= LIMIT && !self.0.contains_key(namespace) {
            self.0.clear();
        }
        self.0.insert(Arc::clone(namespace), class) != Some(class)
    }

    /// Notes that an Event was posted.
    pub(super) fn is_well(&mut self, namespace: &str) {
        self.0.remove(namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_told_of_once_until_all_is_well_there() {
        let mut told = ToldNamespaces::default();
        let (shop, other) = (Arc::from("shop"), Arc::from("other"));
        assert!(told.is_news(&shop, Class::Denied));
        assert!(!told.is_news(&shop, Class::Denied), "another object, the same cause");
        assert!(told.is_news(&other, Class::Denied));
        assert!(told.is_news(&shop, Class::Unknown), "another cause");
        told.is_well("other");
        assert!(!told.is_news(&shop, Class::Unknown), "that was elsewhere");
        told.is_well("shop");
        assert!(told.is_news(&shop, Class::Unknown));
    }

    #[test]
    fn namespaces_that_come_and_go_are_not_kept_for_ever() {
        let mut told = ToldNamespaces::default();
        for number in 0..3 * LIMIT {
            assert!(told.is_news(&number.to_string().into(), Class::Gone));
        }
        assert!(told.0.len() <= LIMIT);
    }
}
