//! Has a ReplicaSet the very template that it was last shown with? Who shares one template among
//! all that it shows of it, as the embedded cluster does, spares us the digest of each resize.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use gradus_engine::frame::Frame;
use serde_json::Value;

use crate::watched::Key;

/// Shared templates, by ReplicaSet. A weak reference keeps no template in memory, only its place
/// from being taken by another.
#[derive(Default)]
pub(super) struct Shown(BTreeMap<Key, Weak<Value>>);

impl Shown {
    /// Is it certain that the template is the one of the frame before? Notes the one of this frame.
    pub fn is_same(&mut self, frame: &Frame) -> bool {
        let key = Key::new(&frame.meta.namespace, &frame.meta.name);
        let now = frame.template.as_ref().map(Arc::downgrade);
        let before = match &now {
            Some(template) => self.0.insert(key, Weak::clone(template)),
            None => self.0.remove(&key),
        };
        matches!((before, now), (Some(before), Some(now)) if before.ptr_eq(&now))
    }

    /// Forgets the one of a ReplicaSet.
    pub fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_very_template_of_the_frame_before_is_the_same() {
        let frame = |template: Option<&Arc<Value>>| Frame {
            template: template.map(Arc::clone),
            ..Frame::default()
        };
        let (one, equal) = (Arc::new(json!({})), Arc::new(json!({})));
        let cases = [
            ("nothing is known of the first", Some(&one), false),
            ("the same again", Some(&one), true),
            ("another of equal text", Some(&equal), false),
            ("not the one before", Some(&one), false),
            ("one that is not shared", None, false),
            ("nor is the one before it", Some(&one), false),
            ("the same again, once more", Some(&one), true),
        ];
        let mut shown = Shown::default();
        for (what, template, expected) in cases {
            assert_eq!(shown.is_same(&frame(template)), expected, "{what}");
        }
    }
}
