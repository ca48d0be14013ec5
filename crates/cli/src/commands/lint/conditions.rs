//! Can the conditions of metrics work? Each finding points at the part of the condition that cannot.

use gradus_api::names::{self, kind};
use gradus_engine::analysis::condition;
use gradus_expr::Span;
use gradus_manifest::{Content, Document, Node, Place};
use serde_json::Value;

use super::beside::{is, is_template};
use super::finding::Finding;

const FIELDS: [&str; 2] = ["successCondition", "failureCondition"];

/// What is wrong with the conditions of a template or a run.
pub fn check(document: &Document) -> Vec<Finding> {
    if !is_template(document) && !is(document, names::GROUP, kind::ANALYSIS_RUN) {
        return Vec::new();
    }
    let metrics = document.root.entry("spec").and_then(|spec| spec.value.entry("metrics"));
    let Some(Node { content: Content::List(metrics), .. }) = metrics.map(|entry| &entry.value)
    else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (at, metric) in metrics.iter().enumerate() {
        for field in FIELDS {
            let text = metric.entry(field).map(|entry| &entry.value.content);
            let Some(Content::Scalar(Value::String(text))) = text else { continue };
            let path = format!("spec.metrics[{at}].{field}");
            findings.extend(wrong(document, &path, text));
        }
    }
    findings
}

fn wrong(document: &Document, path: &str, text: &str) -> Option<Finding> {
    if text.is_empty() {
        return None;
    }
    let (filled, stand_ins) = without_arguments(text);
    let error = condition::check(&filled, &stand_ins).err()?;
    let around = document.root.place_of(path);
    let place = part(&document.source.text, around, text, error.span).unwrap_or(around);
    Some(Finding::error(document, path, error.message).at(place))
}

/// An argument is known when the run is made: until then a name of the same length stands for it.
fn without_arguments(text: &str) -> (String, Vec<String>) {
    let (mut filled, mut stand_ins) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((inside, after)) = behind.split_once("}}") else { break };
        let stand_in = "_".repeat(inside.len() + 4);
        filled.push_str(before);
        filled.push_str(&stand_in);
        stand_ins.push(stand_in);
        rest = after;
    }
    filled.push_str(rest);
    (filled, stand_ins)
}

/// Where a part of a text stands in its source. Where the text is written over several lines, or
/// with escapes, the part is looked for.
fn part(source: &str, around: Place, text: &str, span: Span) -> Option<Place> {
    let words = text.get(span.start..span.end).filter(|words| !words.trim().is_empty())?;
    let words = words.lines().next().unwrap_or(words);
    let length = words.chars().count();
    let mut lines = source.lines().enumerate().skip(around.line.checked_sub(1)?);
    let (_, first) = lines.next()?;
    let start = first.char_indices().nth(around.column.checked_sub(1)?).map(|(at, _)| at)?;
    let value = &first[start..];
    let quote = usize::from(value.starts_with(['\'', '"']));
    if value[quote..].starts_with(text) {
        let before = text.get(..span.start)?.chars().count();
        return Some(Place { column: around.column + quote + before, length, ..around });
    }
    if let Some(at) = value.find(words) {
        let column = around.column + value[..at].chars().count();
        return Some(Place { column, length, ..around });
    }
    let below = lines.take(text.lines().count() + 1);
    below.into_iter().find_map(|(number, line)| {
        let at = line.find(words)?;
        Some(Place { line: number + 1, column: line[..at].chars().count() + 1, length })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gradus_manifest::Source;

    use super::*;

    /// How the condition is written; the part that is underlined, or nothing.
    const CASES: &str = r#"
"result[0] >= 0.95"                         |
result[0] >= 0.95 && reslut < 1             | reslut
"result.ok && 'a' > 1"                      | 'a' > 1
"all(result, {# > })"                       | }
"result <= {{args.limit}}"                  |
"result.{{args.field}} == '{{args.x}}'"     |
"{{args.limit}} > result && foo"            | foo
"len(result)"                               | len(result)
"upper(5) == 'x'"                           | 5
"result matches '['"                        | result matches '['
"#;

    fn found(yaml: &str) -> Vec<String> {
        let text = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {{name: t}}\n\
             spec:\n  metrics:\n  - name: m\n    successCondition: {yaml}\n"
        );
        let source = Arc::new(Source { name: "t.yaml".to_owned(), text });
        let documents = gradus_manifest::read(&source).unwrap();
        check(&documents[0]).iter().map(|finding| underlined(&finding.to_string())).collect()
    }

    /// What stands above the signs of a finding.
    fn underlined(shown: &str) -> String {
        let lines: Vec<&str> = shown.lines().rev().collect();
        let start = lines[0].chars().take_while(|letter| *letter != '^').count();
        let length = lines[0].chars().filter(|letter| *letter == '^').count();
        lines[1].chars().skip(start).take(length).collect()
    }

    #[test]
    fn the_part_that_cannot_work_is_underlined() {
        for row in CASES.trim().lines() {
            let (condition, expected) = row.rsplit_once('|').unwrap();
            let expected: Vec<&str> =
                Some(expected.trim()).into_iter().filter(|part| !part.is_empty()).collect();
            assert_eq!(found(condition.trim()), expected, "{row}");
        }
    }

    #[test]
    fn the_part_is_found_below_a_block() {
        assert_eq!(found("|\n      result[0] > 1 &&\n      reslut < 2"), ["reslut"]);
        assert_eq!(found(">-\n      result[0] > 1\n      && reslut < 2"), ["reslut"]);
    }
}
