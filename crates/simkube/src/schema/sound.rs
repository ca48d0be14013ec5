//! Is a value just as its schema wants it: nothing to remove, nothing to fill in, nothing wrong?
//! One walk over both says so of nearly every value that is written. It may say no where the
//! slower walks find nothing, never yes where they find something.

use serde_json::{Map, Number, Value};

use super::validate::same_keys;
use super::{Additional, Checks, ListKind, Node};

/// Is this certain to be left as it is and accepted? Validation rules are not asked.
pub fn is_sound(node: &Node, value: &Value) -> bool {
    if value.is_null() {
        return node.nullable;
    }
    if node.kind.is_some_and(|kind| !kind.accepts(value)) {
        return false;
    }
    if node.checks.as_ref().is_some_and(|checks| !checks.hold(value)) {
        return false;
    }
    match value {
        Value::Object(fields) => are_sound(node, fields),
        Value::Array(items) => {
            let each = node.items.as_deref();
            each.is_none_or(|each| items.iter().all(|item| is_sound(each, item)))
                && are_unique(&node.list, items)
        }
        _ => true,
    }
}

/// The fields of an object: all of them known and sound, and none missing.
fn are_sound(node: &Node, fields: &Map<String, Value>) -> bool {
    if node.is_resource || node.requires_unnamed {
        return false;
    }
    if let Additional::Each(each) = &node.additional {
        return node.properties.is_empty() && fields.values().all(|value| is_sound(each, value));
    }
    let keeps_others = node.preserves_unknown || matches!(node.additional, Additional::Any);
    let mut missing = node.needed;
    // Both are sorted by name.
    let mut properties = node.properties.iter();
    for (name, value) in fields {
        let left = properties.clone();
        match properties.find(|(property, _)| **property == **name) {
            Some((_, child)) => {
                missing -= usize::from(child.is_needed);
                if !(child.is_fine(value) || is_sound(child, value)) {
                    return false;
                }
            }
            None if keeps_others => properties = left,
            None => return false,
        }
    }
    missing == 0
}

fn are_unique(list: &ListKind, items: &[Value]) -> bool {
    let is_new = |at: usize| {
        let (earlier, item) = (&items[..at], &items[at]);
        match list {
            ListKind::Atomic => true,
            ListKind::Set => !earlier.contains(item),
            ListKind::Map(keys) => !earlier.iter().any(|one| same_keys(keys, one, item)),
        }
    };
    *list == ListKind::Atomic || (1..items.len()).all(is_new)
}

impl Checks {
    /// Does a value certainly meet all of them?
    fn hold(&self, value: &Value) -> bool {
        let within = |count: usize, least: Option<u64>, most: Option<u64>| {
            let count = count as u64;
            least.is_none_or(|least| least <= count) && most.is_none_or(|most| count <= most)
        };
        let holds = match value {
            Value::String(text) => self.text_holds(text),
            Value::Number(number) => self.number_holds(number),
            Value::Array(items) => within(items.len(), self.min_items, self.max_items),
            Value::Object(fields) => within(fields.len(), self.min_properties, self.max_properties),
            Value::Null | Value::Bool(_) => true,
        };
        holds
            && (self.choices.is_empty() || self.choices.contains(value))
            && (!self.has_alternatives() || self.alternatives_hold(value))
    }

    fn text_holds(&self, text: &str) -> bool {
        let length = || text.chars().count() as u64;
        self.max_length.is_none_or(|most| length() <= most)
            && self.min_length.is_none_or(|least| least <= length())
            && self.pattern.as_ref().is_none_or(|(_, regex)| regex.is_match(text))
            && self.format.as_ref().is_none_or(|(_, test)| test(text))
    }

    fn number_holds(&self, number: &Number) -> bool {
        let number = number.as_f64().unwrap_or_default();
        let is_below = |most: f64| number < most || (!self.exclusive_maximum && number <= most);
        let is_above = |least: f64| number > least || (!self.exclusive_minimum && number >= least);
        self.maximum.is_none_or(is_below)
            && self.minimum.is_none_or(is_above)
            && self.multiple_of.is_none_or(|step| (number / step).fract() == 0.0)
    }

    /// A number or a text, as ports and percentages are; all else is left to the slower walk.
    fn alternatives_hold(&self, value: &Value) -> bool {
        self.all_of.is_empty()
            && self.one_of.is_empty()
            && self.not.is_none()
            && self.any_of.iter().any(|one| one.is_fine(value))
    }
}
