//! Whatever is written, there is an answer: no panic, no endless run, no memory without limit.

use gradus_expr::{Environment, Error, Function, Inputs, Phase, Program, Type, Value};
use proptest::prelude::*;
use serde_json::json;

fn run(source: &str) -> Result<Value, Error> {
    let json = json!({ "a": [1, 2.5, "x", null, true], "b": { "c": "é" } });
    let result = Value::from_json(&json).expect("it is not nested so deep");
    let environment = Environment::new().with_value("result", &result);
    Program::compile(source, &environment)?.run(&Inputs::new().with("result", result))
}

/// Words that make sense now and then.
const WORDS: [&str; 60] = [
    "result",
    ".a",
    ".b",
    "?.c",
    "[0]",
    "[-1:]",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ";",
    ":",
    "?",
    "??",
    "|",
    "filter(",
    "map(",
    "all(",
    "reduce(",
    "sortBy(",
    "groupBy(",
    "sum(",
    "len(",
    "max(",
    "split(",
    "repeat(",
    "date(",
    "duration(",
    "toJSON(",
    "#",
    "#acc",
    "#index",
    "1",
    "0",
    "-",
    "1e308",
    "9223372036854775807",
    "0x",
    "'x'",
    "\"é\"",
    "`",
    "nil",
    "true",
    " not ",
    " in ",
    " and ",
    " or ",
    "..",
    "**",
    "%",
    "/",
    " matches ",
    "let x = ",
    "if ",
    "else",
    "$env",
    "==",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_makes_it_panic(source in "\\PC{0,60}") {
        drop(run(&source));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        drop(run(&String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn no_words_make_it_panic(words in proptest::collection::vec(0..WORDS.len(), 0..25)) {
        let source: String = words.into_iter().map(|at| WORDS[at]).collect();
        drop(run(&source));
    }

    #[test]
    fn spans_lie_within_the_text(words in proptest::collection::vec(0..WORDS.len(), 0..12)) {
        let source: String = words.into_iter().map(|at| WORDS[at]).collect();
        if let Err(error) = run(&source) {
            prop_assert!(source.get(error.span.start..error.span.end).is_some(), "{source}");
        }
    }
}

#[test]
fn what_would_never_end_or_fill_the_memory_is_an_error_soon() {
    let deep = |one: &str, count: usize| one.repeat(count);
    let cases = [
        ("many brackets", format!("{}1{}", deep("(", 5_000), deep(")", 5_000))),
        ("many signs", format!("{}1", deep("-", 60_000))),
        ("a long sum", format!("1{}", deep("+1", 20_000))),
        ("many lists", format!("{}1{}", deep("[", 5_000), deep("]", 5_000))),
        ("many ifs", format!("{}true", deep("if true {1} else ", 3_000))),
        ("many fields", format!("result{}", deep("?.a", 20_000))),
        ("doubled trees", format!("{}true{}", deep("(", 200), deep("?:1)", 200))),
        ("a text that doubles", "reduce(1..60, #acc + #acc, 'abc')".to_owned()),
        ("a list in a list in a list", "reduce(1..100000, [#acc])".to_owned()),
        ("rounds in rounds", "all(1..9999, all(1..9999, all(1..9999, true)))".to_owned()),
        ("a long range", "len(1..9223372036854775807)".to_owned()),
        ("lists that add up", "map(1..9999, 1..9999)".to_owned()),
        ("overloads in overloads", format!("{}[1]{}", deep("sort(", 60), deep(")", 60))),
        ("a chain as long as it may be", format!("true{}", deep(" && true == true", 190))),
        ("a long text", "x".repeat(100_000)),
    ];
    for (what, source) in cases {
        let is_fine = ["overloads in overloads", "a chain as long as it may be"].contains(&what);
        assert_eq!(run(&source).is_ok(), is_fine, "{what}");
    }
}

#[test]
fn limits_are_told_from_mistakes() {
    assert_eq!(run("1..2000000").unwrap_err().phase, Phase::Limit);
    assert_eq!(run("result.a[9]").unwrap_err().phase, Phase::Run);
    assert_eq!(run("1 > 'a'").unwrap_err().phase, Phase::Compile);
}

#[test]
fn an_error_points_at_the_part_that_is_to_blame() {
    let cases = [
        ("result.a > 1 && foo < 2", "foo"),
        ("1 < 2 && 'a' > 1", "'a' > 1"),
        ("len(5) == 1", "len"),
        ("all(result.a, {# > })", "}"),
        ("any(5, # > 1)", "5"),
        ("upper(3)", "3"),
        ("result.a[7] == 1", "result.a[7]"),
        ("result.b.c.d == 1", "d"),
        ("1 +", "+"),
        ("'x' matches '['", "'x' matches '['"),
    ];
    for (source, expected) in cases {
        let span = run(source).unwrap_err().span;
        assert_eq!(&source[span.start..span.end], expected, "{source}");
    }
}

#[test]
fn a_caller_can_add_functions_over_lists() {
    let spread = Function::new("spread", [Type::Any], Type::Float, |arguments| {
        let Some(Value::List(list)) = arguments.first() else {
            return Err("spread: expected a list".to_owned());
        };
        let numbers = list.items().iter().filter_map(|item| match item {
            Value::Float(number) => Some(*number),
            _ => None,
        });
        let (least, most) = numbers.fold((f64::MAX, f64::MIN), |(a, b), n| (a.min(n), b.max(n)));
        Ok(Value::Float(most - least))
    });
    let environment =
        Environment::new().with_function(spread).with_value("result", &Value::floats([]));
    let program = Program::compile("spread(result) == 1.5", &environment).unwrap();
    let inputs = Inputs::new().with("result", Value::floats([1.0, 2.5, 2.0]));
    assert_eq!(program.run(&inputs), Ok(Value::Bool(true)));
    let wrong = Program::compile("spread(1)", &environment).unwrap().run(&inputs).unwrap_err();
    assert_eq!(wrong.message, "spread: expected a list");
    let few = Program::compile("spread()", &environment).unwrap_err();
    assert_eq!(few.message, "not enough arguments to call spread");
}

#[test]
fn an_open_environment_takes_unknown_names_for_nil() {
    let program = Program::compile("rollout == nil", &Environment::open()).unwrap();
    assert_eq!(program.run(&Inputs::new()), Ok(Value::Bool(true)));
    let program = Program::compile("rollout.status", &Environment::open()).unwrap();
    let error = program.run(&Inputs::new()).unwrap_err();
    assert_eq!(error.message, "cannot fetch status from <nil>");
}
