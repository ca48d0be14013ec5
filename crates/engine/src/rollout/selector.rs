//! How is a label selector written as text, as an autoscaler reads it?

use gradus_api::rollout::LabelSelector;

/// `a=b,c in (x,y),!d`: requirements by key, values sorted.
pub(crate) fn text(selector: &LabelSelector) -> String {
    let equal = selector.match_labels.iter();
    let equal = equal.map(|(key, value)| (key.as_str(), format!("{key}={value}")));
    let further = selector.match_expressions.iter().map(|requirement| {
        let key = requirement.key.as_str();
        let mut values = requirement.values.clone();
        values.sort_unstable();
        let values = values.join(",");
        let text = match requirement.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        (key, text)
    });
    let mut requirements: Vec<(&str, String)> = equal.chain(further).collect();
    requirements.sort_by(|one, other| one.0.cmp(other.0));
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_sorted_by_key() {
        let selector: LabelSelector = serde_json::from_value(serde_json::json!({
            "matchLabels": { "b": "1" },
            "matchExpressions": [
                { "key": "c", "operator": "In", "values": ["y", "x"] },
                { "key": "a", "operator": "Exists" },
                { "key": "d", "operator": "DoesNotExist" },
            ],
        }))
        .unwrap();
        assert_eq!(text(&selector), "a,b=1,c in (x,y),!d");
    }
}
