//! May a spec be carried out? What is wrong stays wrong until somebody edits it: no retry helps.

use gradus_engine::family::Family;
use gradus_engine::template::quantity::Quantity;
use serde::Deserialize;

use crate::api::{ACCEPTED, SECRET, Settled, Spec};
use crate::children::name_of;

#[cfg(test)]
mod tests;

/// The longest name that still fits into the labels of pods.
const LONGEST_NAME: usize = 52;
/// The longest name within PostgreSQL.
const LONGEST_IDENTIFIER: usize = 63;

/// Why a spec is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: &'static str,
    pub message: String,
}

/// The spec, if it is valid and takes nothing back that was accepted earlier.
pub fn spec(family: &Family) -> Result<Spec, Refusal> {
    let spec = Spec::deserialize(&*family.head.spec)
        .map_err(|error| Refusal::new("InvalidSpec", "spec", format!("cannot be read: {error}")))?;
    validate(&family.head.meta.name, &spec)?;
    let secret = family.member(&SECRET, &name_of(family, &SECRET));
    let text = secret.and_then(|secret| secret.meta.annotations.get(ACCEPTED));
    match text.and_then(|text| serde_json::from_str(text).ok()) {
        Some(earlier) => compare(&spec.settled, &earlier).map(|()| spec),
        None => Ok(spec),
    }
}

fn validate(name: &str, spec: &Spec) -> Result<(), Refusal> {
    let Settled { database, storage, user, version } = &spec.settled;
    let invalid = |field, message| Err(Refusal::new("InvalidSpec", field, message));
    if name.len() > LONGEST_NAME || name.contains('.') {
        let message = format!("expected at most {LONGEST_NAME} characters and no dots");
        return invalid("metadata.name", message);
    }
    if spec.replicas > 1 {
        let text =
            "expected 0 or 1: more replicas of plain PostgreSQL would be unrelated databases";
        return invalid("spec.replicas", format!("is {}, {text}", spec.replicas));
    }
    if numbers(version).is_none() {
        return invalid("spec.version", format!("is {version:?}, expected major.minor, as 15.6"));
    }
    if bytes(storage).is_none() {
        return invalid("spec.storage", format!("is {storage:?}, expected a size, as 10Gi"));
    }
    for (field, text) in [("spec.database", database), ("spec.user", user)] {
        if !is_identifier(text) {
            let message = format!(
                "is {text:?}, expected at most {LONGEST_IDENTIFIER} lower-case letters, digits and \
                 _, not beginning with a digit or pg_"
            );
            return invalid(field, message);
        }
    }
    Ok(())
}

fn compare(new: &Settled, old: &Settled) -> Result<(), Refusal> {
    let refused = |reason, field, message| Err(Refusal::new(reason, field, message));
    let (wanted, running) = (numbers(&new.version), numbers(&old.version));
    if wanted < running {
        let message = format!("is {}, but {} runs already", new.version, old.version);
        return refused("Downgrade", "spec.version", message);
    }
    if wanted.map(|(major, _)| major) != running.map(|(major, _)| major) {
        let message = format!("is {}, which cannot read the files of {}", new.version, old.version);
        let way_out = "dump this database and restore it into a new Database";
        return refused("MajorUpgrade", "spec.version", format!("{message}: {way_out}"));
    }
    if bytes(&new.storage) < bytes(&old.storage) {
        let message = format!("is {}, but a volume of {} cannot shrink", new.storage, old.storage);
        return refused("StorageShrink", "spec.storage", message);
    }
    let names = [("database", &new.database, &old.database), ("user", &new.user, &old.user)];
    if let Some((field, new, old)) = names.into_iter().find(|(_, new, old)| new != old) {
        let message = format!("is {new}, but it was made as {old} and stays so");
        return refused("Renamed", &format!("spec.{field}"), message);
    }
    Ok(())
}

impl Refusal {
    fn new(reason: &'static str, field: &str, message: String) -> Self {
        Refusal { reason, message: format!("{field} {message}") }
    }
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A size in bytes; `None` if it is no positive whole number of them.
pub fn bytes(text: &str) -> Option<u128> {
    let (sign, mantissa, exponent) = Quantity::parse(text).ok()?.value();
    let bytes = mantissa.checked_mul(10u128.checked_pow(u32::try_from(exponent).ok()?)?)?;
    (sign.is_empty() && bytes > 0).then_some(bytes)
}

fn is_identifier(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    text.len() <= LONGEST_IDENTIFIER
        && !text.starts_with("pg_")
        && text.bytes().next().is_some_and(is_letter)
        && text.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
