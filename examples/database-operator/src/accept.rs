//! May a spec be carried out? What is wrong stays wrong until somebody edits it: no retry helps.

use gradus_engine::template::quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::api::{ACCEPTED, Spec};
use crate::world::World;

#[cfg(test)]
mod tests;

/// The longest name that still fits into the labels of pods.
const LONGEST_NAME: usize = 52;
/// The longest name within PostgreSQL.
const LONGEST_IDENTIFIER: usize = 63;

/// Why a spec is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// In one word.
    pub reason: &'static str,
    /// The field at fault.
    pub field: &'static str,
    /// For people: what is wrong and what was expected.
    pub message: String,
}

/// What was accepted once: the database was made with it, so later specs are held against it. It is
/// kept on the Secret, which lives as long as the data do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    version: String,
    storage: String,
    database: String,
    user: String,
}

impl Accepted {
    /// What accepting this spec means.
    pub fn of(spec: &Spec) -> Self {
        let Spec { version, storage, database, user, .. } = spec.clone();
        Accepted { version, storage, database, user }
    }
}

/// The spec, if it is valid and takes nothing back that was accepted earlier.
pub fn spec(world: &World) -> Result<Spec, Refusal> {
    let database = &world.database;
    let spec = Spec::deserialize(&*database.spec)
        .map_err(|error| invalid("spec", format!("spec cannot be read: {error}")))?;
    validate(&database.object.name, &spec)?;
    let secret = world.secret.as_ref();
    let text = secret.and_then(|one| one.content["metadata"]["annotations"][ACCEPTED].as_str());
    match text.and_then(|text| serde_json::from_str::<Accepted>(text).ok()) {
        Some(earlier) => compare(&spec, &earlier).map(|()| spec),
        None => Ok(spec),
    }
}

fn validate(name: &str, spec: &Spec) -> Result<(), Refusal> {
    if name.len() > LONGEST_NAME || name.contains('.') {
        let message =
            format!("metadata.name: expected at most {LONGEST_NAME} characters and no dots");
        return Err(invalid("metadata.name", message));
    }
    if spec.replicas > 1 {
        let message = format!(
            "spec.replicas is {}: expected 0 or 1, because more replicas of plain PostgreSQL would \
             be unrelated databases",
            spec.replicas
        );
        return Err(invalid("spec.replicas", message));
    }
    if version(&spec.version).is_none() {
        let message = format!("spec.version {:?}: expected major.minor, as 15.6", spec.version);
        return Err(invalid("spec.version", message));
    }
    if bytes(&spec.storage).is_none() {
        let message = format!("spec.storage {:?}: expected a size, as 10Gi", spec.storage);
        return Err(invalid("spec.storage", message));
    }
    for (field, text) in [("spec.database", &spec.database), ("spec.user", &spec.user)] {
        if !is_identifier(text) {
            let message = format!(
                "{field} {text:?}: expected lower-case letters, digits and _, not beginning with \
                 a digit or pg_, at most {LONGEST_IDENTIFIER}"
            );
            return Err(invalid(field, message));
        }
    }
    Ok(())
}

fn compare(new: &Spec, old: &Accepted) -> Result<(), Refusal> {
    let refused = |reason, field, message: String| Err(Refusal { reason, field, message });
    let (wanted, running) = (version(&new.version), version(&old.version));
    if wanted < running {
        let message = format!("spec.version {}: {} runs already", new.version, old.version);
        return refused("Downgrade", "spec.version", message);
    }
    if wanted.map(|(major, _)| major) != running.map(|(major, _)| major) {
        let message = format!(
            "spec.version {}: PostgreSQL {} cannot read the files of {}; dump this database and \
             restore it into a new Database",
            new.version, new.version, old.version
        );
        return refused("MajorUpgrade", "spec.version", message);
    }
    if bytes(&new.storage) < bytes(&old.storage) {
        let message =
            format!("spec.storage {}: a volume of {} cannot shrink", new.storage, old.storage);
        return refused("StorageShrink", "spec.storage", message);
    }
    let names =
        [("spec.database", &new.database, &old.database), ("spec.user", &new.user, &old.user)];
    for (field, new, old) in names {
        if new != old {
            let message = format!("{field} {new}: it was made as {old}, which cannot change");
            return refused("Renamed", field, message);
        }
    }
    Ok(())
}

fn invalid(field: &'static str, message: String) -> Refusal {
    Refusal { reason: "InvalidSpec", field, message }
}

fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A size in bytes; `None` if it is no positive whole number of them.
pub fn bytes(text: &str) -> Option<u128> {
    let (sign, mantissa, exponent) = Quantity::parse(text).ok()?.value();
    let power = 10u128.checked_pow(u32::try_from(exponent).ok()?)?;
    let bytes = mantissa.checked_mul(power)?;
    (sign.is_empty() && bytes > 0).then_some(bytes)
}

fn is_identifier(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    text.len() <= LONGEST_IDENTIFIER
        && !text.starts_with("pg_")
        && text.bytes().next().is_some_and(is_letter)
        && text.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
