//! YAML as kubectl reads it, and where everything stands.

use serde_json::{Value, json};

use super::*;

fn source(text: &str) -> Arc<Source> {
    Arc::new(Source { name: "web.yaml".to_owned(), text: text.to_owned() })
}

fn value(text: &str) -> Result<Value, String> {
    let documents = read(&source(text)).map_err(|malformed| malformed.message)?;
    Ok(documents.first().map_or(Value::Null, Document::json))
}

#[test]
fn a_plain_word_means_what_it_means_to_kubectl() {
    let table = [
        ("0644", json!(420)),
        ("0o644", json!(420)),
        ("-0644", json!(-420)),
        ("08", json!(8)),
        ("0x1F", json!(31)),
        ("0b11", json!(3)),
        ("1_000", json!(1000)),
        ("+1", json!(1)),
        ("1.0", json!(1)),
        ("1.", json!(1)),
        (".5", json!(0.5)),
        ("0.1", json!(0.1)),
        ("1e21", json!(1e21)),
        ("1.5e400", json!("1.5e400")),
        ("1e", json!("1e")),
        ("12345678901234567890", json!(12_345_678_901_234_567_890_u64)),
        ("9007199254740993", json!(9_007_199_254_740_993_u64)),
        ("yes", json!(true)),
        ("y", json!(true)),
        ("off", json!(false)),
        ("NO", json!(false)),
        ("nO", json!("nO")),
        ("True", json!(true)),
        ("null", json!(null)),
        ("~", json!(null)),
        ("", json!(null)),
        ("1:30", json!("1:30")),
        ("1.2.3", json!("1.2.3")),
        ("v1.2", json!("v1.2")),
        ("100m", json!("100m")),
        ("0644x", json!("0644x")),
        ("2001-01-01", json!("2001-01-01")),
        ("'0644'", json!("0644")),
        ("!!str 5", json!("5")),
        ("\"x\\ty\"", json!("x\ty")),
        ("{}", json!({})),
        ("[1,\n2]", json!([1, 2])),
    ];
    for (word, expected) in table {
        assert_eq!(value(&format!("a: {word}")), Ok(json!({ "a": expected })), "{word}");
    }
}

#[test]
fn keys_are_text_merges_yield_and_the_last_of_equal_keys_counts() {
    let table = [
        ("1: x", json!({ "1": "x" })),
        ("on: push", json!({ "true": "push" })),
        ("? a\n: b", json!({ "a": "b" })),
        ("a: 1\na: 2", json!({ "a": 2 })),
        (
            "a: &x {b: 1, d: 9}\nc:\n  <<: *x\n  d: 2",
            json!({ "a": { "b": 1, "d": 9 }, "c": { "b": 1, "d": 2 } }),
        ),
        ("a: |\n  l1\n  l2\n", json!({ "a": "l1\nl2\n" })),
        ("a: >\n  l1\n  l2\n", json!({ "a": "l1 l2\n" })),
        ("- a\n- b", json!(["a", "b"])),
    ];
    for (text, expected) in table {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_no_yaml_is_refused_with_its_place() {
    for text in ["a: @x", "a: %x", "a:\n\tb: 1", "a: *", "a: .inf", "a: .nan", "a: [1", "a: 'x"] {
        let refused = read(&source(text)).expect_err(text);
        assert!(refused.place.line >= 1 && !refused.message.is_empty(), "{text}: {refused:?}");
    }
}

#[test]
fn every_field_has_its_place() {
    let text = "kind: Rollout\nspec:\n  steps:\n  - setWeight: 20\n  - pause: {duration: 1z}\n";
    let documents = read(&source(text)).unwrap();
    let place = |path: &str| {
        let Place { line, column, length } = documents[0].root.place_of(path);
        (line, column, length)
    };
    assert_eq!(place("kind"), (1, 7, 7));
    assert_eq!(place("spec"), (2, 1, 4), "a long value is shown by its key");
    assert_eq!(place("spec.steps[0].setWeight"), (4, 16, 2));
    assert_eq!(place("spec.steps[1].pause.duration"), (5, 23, 2));
    assert_eq!(place("spec.steps[1].pause.other"), (5, 5, 5), "what is around a missing field");
    assert_eq!(place("spec.replicas"), (2, 1, 4));
}

#[test]
fn empty_documents_are_left_out() {
    let documents = read(&source("---\n# nothing\n---\na: 1\n---\n---\nb: 2\n")).unwrap();
    let values: Vec<Value> = documents.iter().map(Document::json).collect();
    assert_eq!(values, [json!({ "a": 1 }), json!({ "b": 2 })]);
}

#[test]
fn aliases_of_aliases_have_an_end() {
    let row =
        |at: usize| format!("a{at}: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 10].join(","));
    let few: String = (1..4).map(row).collect();
    let many: String = (1..9).map(row).collect();
    assert!(value(&format!("a0: &a0 [x, y]\n{few}")).is_ok());
    let error = value(&format!("a0: &a0 [x, y]\n{many}")).unwrap_err();
    assert_eq!(error, "document contains excessive aliasing");
}

#[test]
fn a_list_is_as_many_documents_as_it_holds() {
    let list = "kind: RolloutList\nitems: [{kind: A}, {kind: B}]\n---\nkind: C\nitems: [1]\n";
    let documents = read(&source(list)).unwrap();
    let kinds: Vec<_> = documents.iter().map(|document| document.text(&["kind"])).collect();
    assert_eq!(kinds, [Some("A"), Some("B"), Some("C")]);
}

#[test]
fn the_later_lines_of_a_quoted_text_may_stand_anywhere() {
    let cases = [
        ("as far as its key", "a:\n  - b: 'one\n  two'\n    c: 1\n"),
        ("less far", "a:\n  - b: 'one\n two'\n    c: 1\n"),
        ("twice", "a:\n  - b: \"one\n  two\"\n    c: 1\n  - b: 'one\n  two'\n"),
    ];
    for (what, text) in cases {
        let value = value(text).unwrap();
        assert_eq!(value["a"][0], json!({ "b": "one two", "c": 1 }), "{what}");
    }
    assert!(
        value("a:\n  - b: 'one\n  two\n").is_err(),
        "a quote that is not closed stays an error"
    );
}
