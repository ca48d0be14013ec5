//! What kubectl prints for an object, and that no template makes it panic. What client-go finds in
//! an answer is in `paths.jsonl`, which `cargo xtask corpus jsonpath` runs.

use gradus_jsonpath::JsonPath;
use proptest::prelude::*;
use serde_json::{Value, json};

fn object() -> Value {
    json!({
        "metadata": { "name": "web", "annotations": { "a.b/c": "yes" } },
        "status": { "phase": "Paused", "replicas": 4, "big": 1_500_000_000, "conditions": [
            { "type": "Progressing", "status": "False", "weight": 2 },
            { "type": "Available", "status": "True", "weight": 5 },
        ] },
    })
}

/// Template, what it prints (with `\n` for a new line).
const CASES: &str = r#"
{.status.phase}                                                     | Paused
.status.phase                                                       | Paused
status.phase                                                        | Paused
{$.status.phase}                                                    | Paused
{.metadata.name}: {.status.replicas}                                | web: 4
{.status.big}                                                       | 1500000000
{.metadata.annotations.a\.b/c}                                      | yes
{.metadata.annotations['a\.b/c']}                                   | yes
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
fn a_template_prints_what_kubectl_prints() {
    for row in CASES.trim().lines() {
        let (template, expected) = row.rsplit_once('|').unwrap();
        let path = JsonPath::parse_relaxed(template.trim()).unwrap();
        let printed = path.print(&object()).unwrap();
        assert_eq!(printed, expected.trim().replace("\\n", "\n"), "{template}");
    }
}

#[test]
fn what_is_no_template_is_refused_and_says_why() {
    let cases = [
        ("{.status", "unclosed action"),
        ("{.items[}", "unterminated array"),
        ("{.items[x]}", "invalid array index x"),
        ("{.items[?(!@.a)]}", "unrecognized character in action: U+0021 '!'"),
        ("{.items[1:2:3:4]}", "invalid array index 1:2:3:4"),
        ("{\"x}", "unterminated quoted string"),
    ];
    for (template, expected) in cases {
        assert_eq!(JsonPath::parse(template).unwrap_err().to_string(), expected, "{template}");
    }
}

#[test]
fn a_template_that_finds_without_end_is_refused() {
    let deep = (0..100).fold(json!(1), |inside, _| json!([inside]));
    let path = JsonPath::parse("{...*...*...*...*}").unwrap();
    assert_eq!(path.find(&deep).unwrap_err().to_string(), "more than 100000 values are found");
}

/// Pieces that make sense now and then.
const PIECES: [&str; 26] = [
    "{",
    "}",
    "[",
    "]",
    "[?(",
    ")]",
    ".",
    "..",
    "*",
    "@",
    "$",
    "'",
    "\"",
    "\\",
    ",",
    ":",
    "-1",
    "0",
    "range ",
    "end",
    "status",
    "conditions",
    "==",
    "é",
    " ",
    "weight",
];

proptest! {
    #[test]
    fn no_template_makes_it_panic(pieces in proptest::collection::vec(0..PIECES.len(), 0..20)) {
        let template: String = pieces.into_iter().map(|at| PIECES[at]).collect();
        if let Ok(path) = JsonPath::parse(&template) {
            drop(path.find(&object()));
            drop(path.print(&object()));
        }
    }
}
