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

/// Template, and what kubectl prints for it.
const KUBECTL: &str = r#"
{$.data.ok}                         | true
{.data.ok}                          | true
{$.data}                            | {"big":1500000000,"list":[1,2,3,4],"n":0.95,"ok":true,"s":"x"}
{.items[*].name}                    | a b
{.items[0].name}                    | a
{.items[-1:].name}                  | b
{.data.list[1:3]}                   | 2 3
{.data.list[0,2]}                   | 1 3
{.data.list[::2]}                   | 1 3
{.data.list[:-1]}                   | 1 2 3
{..name}                            | a b
{.items[?(@.name=='a')].v}          | 1
{.items[?(@.name=="a")].v}          | 1
{range .items[*]}{.name}={.v};{end} | a=1;b=2;
{.missing}                          |
{.data['n','s']}                    | 0.95 x
{.data.n}{.data.s}                  | 0.95x
{"lit"}{.data.s}                    | litx
{.items[0].k\.d}                    | dot
{.nil}                              | null
{.items[?(@.v)].name}               | a b
{.items[?(@.w)].name}               |
{.*.ok}                             | true
{['data'].ok}                       | true
{.data.list[*]}                     | 1 2 3 4
{.data.list.length}                 |
{$['data']['ok']}                   | true
"#;

#[test]
fn slices_unions_and_wildcards_pick_what_kubectl_picks() {
    let object = json!({
        "data": { "ok": true, "n": 0.95, "s": "x", "big": 1_500_000_000, "list": [1, 2, 3, 4] },
        "items": [{ "name": "a", "v": 1, "k.d": "dot" }, { "name": "b", "v": 2 }],
        "nil": null,
    });
    for row in KUBECTL.trim().lines() {
        let (template, expected) = row.rsplit_once('|').unwrap();
        let printed = JsonPath::parse(template.trim()).unwrap().print(&object);
        assert_eq!(printed, expected.trim(), "{template}");
    }
    let whole = JsonPath::parse("{}").unwrap().print(&object);
    assert_eq!(whole, object.to_string(), "an empty path is the whole object");
}

#[test]
fn what_is_no_template_is_refused_with_what_was_expected() {
    let cases = [
        ("{.status", "expected }"),
        ("{.items[}", "expected ]"),
        ("{.items[x]}", "neither a field"),
        ("{.items[?(!@.a)]}", "expected ?(@.field"),
        ("{.items[?(@.a>=1 && @.a<2)]}", "expected ?(@.field"),
        ("{.items[1:2:0]}", "neither a field"),
        ("{.items[1:2:3:4]}", "neither a field"),
        ("{range .items[*]}{.a}", "needs one {end}"),
        ("{end}", "needs one {end}"),
    ];
    for (template, expected) in cases {
        let refused = JsonPath::parse(template).unwrap_err().to_string();
        assert!(refused.contains(expected), "{template}: {refused}");
    }
}
