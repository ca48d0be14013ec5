//! Which hash names this pod template, and do two pod templates say the same?
//!
//! The hashes are bit-identical to Argo Rollouts': ReplicaSets keep their names when a cluster
//! moves between the two controllers. Equality finds a ReplicaSet whose hash was made otherwise.

use serde_json::Value;

use self::digest::{Fnv32, Sink};
use self::encode::{Dialect, write};
use self::order::{FieldType, Struct};

mod digest;
mod encode;
mod equal;
mod image;
mod order;
pub mod quantity;

pub use self::equal::{TemplateSide, injected_stable_hash, normalized_digest, users_template};

/// The value of the label `rollouts-pod-template-hash` for this template, as the API server
/// stores it: without the label, injected affinity or ephemeral metadata. A collision count of 0
/// differs from none.
pub fn pod_template_hash(template: &Value, collision_count: Option<i32>) -> String {
    template_hash(template, collision_count, Dialect::Current)
}

/// The same as Argo Rollouts computed it before 1.9.
pub fn legacy_pod_template_hash(template: &Value, collision_count: Option<i32>) -> String {
    template_hash(template, collision_count, Dialect::Legacy)
}

/// The value of `status.currentStepHash` for these `spec.strategy.canary.steps`.
pub fn step_hash(steps: &Value) -> String {
    hash_of_steps(steps, order::CanaryStep)
}

/// What older releases of Argo Rollouts would have stored for the same steps, newest first, where
/// it differs from [`step_hash`]: with one of these in the status the steps have not changed.
pub fn older_step_hashes(steps: &Value) -> Vec<String> {
    let mut hashes = Vec::new();
    let is_new = |step: &Value| CHANGED_STEPS.iter().any(|kind| step.get(kind).is_some());
    if !steps.as_array().is_some_and(|steps| steps.iter().any(is_new)) {
        return hashes;
    }
    let current = step_hash(steps);
    for step in [order::CanaryStepOf17, order::CanaryStepOf16, order::CanaryStepOf15] {
        let hash = hash_of_steps(steps, step);
        if hash != current && !hashes.contains(&hash) {
            hashes.push(hash);
        }
    }
    hashes
}

/// The kinds of steps that were not always written as they are today.
const CHANGED_STEPS: [&str; 3] = ["experiment", "analysis", "plugin"];

fn template_hash(template: &Value, collision_count: Option<i32>, dialect: Dialect) -> String {
    let mut hash = Fnv32::default();
    write(&mut hash, dialect, &FieldType::Struct(order::PodTemplateSpec), Some(template));
    if let Some(count) = collision_count {
        hash.put(&count.to_le_bytes());
        hash.put(&[0; 4]);
    }
    safe_text(hash)
}

fn hash_of_steps(steps: &Value, step: &'static Struct) -> String {
    let mut hash = Fnv32::default();
    match steps.as_array() {
        Some(items) if !items.is_empty() => {
            hash.put(b"[");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    hash.put(b",");
                }
                write(&mut hash, Dialect::Current, &FieldType::Struct(step), Some(item));
            }
            hash.put(b"]");
        }
        _ => hash.put(b"null"),
    }
    safe_text(hash)
}

/// The hash in decimal, in letters that form no words: Kubernetes' alphabet without vowels.
fn safe_text(hash: Fnv32) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let letter = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    hash.0.to_string().bytes().map(letter).collect()
}

#[cfg(test)]
mod tests;
