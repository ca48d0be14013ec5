//! How do tools read what was found: JSON, SARIF, and the annotations of GitHub Actions?

use std::collections::BTreeSet;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::finding::{Finding, Severity};

/// How findings are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, with the lines that scripts know.
    #[default]
    Text,
    /// One object with a list of findings.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of GitHub Actions, one per line.
    Github,
}

/// The text of a format for tools; nothing for people's.
pub fn text(format: Format, findings: &[Finding]) -> Option<String> {
    match format {
        Format::Text => None,
        Format::Json => Some(pretty(&as_json(findings))),
        Format::Sarif => Some(pretty(&sarif(findings))),
        Format::Github => Some(findings.iter().map(annotation).collect::<Vec<_>>().join("\n")),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("a JSON value is always text")
}

fn as_json(findings: &[Finding]) -> Value {
    let count = |severity| findings.iter().filter(|one| one.severity == severity).count();
    let each = findings.iter().map(|one| {
        json!({
            "severity": one.severity.name(),
            "rule": one.rule,
            "file": one.source.name,
            "line": one.place.line,
            "column": one.place.column,
            "length": one.place.length,
            "path": one.path,
            "message": one.message,
        })
    });
    json!({
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
        "findings": each.collect::<Vec<_>>(),
    })
}

fn sarif(findings: &[Finding]) -> Value {
    let rules: BTreeSet<&str> = findings.iter().map(|one| one.rule).collect();
    let results = findings.iter().map(|one| {
        let region = json!({
            "startLine": one.place.line.max(1),
            "startColumn": one.place.column.max(1),
            "endColumn": one.place.column.max(1) + one.place.length.max(1),
        });
        json!({
            "ruleId": one.rule,
            "level": one.severity.name(),
            "message": { "text": one.said() },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": as_uri(&one.source.name) },
                "region": region,
            } }],
        })
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "gradus lint",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_iter().map(|id| json!({ "id": id })).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    })
}

/// A path as a relative reference of RFC 3986.
fn as_uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=@".contains(&byte);
    path.bytes().fold(String::new(), |uri, byte| match plain(byte) {
        true => format!("{uri}{}", char::from(byte)),
        false => format!("{uri}%{byte:02X}"),
    })
}

fn annotation(one: &Finding) -> String {
    let message = one.said().replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let file = one.source.name.replace('%', "%25").replace(',', "%2C").replace(':', "%3A");
    let end = one.place.column + one.place.length.max(1);
    format!(
        "::{} file={file},line={},col={},endColumn={end},title={}::{message}",
        one.severity.name(),
        one.place.line,
        one.place.column,
        one.rule
    )
}
