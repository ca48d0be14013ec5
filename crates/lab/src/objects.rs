//! Are the objects around a scenario's own there, and as they must be?

use serde_json::Value;

use crate::scenario::End;

impl End {
    /// Every object that this end speaks of, by `apiVersion`, `kind` and `metadata.name`.
    pub fn named(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().chain(&self.absent)
    }

    /// The first object that is not as this end wants it, in words. `find` gives the object that
    /// another one names.
    pub fn unmet(&self, mut find: impl FnMut(&Value) -> Option<Value>) -> Option<String> {
        for wanted in &self.objects {
            let Some(found) = find(wanted) else {
                return Some(format!("{} is missing", name_of(wanted)));
            };
            if let Some(path) = difference(&found, wanted, String::new()) {
                let at = path.replace('.', "/");
                let (field, name) = (path.trim_start_matches('.'), name_of(wanted));
                let (found, expected) = (found.pointer(&at), wanted.pointer(&at));
                let text = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
                let (found, expected) = (text(found), text(expected));
                return Some(format!("{name}: {field} is {found}, expected {expected}"));
            }
        }
        let stays = self.absent.iter().find(|gone| find(gone).is_some())?;
        Some(format!("{} is there, expected none", name_of(stays)))
    }
}

/// Where an object does not contain what is wanted of it.
fn difference(found: &Value, wanted: &Value, path: String) -> Option<String> {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().find_map(|(field, value)| {
                let under = found.get(field).unwrap_or(&Value::Null);
                difference(under, value, format!("{path}.{field}"))
            })
        }
        (Value::Array(found), Value::Array(wanted)) if found.len() == wanted.len() => {
            let pairs = found.iter().zip(wanted).enumerate();
            pairs
                .into_iter()
                .find_map(|(at, (found, wanted))| difference(found, wanted, format!("{path}.{at}")))
        }
        _ => (found != wanted).then_some(path),
    }
}

fn name_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_must_contain_what_is_wanted_and_may_contain_more() {
        let found = json!({"kind": "Service", "metadata": {"name": "a", "uid": "1"},
            "spec": {"ports": [{"port": 1, "protocol": "TCP"}], "type": "ClusterIP"}});
        let wants =
            |spec: Value| json!({"kind": "Service", "metadata": {"name": "a"}, "spec": spec});
        let cases = [
            ("nothing more", wants(json!({})), None),
            ("a part of it", wants(json!({"ports": [{"port": 1}]})), None),
            (
                "another value",
                wants(json!({"type": "NodePort"})),
                Some("Service a: spec.type is \"ClusterIP\", expected \"NodePort\""),
            ),
            (
                "more in a list",
                wants(json!({"ports": []})),
                Some("Service a: spec.ports is [{\"port\":1,\"protocol\":\"TCP\"}], expected []"),
            ),
        ];
        for (what, wanted, expected) in cases {
            let end = End { objects: vec![wanted], ..End::default() };
            let unmet = end.unmet(|_| Some(found.clone()));
            assert_eq!(unmet.as_deref(), expected, "{what}");
        }
        let end = End { objects: vec![wants(json!({}))], ..End::default() };
        assert_eq!(end.unmet(|_| None).unwrap(), "Service a is missing");
        let end = End { absent: vec![wants(json!({}))], ..End::default() };
        assert_eq!(
            end.unmet(|_| Some(found.clone())).unwrap(),
            "Service a is there, expected none"
        );
    }
}
