//! Where two observations of one checkpoint differ, and which of these differences are known.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::{
    case::Case,
    rules::{RULES, Rule},
};

/// After so many Events about one object, the library that Argo Rollouts posts them with drops
/// what comes, and what is missing says nothing any more.
const EVENTS_AT_MOST: usize = 25;

/// One place where the sides differ; a null where a side has nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Field names with dots, as `rollout.status.phase`.
    pub path: String,
    pub argo: Value,
    pub ours: Value,
}

/// Both sides at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// How many actions were taken before.
    pub actions: usize,
    pub argo: Value,
    pub ours: Value,
}

/// The differences of a checkpoint.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Those that a rule explains.
    pub known: Vec<(Difference, &'static Rule)>,
    /// Those that nothing explains.
    pub unknown: Vec<Difference>,
}

impl Checkpoint {
    /// Compares both sides, as far as a case's actions are taken.
    pub fn compare(&self, case: &Case) -> Compared {
        let mut compared = Compared::default();
        for difference in differences(&self.argo, &self.ours) {
            let rule = RULES.iter().find(|rule| (rule.explains)(&difference, self, case));
            match rule {
                Some(rule) => compared.known.push((difference, rule)),
                None => compared.unknown.push(difference),
            }
        }
        compared
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: Argo {}, Gradus {}", self.path, self.argo, self.ours)
    }
}

/// Every place where two observations differ.
pub fn differences(argo: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let (empty, no_events) = (serde_json::Map::new(), Vec::new());
    let fields = |side: &Value| side.as_object().unwrap_or(&empty).clone();
    let (mut argo, mut ours) = (fields(argo), fields(ours));
    let events = |side: &mut serde_json::Map<String, Value>| {
        let list = side.remove("events");
        let list = list.as_ref().and_then(Value::as_array).unwrap_or(&no_events).clone();
        list.iter().map(|event| event.as_str().unwrap_or_default().to_owned()).collect()
    };
    let (argo_events, our_events): (Vec<String>, Vec<String>) =
        (events(&mut argo), events(&mut ours));
    walk("", &Value::Object(argo), &Value::Object(ours), &mut found);
    found.extend(event_differences(&argo_events, &our_events));
    found
}

fn walk(path: &str, argo: &Value, ours: &Value, found: &mut Vec<Difference>) {
    if argo == ours {
        return;
    }
    let (Value::Object(left), Value::Object(right)) = (argo, ours) else {
        found.push(Difference { path: path.to_owned(), argo: argo.clone(), ours: ours.clone() });
        return;
    };
    let more = right.keys().filter(|field| !left.contains_key(*field));
    for field in left.keys().chain(more) {
        let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        let at = |side: &serde_json::Map<String, Value>| side.get(field).cloned();
        walk(&path, &at(left).unwrap_or_default(), &at(right).unwrap_or_default(), found);
    }
}

/// Events that one side alone has, each with its text, and whether the others come in one order.
fn event_differences(argo: &[String], ours: &[String]) -> Vec<Difference> {
    if argo.len() >= EVENTS_AT_MOST || ours.len() >= EVENTS_AT_MOST {
        return Vec::new();
    }
    let (argo_rest, argo_common) = split(argo, ours);
    let (our_rest, our_common) = split(ours, argo);
    let one =
        |path: &str, argo: Value, ours: Value| Difference { path: path.to_owned(), argo, ours };
    let mut found = Vec::new();
    for event in argo_rest {
        found.push(one("events.missing", event.into(), Value::Null));
    }
    for event in our_rest {
        found.push(one("events.added", Value::Null, event.into()));
    }
    if argo_common != our_common {
        found.push(one("events.order", argo_common.into(), our_common.into()));
    }
    found
}

/// What only this list has, and what both have, in this list's order.
fn split(list: &[String], other: &[String]) -> (Vec<String>, Vec<String>) {
    let mut left = BTreeMap::<&String, usize>::new();
    for event in other {
        *left.entry(event).or_default() += 1;
    }
    let (mut rest, mut common) = (Vec::new(), Vec::new());
    for event in list {
        match left.get_mut(event) {
            Some(count) if *count > 0 => {
                *count -= 1;
                common.push(event.clone());
            }
            _ => rest.push(event.clone()),
        }
    }
    (rest, common)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What, Argo's Events, ours, and what is found.
    type EventRow<'a> = (&'a str, &'a [&'a str], &'a [&'a str], Vec<&'a str>);

    fn found(argo: Value, ours: Value) -> Vec<String> {
        differences(&argo, &ours).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_differing_field_is_named_with_both_values() {
        let cases = [
            ("equal", json!({"a": {"b": 1}}), json!({"a": {"b": 1}}), vec![]),
            (
                "a value",
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 2}}),
                vec!["a.b: Argo 1, Gradus 2"],
            ),
            (
                "one side has nothing",
                json!({"a": 1}),
                json!({"c": "x"}),
                vec!["a: Argo 1, Gradus null", "c: Argo null, Gradus \"x\""],
            ),
        ];
        for (what, argo, ours, expected) in cases {
            assert_eq!(found(argo, ours), expected, "{what}");
        }
    }

    #[test]
    fn events_are_compared_as_what_one_side_lacks_and_as_an_order() {
        let events = |list: &[&str]| json!({ "events": list });
        let cases: [EventRow; 5] = [
            ("equal", &["a", "b"], &["a", "b"], vec![]),
            ("one more", &["a"], &["a", "b"], vec!["events.added: Argo null, Gradus \"b\""]),
            ("one less", &["a", "a"], &["a"], vec!["events.missing: Argo \"a\", Gradus null"]),
            (
                "another order",
                &["a", "b"],
                &["b", "a"],
                vec![r#"events.order: Argo ["a","b"], Gradus ["b","a"]"#],
            ),
            (
                "what one lacks does not count for the order",
                &["a", "x", "b"],
                &["a", "b"],
                vec!["events.missing: Argo \"x\", Gradus null"],
            ),
        ];
        for (what, argo, ours, expected) in cases {
            assert_eq!(found(events(argo), events(ours)), expected, "{what}");
        }
        let many = vec!["x"; EVENTS_AT_MOST];
        assert_eq!(found(events(&many), events(&["a"])), [""; 0], "Argo's library drops the rest");
    }
}
