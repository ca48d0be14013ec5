//! Tables for label and field selectors.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::json;

use super::{FieldSelector, LabelSelector};

fn labels() -> BTreeMap<String, String> {
    [("app", "web"), ("tier", "front"), ("generation", "3")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

#[test]
fn label_selectors_match_as_kubernetes_does() {
    let cases = [
        ("", true),
        ("app=web", true),
        ("app==web", true),
        ("app = web , tier=front", true),
        ("app=api", false),
        ("app!=api", true),
        ("absent!=x", true),
        ("app in (api, web)", true),
        ("app in (api)", false),
        ("app notin (api)", true),
        ("absent notin (api)", true),
        ("app", true),
        ("absent", false),
        ("!absent", true),
        ("!app", false),
        ("generation>2", true),
        ("generation<2", false),
        ("absent=", false),
        ("app,tier=front,!absent,app in (web)", true),
    ];
    for (text, expected) in cases {
        let selector = LabelSelector::parse(text).unwrap();
        assert_eq!(selector.matches(&labels()), expected, "{text}");
        let again = LabelSelector::parse(&selector.to_string()).unwrap();
        assert_eq!(again, selector, "{text} is printed as it reads");
    }
}

#[test]
fn malformed_label_selectors_are_refused() {
    for text in ["app in", "app in web", "a=b,", "=b", "a=b c", "(a)", "a>x", "a in (b", "!"] {
        assert!(LabelSelector::parse(text).is_err(), "{text}");
    }
}

#[test]
fn match_labels_and_expressions_are_one_selector() {
    let selector = LabelSelector::from_json(&json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "back"]},
            {"key": "app", "operator": "Exists"},
            {"key": "gone", "operator": "DoesNotExist"},
            {"key": "tier", "operator": "NotIn", "values": ["middle"]}
        ]
    }))
    .unwrap();
    assert!(selector.matches(&labels()));
    assert_eq!(selector.to_string(), "app=web,app,!gone,tier in (back,front),tier notin (middle)");
    assert!(LabelSelector::from_json(&json!({})).unwrap().is_empty());
    let unknown = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    assert!(LabelSelector::from_json(&unknown).is_err());
}

#[test]
fn field_selectors_compare_text() {
    let value_of = |field: &str| -> Cow<'static, str> {
        Cow::Borrowed(match field {
            "metadata.name" => "a,b",
            "status.phase" => "Running",
            _ => "",
        })
    };
    let cases = [
        ("", true),
        ("status.phase=Running", true),
        ("status.phase==Running,metadata.name!=x", true),
        ("status.phase!=Running", false),
        (r"metadata.name=a\,b", true),
        ("spec.nodeName=", true),
    ];
    for (text, expected) in cases {
        assert_eq!(FieldSelector::parse(text).unwrap().matches(value_of), expected, "{text}");
    }
    assert!(FieldSelector::parse("status.phase").is_err());
    assert_eq!(FieldSelector::parse("a=b").unwrap().required("a"), Some("b"));
}
