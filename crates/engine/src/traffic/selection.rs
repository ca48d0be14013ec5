//! Routes that a Rollout does not name but selects, by their labels.

use std::sync::Arc;

use gradus_api::rollout::LabelSelector;

use crate::decision::{Kind, ObjectRef};

/// All objects of a kind in a namespace that have certain labels.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteSelection {
    /// The kind.
    pub kind: Kind,
    /// The namespace.
    pub namespace: Arc<str>,
    /// What their labels are; an empty one selects all.
    pub selector: LabelSelector,
}

impl RouteSelection {
    /// Does it select an object with these labels?
    pub fn selects<'l>(&self, object: &ObjectRef, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        object.kind == self.kind
            && object.namespace == self.namespace
            && matches(&self.selector, label)
    }
}

fn matches<'l>(selector: &LabelSelector, label: impl Fn(&str) -> Option<&'l str>) -> bool {
    let is_given = |(key, value): (&String, &String)| label(key) == Some(value);
    selector.match_labels.iter().all(is_given)
        && selector.match_expressions.iter().all(|requirement| {
            let value = label(&requirement.key);
            let is_listed =
                || value.is_some_and(|value| requirement.values.iter().any(|one| one == value));
            match requirement.operator.as_str() {
                "In" => is_listed(),
                "NotIn" => !is_listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

#[test]
fn labels_select_as_in_kubernetes() {
    let labels = |key: &str| match key {
        "app" => Some("web"),
        "tier" => Some("front"),
        _ => None,
    };
    let one = |key: &str, operator: &str, values: &[&str]| {
        serde_json::json!({ "matchExpressions": [
            { "key": key, "operator": operator, "values": values },
        ] })
    };
    let cases = [
        (serde_json::json!({}), true),
        (serde_json::json!({ "matchLabels": { "app": "web" } }), true),
        (serde_json::json!({ "matchLabels": { "app": "web", "tier": "back" } }), false),
        (one("app", "In", &["shop", "web"]), true),
        (one("app", "In", &["shop"]), false),
        (one("zone", "In", &["a"]), false),
        (one("app", "NotIn", &["shop"]), true),
        (one("zone", "NotIn", &["a"]), true),
        (one("app", "NotIn", &["web"]), false),
        (one("app", "Exists", &[]), true),
        (one("zone", "Exists", &[]), false),
        (one("zone", "DoesNotExist", &[]), true),
        (one("app", "DoesNotExist", &[]), false),
    ];
    for (selector, expected) in cases {
        let read: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
        assert_eq!(matches(&read, labels), expected, "{selector}");
    }
}
