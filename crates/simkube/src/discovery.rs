//! Which kinds does the server serve? The documents of `/api` and `/apis`, old and aggregated.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kinds::{KindId, KindInfo, Kinds};
use crate::service::{Discovery, REVIEWS};

const PLAIN: &str = "application/json";
const AGGREGATED_V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_V2_BETA_1: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The same for custom kinds, in the order in which a real server tells them.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The document of `/version`. It names the release whose behaviour is imitated.
pub fn version() -> Value {
    json!({
        "major": "1", "minor": "35", "gitVersion": "v1.35.4+simkube",
        "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "", "platform": "simkube",
    })
}

/// A discovery document and its content type, or nothing if the group or version is not served.
pub fn document(
    kinds: &Kinds,
    what: &Discovery,
    accept: &str,
    host: &str,
) -> Option<(&'static str, Value)> {
    let groups = groups(kinds);
    match what {
        Discovery::Core | Discovery::Groups => {
            if let Some((content_type, version)) = aggregated(accept) {
                let is_core = *what == Discovery::Core;
                return Some((content_type, discovery_list(&groups, is_core, version)));
            }
            let document = if *what == Discovery::Core { core(host) } else { group_list(&groups) };
            Some((PLAIN, document))
        }
        Discovery::Group(name) => {
            let versions = groups.get(name.as_str()).filter(|_| !name.is_empty())?;
            let mut document = group(name, versions);
            document["kind"] = json!("APIGroup");
            document["apiVersion"] = json!("v1");
            Some((PLAIN, document))
        }
        Discovery::Version(name, version) => {
            let resources = groups.get(name.as_str())?.get(version.as_str())?;
            Some((PLAIN, resource_list(name, version, resources)))
        }
    }
}

/// The aggregated form the client asks for first. kubectl 1.27 to 1.29 know only the older one,
/// and see nothing at all if they get the newer.
fn aggregated(accept: &str) -> Option<(&'static str, &'static str)> {
    for range in accept.split(',') {
        let has = |text: &str| range.split(';').any(|part| part.trim() == text);
        if !has("as=APIGroupDiscoveryList") {
            if has("application/json") || has("*/*") {
                return None;
            }
        } else if has("v=v2") && has("application/json") {
            return Some((AGGREGATED_V2, "v2"));
        } else if has("v=v2beta1") && has("application/json") {
            return Some((AGGREGATED_V2_BETA_1, "v2beta1"));
        }
    }
    None
}

/// One resource, or one side of it, as both forms need it.
struct Resource {
    plural: String,
    singular: String,
    kind: String,
    namespaced: bool,
    custom: bool,
    short_names: Vec<String>,
    categories: Vec<String>,
    verbs: Vec<&'static str>,
    sides: Vec<Side>,
}

struct Side {
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: String,
    verbs: &'static [&'static str],
}

/// Group, version, resources.
type Groups<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<Resource>>>;

fn groups(kinds: &Kinds) -> Groups<'_> {
    let mut groups = Groups::new();
    for (id, kind) in kinds.served() {
        let versions = groups.entry(&kind.group).or_default();
        versions.entry(&kind.version).or_default().push(resource(id, kind));
    }
    for review in REVIEWS {
        let versions = groups.entry(review.group).or_default();
        versions.entry("v1").or_default().push(Resource {
            plural: review.plural.into(),
            singular: review.kind.to_lowercase(),
            kind: review.kind.into(),
            namespaced: false,
            custom: false,
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: vec!["create"],
            sides: Vec::new(),
        });
    }
    for resources in groups.values_mut().flat_map(BTreeMap::values_mut) {
        resources.sort_by(|left, right| left.plural.cmp(&right.plural));
    }
    groups
}

fn resource(id: KindId, kind: &KindInfo) -> Resource {
    const READ_AND_WRITE: &[&str] = &["get", "patch", "update"];
    let mut sides = Vec::new();
    let mut side = |name, group, version, kind: &str, verbs| {
        sides.push(Side { name, group, version, kind: kind.into(), verbs });
    };
    if id == KindId::POD {
        side("binding", "", "", "Binding", &["create"]);
        side("eviction", "policy", "v1", "Eviction", &["create"]);
    }
    if kind.scale.is_some() {
        side("scale", "autoscaling", "v1", "Scale", READ_AND_WRITE);
    }
    if kind.has_status {
        side("status", "", "", &kind.kind, READ_AND_WRITE);
    }
    if kind.custom {
        sides.reverse();
    }
    let mut verbs = if kind.custom { CUSTOM_VERBS } else { VERBS }.to_vec();
    verbs.retain(|verb| id != KindId::NAMESPACE || *verb != "deletecollection");
    Resource {
        plural: kind.plural.to_string(),
        singular: kind.singular.to_string(),
        kind: kind.kind.to_string(),
        namespaced: kind.namespaced,
        custom: kind.custom,
        short_names: kind.short_names.clone(),
        categories: kind.categories.clone(),
        verbs,
        sides,
    }
}

fn core(host: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    })
}

fn group_list(groups: &Groups<'_>) -> Value {
    let named = groups.iter().filter(|(name, _)| !name.is_empty());
    let groups: Vec<Value> = named.map(|(name, versions)| group(name, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn group(name: &str, versions: &BTreeMap<&str, Vec<Resource>>) -> Value {
    let version =
        |version: &str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let names = by_preference(versions);
    let preferred = names.first().map(|name| version(name));
    let versions: Vec<Value> = names.iter().map(|name| version(name)).collect();
    json!({"name": name, "versions": versions, "preferredVersion": preferred})
}

fn resource_list(group: &str, version: &str, resources: &[Resource]) -> Value {
    let mut list = Vec::new();
    for resource in resources {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular,
            "namespaced": resource.namespaced, "kind": resource.kind, "verbs": resource.verbs,
        });
        put_names(&mut entry, resource);
        list.push(entry);
        for side in &resource.sides {
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, side.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": side.kind, "verbs": side.verbs,
            });
            if !side.group.is_empty() {
                entry["group"] = json!(side.group);
                entry["version"] = json!(side.version);
            }
            list.push(entry);
        }
    }
    let name = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": list})
}

fn discovery_list(groups: &Groups<'_>, is_core: bool, version: &str) -> Value {
    let wanted = groups.iter().filter(|(name, _)| name.is_empty() == is_core);
    let items: Vec<Value> = wanted
        .map(|(name, versions)| {
            let metadata = if is_core { json!({}) } else { json!({"name": name}) };
            let versions: Vec<Value> = by_preference(versions)
                .into_iter()
                .map(|version| {
                    let resources: Vec<Value> = versions[version]
                        .iter()
                        .map(|one| discovered(name, version, one))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn discovered(group: &str, version: &str, resource: &Resource) -> Value {
    // Of built-in kinds a real server leaves out what the place in the document says already.
    let (group, version) = if resource.custom { (group, version) } else { ("", "") };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": {"group": group, "version": version, "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    put_names(&mut entry, resource);
    if !resource.sides.is_empty() {
        let sides = resource.sides.iter().map(|side| {
            let (group, version) = match side.version {
                "" => (group, version),
                version => (side.group, version),
            };
            json!({
                "subresource": side.name,
                "responseKind": {"group": group, "version": version, "kind": side.kind},
                "verbs": side.verbs,
            })
        });
        entry["subresources"] = sides.collect();
    }
    entry
}

fn put_names(entry: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
}

/// Stable versions first, then beta, then alpha; the highest number first.
fn by_preference<'a>(versions: &BTreeMap<&'a str, Vec<Resource>>) -> Vec<&'a str> {
    let rank = |name: &str| {
        let maturity = if name.contains("alpha") { 2 } else { u8::from(name.contains("beta")) };
        let digits = name.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
        let numbers: Vec<u32> = digits.filter_map(|text| text.parse().ok()).collect();
        (maturity, std::cmp::Reverse(numbers))
    };
    let mut names: Vec<&str> = versions.keys().copied().collect();
    names.sort_by_key(|name| rank(name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kubectl_gets_the_form_it_understands() {
        let new = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                   application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                   application/json";
        let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                   application/json";
        let kinds = Kinds::default();
        let cases = [
            (new, AGGREGATED_V2, "APIGroupDiscoveryList"),
            (old, AGGREGATED_V2_BETA_1, "APIGroupDiscoveryList"),
            ("application/json", PLAIN, "APIGroupList"),
            ("", PLAIN, "APIGroupList"),
        ];
        for (accept, content_type, kind) in cases {
            let (found, list) = document(&kinds, &Discovery::Groups, accept, "").unwrap();
            assert_eq!((found, list["kind"].as_str()), (content_type, Some(kind)), "{accept}");
        }
    }

    #[test]
    fn a_version_lists_its_resources_and_their_sides() {
        let apps = Discovery::Version("apps".into(), "v1".into());
        let (_, list) = document(&Kinds::default(), &apps, "", "").unwrap();
        let names: Vec<&str> = list["resources"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|r| r["name"].as_str())
            .collect();
        assert!(names.contains(&"replicasets") && names.contains(&"replicasets/scale"));
        let unknown = Discovery::Version("frob".into(), "v1".into());
        assert_eq!(document(&Kinds::default(), &unknown, "", ""), None);
    }

    #[test]
    fn stable_versions_are_preferred() {
        let names = ["v1alpha1", "v1", "v2beta1", "v2"];
        let versions = names.into_iter().map(|name| (name, Vec::new())).collect();
        assert_eq!(by_preference(&versions), ["v2", "v1", "v2beta1", "v1alpha1"]);
    }
}
