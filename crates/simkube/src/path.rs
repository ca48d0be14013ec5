//! Kubernetes' JSONPath, as far as printer columns and scale paths use it.

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// Negative positions count from the end.
    Index(i64),
    All,
    /// `[?(@.a.b == "c")]`; without a comparison the field must be there.
    Filter(JsonPath, Option<(Comparison, Value)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The text is not a path this module reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("json path {path:?} is not understood from {rest:?} on")]
pub struct PathError {
    path: String,
    rest: String,
}

impl JsonPath {
    /// Reads `.spec.a`, `.a['b.c']`, `.list[0]`, `.list[*].x`, `.list[?(@.type=="Ready")].status`.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let inside = text.trim().trim_start_matches('{').trim_end_matches('}');
        let mut rest = inside.strip_prefix('$').unwrap_or(inside);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let parsed = step(rest);
            let Some((one, after)) = parsed else {
                return Err(PathError { path: text.to_owned(), rest: rest.to_owned() });
            };
            steps.push(one);
            rest = after;
        }
        Ok(Self { steps })
    }

    /// Everything the path leads to.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.apply(value)).collect();
        }
        found
    }

    /// The first thing the path leads to.
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.find(value).into_iter().next()
    }
}

impl Step {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Field(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
            (Self::Index(at), Value::Array(items)) => {
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let at = if *at < 0 { *at + length } else { *at };
                usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(fields)) => fields.values().collect(),
            (Self::Filter(path, comparison), Value::Array(items)) => {
                items.iter().filter(|item| passes(item, path, comparison.as_ref())).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn passes(item: &Value, path: &JsonPath, comparison: Option<&(Comparison, Value)>) -> bool {
    let found = path.first(item);
    match (found, comparison) {
        (found, None) => found.is_some(),
        (None, Some(_)) => false,
        (Some(found), Some((comparison, wanted))) => comparison.holds(found, wanted),
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        use std::cmp::Ordering;
        let order = match (left, right) {
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().partial_cmp(&right.as_f64())
            }
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            _ => (left == right).then_some(Ordering::Equal),
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

fn step(text: &str) -> Option<(Step, &str)> {
    if let Some(rest) = text.strip_prefix("[?(") {
        let end = rest.find(")]")?;
        return Some((filter(&rest[..end])?, &rest[end + 2..]));
    }
    if let Some(rest) = text.strip_prefix("[*]").or_else(|| text.strip_prefix(".*")) {
        return Some((Step::All, rest));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let quote = rest.chars().next()?;
        if matches!(quote, '\'' | '"') {
            let (name, rest) = rest[1..].split_once(quote)?;
            return Some((Step::Field(unescape(name)), rest.strip_prefix(']')?));
        }
        let (number, rest) = rest.split_once(']')?;
        return Some((Step::Index(number.trim().parse().ok()?), rest));
    }
    let rest = text.strip_prefix('.')?;
    let end = field_end(rest);
    (end > 0).then(|| (Step::Field(unescape(&rest[..end])), &rest[end..]))
}

fn field_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '.' | '[' | ' ' | '=' | '!' | '<' | '>' => return at,
            _ => {}
        }
    }
    text.len()
}

fn unescape(name: &str) -> String {
    name.replace('\\', "")
}

fn filter(text: &str) -> Option<Step> {
    let operators = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let found = operators.iter().find_map(|(sign, comparison)| {
        let (left, right) = text.split_once(sign)?;
        Some((left, Some((*comparison, literal(right.trim())?))))
    });
    let (left, comparison) = found.unwrap_or((text, None));
    let path = JsonPath::parse(left.trim().strip_prefix('@')?).ok()?;
    Some(Step::Filter(path, comparison))
}

fn literal(text: &str) -> Option<Value> {
    let unquoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    match unquoted {
        Some(unquoted) => Some(Value::from(unquoted)),
        None => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_what_kubectl_finds() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "x"}},
            "spec": {"replicas": 3, "list": [{"n": "a", "v": 1}, {"n": "b", "v": 2}]},
            "status": {"conditions": [
                {"type": "Old", "status": "No"}, {"type": "Ready", "status": "True"}
            ]}
        });
        let cases = [
            (".spec.replicas", json!([3])),
            ("{.spec.replicas}", json!([3])),
            ("$.spec.list[0].n", json!(["a"])),
            (".spec.list[-1].n", json!(["b"])),
            (".spec.list[*].v", json!([1, 2])),
            (".spec.list[?(@.v > 1)].n", json!(["b"])),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
            (".status.conditions[?(@.type=='Gone')].status", json!([])),
            (".spec.list[?(@.n)].v", json!([1, 2])),
            (".metadata.labels['a.b/c']", json!(["x"])),
            (r".metadata.labels.a\.b/c", json!(["x"])),
            (".spec.absent.x", json!([])),
        ];
        for (text, expected) in cases {
            let found = JsonPath::parse(text).unwrap();
            assert_eq!(json!(found.find(&object)), expected, "{text}");
        }
        for text in ["spec", ".spec[", ".spec[x]", ".a[?(b)]", "."] {
            assert!(JsonPath::parse(text).is_err(), "{text}");
        }
    }
}
