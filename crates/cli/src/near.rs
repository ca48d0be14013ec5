//! What was probably meant by a name that does not exist?

use gradus_engine::decision::Kind;
use serde_json::Value;

use crate::cluster::{Cluster, PatchKind, Refusal, ResourcePart, Scope};

/// Most names that are offered.
const OFFERED: usize = 5;

/// The object of a name; where there is none, with what helps.
pub async fn get(cluster: &Cluster, kind: &Kind, name: &str) -> anyhow::Result<Value> {
    match cluster.get(kind, name).await {
        Ok(object) => Ok(object),
        Err(refusal) => Err(explained(cluster, kind, name, refusal).await),
    }
}

/// Lays a merge patch over the main resource of a name; where there is none, with what helps.
pub async fn merge(cluster: &Cluster, kind: &Kind, name: &str, body: &Value) -> anyhow::Result<()> {
    match cluster.patch(kind, name, ResourcePart::Main, (PatchKind::Merge, body)).await {
        Ok(_) => Ok(()),
        Err(refusal) => Err(explained(cluster, kind, name, refusal).await),
    }
}

/// The refusal of a name, with what helps: names like it, or the namespace where it is.
pub async fn explained(
    cluster: &Cluster,
    kind: &Kind,
    name: &str,
    refusal: Refusal,
) -> anyhow::Error {
    let Refusal::NotFound(said) = refusal else { return refusal.into() };
    let listed = match cluster.list(kind, "").await {
        Ok(listed) => listed,
        Err(Refusal::NotFound(_)) => {
            return anyhow::anyhow!("{said}\n  (is the CRD of {}s installed?)", kind.name);
        }
        // Who may read one object alone gets no names like it.
        Err(_) => return anyhow::anyhow!("{said}"),
    };
    let hint = match offered(name, &names(&listed)) {
        near if !near.is_empty() => format!("did you mean {}?", near.join(" or ")),
        _ => elsewhere(cluster, kind, name, listed.len()).await,
    };
    anyhow::anyhow!("{said}\n  {hint}")
}

/// The same for a name that was looked for among what had been read.
pub async fn absent(cluster: &Cluster, kind: &Kind, name: &str) -> anyhow::Error {
    explained(cluster, kind, name, Refusal::NotFound(said(kind, name))).await
}

/// `rollout.argoproj.io "web" not found`
pub fn said(kind: &Kind, name: &str) -> String {
    let singular = kind.name.to_lowercase();
    match &*kind.group {
        "" => format!("{singular} \"{name}\" not found"),
        group => format!("{singular}.{group} \"{name}\" not found"),
    }
}

async fn elsewhere(cluster: &Cluster, kind: &Kind, name: &str, count: usize) -> String {
    let here = &cluster.namespace;
    let kinds = format!("{}s", kind.name);
    let scope = Scope { name: Some(name), everywhere: true };
    let same = cluster.list_scope(kind, scope).await.unwrap_or_default();
    let places: Vec<&str> =
        same.iter().filter_map(|object| object["metadata"]["namespace"].as_str()).collect();
    match (places.first(), count) {
        (Some(place), _) => format!("there is one in namespace {place}: add -n {place}"),
        (None, 0) => format!("there are no {kinds} in namespace {here}; -n chooses another"),
        (None, count) => format!("none of the {count} {kinds} in namespace {here} is called so"),
    }
}

/// The names of objects.
pub fn names(objects: &[Value]) -> Vec<String> {
    let names = objects.iter().filter_map(|object| object["metadata"]["name"].as_str());
    names.map(str::to_owned).collect()
}

/// The names most like the wanted one, the nearest first, in quotes.
pub fn offered(wanted: &str, names: &[String]) -> Vec<String> {
    let far = (wanted.chars().count() / 3).max(2);
    let mut near: Vec<(usize, &String)> = names
        .iter()
        .map(|name| (distance(wanted, name), name))
        .filter(|(distance, name)| *distance <= far || name.contains(wanted))
        .collect();
    if near.is_empty() {
        let alike = names.iter().filter(|name| begins_alike(wanted, name));
        near.extend(alike.map(|name| (distance(wanted, name), name)));
    }
    near.sort();
    near.iter().take(OFFERED).map(|(_, name)| format!("\"{name}\"")).collect()
}

/// Do most of the letters of both stand at their beginning, as with a word that is cut short?
fn begins_alike(one: &str, other: &str) -> bool {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let longer = one.chars().count().max(other.chars().count());
    same >= 5 && 2 * same >= longer
}

/// How many letters must be typed, removed or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut next = vec![at + 1];
        for (column, known) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != *known);
            next.push(replaced.min(last[column + 1] + 1).min(next[column] + 1));
        }
        last = next;
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_like_the_wanted_one_are_offered() {
        let names = ["checkout", "cart", "search", "checkout-worker"].map(str::to_owned);
        let cases = [
            ("a letter too few", "chekout", "\"checkout\""),
            ("a beginning", "check", "\"checkout\" \"checkout-worker\""),
            ("two letters swapped", "crat", "\"cart\""),
            ("cut short", "checkout-wk-one", "\"checkout-worker\""),
            ("nothing like it", "payments", ""),
        ];
        for (what, wanted, expected) in cases {
            assert_eq!(offered(wanted, &names).join(" "), expected, "{what}");
        }
    }

    #[test]
    fn a_name_that_is_missing_is_said_as_kubectl_says_it() {
        use gradus_engine::kinds;
        assert_eq!(said(&kinds::ROLLOUT, "x"), "rollout.argoproj.io \"x\" not found");
        assert_eq!(said(&kinds::POD, "x"), "pod \"x\" not found");
    }
}
