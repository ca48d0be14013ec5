//! What of a decision do people see? Everything but what would be written into a Secret.

use std::sync::Arc;

use gradus_engine::decision::{Change, Decision, Op};
use serde::Serialize;
use serde_json::{Value, json};

/// A decision for people to see. What would be written into a Secret is left out.
pub(super) fn shown<S: Serialize + Clone, M: Serialize + Clone>(
    decision: &Decision<S, M>,
) -> Value {
    let mut decision = decision.clone();
    let is_secret = |change: &&mut Change| change.target.kind.name == "Secret";
    for change in decision.changes.iter_mut().filter(is_secret) {
        if let Op::Create(body) | Op::Merge(body) = &mut change.op
            && let Some(fields) = Arc::make_mut(body).as_object_mut()
        {
            fields.retain(|field, _| field != "data" && field != "stringData");
        }
    }
    json!(decision)
}

#[test]
fn what_a_secret_would_hold_is_not_shown() {
    use gradus_engine::decision::{Kind, ObjectRef};
    let target = |kind| ObjectRef::new(kind, &"a".into(), &"b".into());
    let body = json!({ "stringData": { "x": "hidden" }, "data": {}, "metadata": { "labels": {} } });
    let secret = Kind::new("", "v1", "Secret", "secrets");
    let service = Kind::new("", "v1", "Service", "services");
    let changes = [secret, service].map(|kind| Change::create(target(kind), body.clone()));
    let decision: Decision<Value> = Decision { changes: changes.into(), ..Decision::default() };
    let seen = shown(&decision);
    let of = |at: usize| seen["changes"][at]["op"]["Create"].clone();
    assert_eq!(of(0), json!({ "metadata": { "labels": {} } }));
    assert_eq!(of(1), body, "other kinds are shown whole");
}
