//! What the ConfigMap says about plugins. An entry that cannot be used is refused by its name, and no
//! other with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gradus_api::names::is_plugin_name;
use gradus_api::values::parse_go_duration;
use gradus_goplugin::PluginKind;
use gradus_manifest::{Source, read};
use serde_json::Value;

/// How long a call may take, unless the configuration says otherwise, and at most.
const TIMEOUT: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(300);

/// All that is configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Config {
    entries: BTreeMap<(PluginKind, String), Result<Arc<PluginEntry>, String>>,
    /// Lists that are none.
    broken: BTreeMap<PluginKind, String>,
}

/// One plugin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PluginEntry {
    pub name: String,
    pub location: Location,
    /// What the program must be.
    pub sha256: [u8; 32],
    pub args: Vec<String>,
    /// The whole environment; without a value it is that of the controller.
    pub env: Vec<(String, Option<String>)>,
    /// Secrets whose entries are headers of the download.
    pub headers_from: Vec<String>,
    pub is_disabled: bool,
    pub timeout: Duration,
}

/// Where a program comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Location {
    File(PathBuf),
    Https(String),
}

/// What is said of a plugin that is not configured.
pub(super) fn missing(name: &str) -> String {
    format!("plugin {name} not configured in configmap")
}

const LISTS: [(PluginKind, &str); 3] = [
    (PluginKind::Step, "stepPlugins"),
    (PluginKind::Metric, "metricProviderPlugins"),
    (PluginKind::Router, "trafficRouterPlugins"),
];

impl Config {
    /// Reads the `data` of the ConfigMap.
    pub fn read(data: &Value) -> Self {
        let mut config = Config::default();
        for (kind, field) in LISTS {
            match list(data[field].as_str().unwrap_or_default()) {
                Ok(items) => {
                    for item in &items {
                        let name = item["name"].as_str().unwrap_or_default().to_owned();
                        let entry = entry(&name, item).map_err(|why| format!("{field}: {why}"));
                        let twice = || format!("{field}: plugin {name} is listed more than once");
                        let known = config.entries.entry((kind, name.clone()));
                        known.and_modify(|known| *known = Err(twice())).or_insert(entry);
                    }
                }
                Err(why) => {
                    config.broken.insert(kind, format!("{field}: {why}"));
                }
            }
        }
        config
    }

    /// A plugin, or why it cannot be used.
    pub fn entry(&self, kind: PluginKind, name: &str) -> Result<Arc<PluginEntry>, String> {
        match (self.entries.get(&(kind, name.to_owned())), self.broken.get(&kind)) {
            (Some(entry), _) => entry.clone(),
            (None, Some(why)) => Err(why.clone()),
            (None, None) => Err(missing(name)),
        }
    }

    /// The names of all plugins of a kind.
    pub fn names(&self, kind: PluginKind) -> impl Iterator<Item = &str> {
        let names = self.entries.keys().filter(move |(known, _)| *known == kind);
        names.map(|(_, name)| name.as_str())
    }

    /// What cannot be used, and why.
    pub fn refused(&self) -> impl Iterator<Item = &str> {
        let entries = self.entries.values().filter_map(|entry| entry.as_ref().err());
        entries.chain(self.broken.values()).map(String::as_str)
    }

    /// Logs what cannot be used.
    pub fn report(&self) {
        for why in self.refused() {
            tracing::error!(error = why, "plugin refused");
        }
    }
}

fn list(text: &str) -> Result<Vec<Value>, String> {
    let source = Arc::new(Source { name: "argo-rollouts-config".into(), text: text.to_owned() });
    let documents = read(&source).map_err(|error| format!("not YAML: {}", error.message))?;
    match documents.first().map(|document| document.json()) {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err("expected a list of plugins".to_owned()),
    }
}

fn entry(name: &str, item: &Value) -> Result<Arc<PluginEntry>, String> {
    let wrong = |what: &str, expected: &str| format!("plugin {name}: {what}: expected {expected}");
    if !is_plugin_name(name) {
        return Err(format!(
            "plugin repository ({name}) must be in the format of <namespace>/<name>"
        ));
    }
    let is_disabled = item["disabled"].as_bool().unwrap_or_default();
    let text = |field: &str| item[field].as_str().unwrap_or_default();
    let location = match text("location").split_once("://") {
        Some(("file", path)) if !path.is_empty() => Location::File(PathBuf::from(path)),
        Some(("https", _)) => Location::Https(text("location").to_owned()),
        _ if is_disabled => Location::File(PathBuf::new()),
        _ => return Err(wrong("location", "file://PATH or https://URL")),
    };
    let sha256 = match digest(text("sha256")) {
        Some(digest) => digest,
        None if is_disabled => [0; 32],
        None => return Err(wrong("sha256", "the 64 hexadecimal digits of the program")),
    };
    let texts = |field: &str| match &item[field] {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let texts = items.iter().map(|one| one.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().ok_or_else(|| wrong(field, "a list of texts"))
        }
        _ => Err(wrong(field, "a list of texts")),
    };
    let env = item["env"].as_array().into_iter().flatten().map(|one| {
        let name = one["name"].as_str().filter(|name| !name.is_empty() && !name.contains('='));
        let name = name.ok_or_else(|| wrong("env", "entries with a name"))?;
        Ok((name.to_owned(), one["value"].as_str().map(str::to_owned)))
    });
    let headers = item["headersFrom"].as_array().into_iter().flatten().map(|one| {
        let name = one["secretRef"]["name"].as_str();
        name.map(str::to_owned).ok_or_else(|| wrong("headersFrom", "secretRef.name"))
    });
    let timeout = match text("timeout") {
        "" => TIMEOUT,
        text => parse_go_duration(text)
            .ok()
            .and_then(|limit| Duration::try_from(limit).ok())
            .filter(|limit| !limit.is_zero() && *limit <= LONGEST)
            .ok_or_else(|| wrong("timeout", "a duration of at most 5m"))?,
    };
    Ok(Arc::new(PluginEntry {
        name: name.to_owned(),
        location,
        sha256,
        args: texts("args")?,
        env: env.collect::<Result<_, String>>()?,
        headers_from: headers.collect::<Result<_, String>>()?,
        is_disabled,
        timeout,
    }))
}

/// The bytes that 64 hexadecimal digits stand for: one form for all ways of writing them.
fn digest(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        let pair = &text[2 * at..2 * at + 2];
        let is_hexadecimal = pair.chars().all(|letter| letter.is_ascii_hexdigit());
        *byte = u8::from_str_radix(pair, 16).ok().filter(|_| is_hexadecimal)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_used_is_refused_by_name_and_the_rest_is_not() {
        let sha = "ab".repeat(32);
        let good = format!("- {{name: a/good, location: 'file://x', sha256: {sha}}}\n");
        let usual = |fields: &str| format!("- {{name: a/b, location: 'file://x', {fields}}}");
        let cases = [
            ("none", "- {name: a/c}".to_owned(), "plugin a/b not configured in configmap"),
            ("usable", usual(&format!("sha256: {}", sha.to_uppercase())), ""),
            ("no digest", usual("args: []"), "stepPlugins: plugin a/b: sha256: expected the 64"),
            ("half a digest", usual("sha256: abcd"), "plugin a/b: sha256: expected"),
            ("no digits", usual(&format!("sha256: '{}'", "+1".repeat(32))), "sha256: expected"),
            (
                "a digit too few",
                usual(&format!("sha256: {}", &sha[1..])),
                "sha256: expected the 64",
            ),
            ("a digit too many", usual(&format!("sha256: {sha}a")), "sha256: expected the 64"),
            ("no digest of a download", "- {name: a/b, location: 'https://x/y'}".into(), "sha256"),
            (
                "a scheme",
                format!("- {{name: a/b, location: 'ftp://x', sha256: {sha}}}"),
                "location",
            ),
            (
                "no location",
                format!("- {{name: a/b, sha256: {sha}}}"),
                "location: expected file://",
            ),
            ("switched off", usual("disabled: true"), ""),
            ("no limit", usual(&format!("sha256: {sha}, timeout: 1h")), "timeout: expected"),
            ("http", format!("- {{name: a/b, location: 'http://x', sha256: {sha}}}"), "location"),
            ("twice", [usual("a: 1"), usual("a: 1")].join("\n"), "more than once"),
        ];
        for (what, text, expected) in cases {
            let config = Config::read(&json!({ "stepPlugins": format!("{good}{text}\n") }));
            let said = config.entry(PluginKind::Step, "a/b").err().unwrap_or_default();
            assert!(
                said.contains(expected) && said.is_empty() == expected.is_empty(),
                "{what}: {said}"
            );
            assert!(config.entry(PluginKind::Step, "a/good").is_ok(), "{what}");
            assert!(config.entry(PluginKind::Metric, "a/good").is_err(), "{what}");
        }
        let config = Config::read(&json!({ "stepPlugins": "{}", "metricProviderPlugins": "- [" }));
        let said = |kind| config.entry(kind, "a/b").unwrap_err();
        assert_eq!(said(PluginKind::Step), "stepPlugins: expected a list of plugins");
        assert!(said(PluginKind::Metric).starts_with("metricProviderPlugins: not YAML"));
        assert_eq!(said(PluginKind::Router), missing("a/b"));
        for name in ["a", "/b", "a/", "a/b/c", "a b/c", "../x/y"] {
            assert!(!is_plugin_name(name), "{name}");
        }
    }
}
