//! I-3: does a Service that carries traffic ever come to point at nothing? And I-4 of blue-green
//! rollouts: at too few?

use gradus_api::names::label::POD_TEMPLATE_HASH;
use gradus_simkube::Write;
use serde_json::Value;

use super::sizes::Sizes;

/// Names of the Services of a Rollout that users reach: active and stable. A preview, or a canary
/// without weight, may be empty.
pub(super) fn of(spec: &Value) -> Vec<String> {
    let strategy = &spec["strategy"];
    let names = [&strategy["blueGreen"]["activeService"], &strategy["canary"]["stableService"]];
    names.into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What is wrong with a write of ours of one of these Services, if anything.
pub(super) fn judge(
    write: &Write,
    serving: &[String],
    sizes: &Sizes,
) -> Option<(&'static str, String)> {
    if !serving.iter().any(|name| **name == *write.after.meta.name) {
        return None;
    }
    let hash =
        |spec: &Value| spec["selector"][POD_TEMPLATE_HASH].as_str().unwrap_or_default().to_owned();
    let to = hash(&write.after.spec);
    let from = write.before.as_ref().map(|before| hash(&before.spec)).unwrap_or_default();
    if to == from || to.is_empty() {
        return None;
    }
    // Pods that came after the decision nobody could have waited for.
    let (available, all) = (sizes.available(&to).0, sizes.known_available());
    let is_empty = available == 0 && all > 0;
    let text = || format!("now selects {to:?} with no available pod, while others have {all}");
    let found = is_empty.then(|| ("I-3", text()));
    found.or_else(|| sizes.judge_active(&write.after.meta.name, &from, &to))
}
