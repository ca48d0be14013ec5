//! Templates, and what they print.

use serde_json::json;

use super::JsonPath;

/// Template, what it prints (with `\n` for a new line).
const CASES: &str = r#"
{.status.phase}                                                     | Paused
.status.phase                                                       | Paused
{$.status.phase}                                                    | Paused
{.metadata.name}: {.status.replicas}                                | web: 4
{.metadata.annotations.a\.b/c}                                      | yes
{.metadata.annotations['a.b/c']}                                    | yes
{.status.conditions[0].type}                                        | Progressing
{.status.conditions[-1].type}                                       | Available
{.status.conditions[*].type}                                        | Progressing Available
{.status.conditions[?(@.type=="Available")].status}                 | True
{.status.conditions[?(@.weight>3)].type}                            | Available
{.status.conditions[?(@.type!='Available')].status}                 | False
{range .status.conditions[*]}{.type}{"\n"}{end}                     | Progressing\nAvailable\n
{..weight}                                                          | 2 5
{.status.missing}                                                   |
{.status.conditions[0]}                                             | {"status":"False","type":"Progressing","weight":2}
"#;

#[test]
fn a_template_picks_what_kubectl_picks() {
    let object = json!({
        "metadata": { "name": "web", "annotations": { "a.b/c": "yes" } },
        "status": { "phase": "Paused", "replicas": 4, "conditions": [
            { "type": "Progressing", "status": "False", "weight": 2 },
            { "type": "Available", "status": "True", "weight": 5 },
        ] },
    });
    for row in CASES.trim().lines() {
        let (template, expected) = row.rsplit_once('|').unwrap();
        let printed = JsonPath::parse(template.trim()).unwrap().print(&object);
        assert_eq!(printed, expected.trim().replace("\\n", "\n"), "{template}");
    }
}

#[test]
fn what_is_no_template_is_refused_with_what_was_expected() {
    let cases = [
        ("{.status", "expected }"),
        ("{.items[}", "expected ]"),
        ("{.items[x]}", "neither a field"),
        ("{.items[?(@.a)]}", "expected ?(@.field"),
        ("{range .items[*]}{.a}", "needs one {end}"),
        ("{end}", "needs one {end}"),
    ];
    for (template, expected) in cases {
        let refused = JsonPath::parse(template).unwrap_err().to_string();
        assert!(refused.contains(expected), "{template}: {refused}");
    }
}
