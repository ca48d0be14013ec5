//! Does a document have the fields of its kind, and nothing else?

use std::sync::LazyLock;

use gradus_api::{crd, names};
use gradus_simkube::schema::Schema;
use serde_json::Value;

use super::builtin;
use super::finding::Finding;
use crate::near;
use gradus_manifest::{Content, Document, Node};

/// A kind that is known here, by group and kind.
struct Known {
    group: String,
    kind: String,
    schema: Schema,
}

static KINDS: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let ours = crd::crds().into_iter().map(|(_, definition)| {
        let spec = &definition["spec"];
        Known {
            group: names::GROUP.to_owned(),
            kind: spec["names"]["kind"].as_str().unwrap_or_default().to_owned(),
            schema: compiled(&spec["versions"][0]["schema"]["openAPIV3Schema"]),
        }
    });
    let others = builtin::schemas().into_iter().map(|(group, kind, schema)| Known {
        group: group.to_owned(),
        kind: kind.to_owned(),
        schema: compiled(&schema),
    });
    ours.chain(others).collect()
});

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).expect("our own schemas are golden-tested")
}

/// Everything by which a document departs from the schema of its kind. Kinds that are not known
/// here are taken as they are.
pub fn check(document: &Document) -> Vec<Finding> {
    let Some(kind) = document.text(&["kind"]) else {
        let message = "a manifest needs a kind".to_owned();
        return vec![Finding::undecodable(document, "", message)];
    };
    let mut findings = Vec::new();
    repeated(document, &document.root, "", &mut findings);
    let group = document.text(&["apiVersion"]).unwrap_or_default();
    let group = group.split_once('/').map_or("", |(group, _)| group);
    let known = KINDS.iter().find(|known| known.group == group && known.kind == kind);
    let Some(known) = known else {
        findings.extend(slip(document, group, kind));
        return findings;
    };
    let object = document.json();
    findings.extend(known.schema.unknown_fields(&object).into_iter().map(|path| {
        let field = path.rsplit('.').next().unwrap_or_default();
        let message =
            format!("error unmarshaling JSON: while decoding JSON: json: unknown field {field:?}");
        Finding::unknown_field(document, &path, message)
    }));
    if group == names::GROUP && document.text(&["apiVersion"]) != Some(names::API_VERSION) {
        let message = format!("a cluster knows {kind} as {} alone", names::API_VERSION);
        findings.push(Finding::warning(document, "apiVersion", message));
    }
    let causes = known.schema.validate(&object, None);
    // The API server adds a word about checks that it left out; it is about no field.
    let causes = causes.into_iter().filter(|cause| cause.field != "<nil>");
    findings.extend(causes.map(|cause| Finding::error(document, &cause.field, cause.message)));
    findings
}

/// A kind or a group that is nearly one of ours. Others of the group belong to other programs.
fn slip(document: &Document, group: &str, kind: &str) -> Option<Finding> {
    let ours = KINDS.iter().filter(|known| known.group == names::GROUP);
    let kinds: Vec<String> = ours.map(|known| known.kind.clone()).collect();
    if group.is_empty() && kinds.iter().any(|known| known == kind) {
        let message = format!("a {kind} is of {}, so this is none", names::API_VERSION);
        return Some(Finding::warning(document, "apiVersion", message));
    }
    let near = near::offered(kind, &kinds);
    if group != names::GROUP || near.is_empty() {
        return None;
    }
    let message = format!("{group} has no kind {kind:?}; did you mean {}?", near.join(" or "));
    Some(Finding::warning(document, "kind", message))
}

/// Keys that stand twice in one object: only the last counts, and `kubectl create` refuses them.
fn repeated(document: &Document, node: &Node, path: &str, found: &mut Vec<Finding>) {
    match &node.content {
        Content::Scalar(_) => {}
        Content::List(items) => {
            for (at, item) in items.iter().enumerate() {
                repeated(document, item, &format!("{path}[{at}]"), found);
            }
        }
        Content::Object(entries) => {
            for entry in entries {
                let dot = if path.is_empty() { "" } else { "." };
                let below = format!("{path}{dot}{}", entry.key);
                if entry.is_repeated {
                    let message = "the key stands twice; only the last one counts".to_owned();
                    found.push(Finding::warning(document, &below, message));
                }
                repeated(document, &entry.value, &below, found);
            }
        }
    }
}
