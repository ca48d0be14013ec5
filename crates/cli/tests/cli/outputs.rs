//! Do commands print what the documents show? Names, times and hashes may differ, words may not.

use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::controller::{ask_until, start};
use crate::docs::{blocks, root};
use crate::shell::Shell;

/// What stands after the fence of a block, and the lines that print it, one after the other on a
/// cluster where `checkout` is paused in its second revision and the others are healthy.
pub const PRINTED: [(&str, &str); 9] = [
    ("text get", "gradus get rollout checkout"),
    ("text list", "gradus list rollouts"),
    ("text explain", "gradus explain rollout checkout"),
    ("text world", "gradus explain --world world.json"),
    (
        "text status",
        "gradus status checkout > said &
         soon grep -q Paused said
         gradus promote checkout --full > /dev/null
         wait; cat said",
    ),
    (
        "text delayed",
        "gradus set image colors '*=argoproj/rollouts-demo:green' > /dev/null
         gradus wait colors --for=paused -t 60s > /dev/null
         gradus promote colors > /dev/null
         soon eval 'gradus explain rollout colors > said; grep -q \"lost its traffic\" said'
         cat said",
    ),
    (
        "text cause",
        "gradus set image checkout '*=nginx:1.92' > /dev/null
         soon eval 'gradus explain rollout checkout > said; grep -q pulled said'
         cat said",
    ),
    (
        "text lint",
        "sed 's/setWeight: 20/setWeight: 120/' examples/rollouts/canary-with-pauses.yaml > web.yaml
         gradus lint -f web.yaml 2>&1 > /dev/null || true",
    ),
    (
        "text version",
        "ln -s $(command -v gradus) kubectl-argo-rollouts; ./kubectl-argo-rollouts version",
    ),
];

/// A command that is tried until it succeeds, for half a minute; and no colours.
const SOON: &str =
    "soon() { for _ in $(seq 600); do \"$@\" && return; sleep 0.05; done; return 1; }
     export NO_COLOR=1\n";

#[test]
fn commands_print_what_the_documents_show() {
    let shell = Shell::open("outputs");
    let cluster = Cluster::start(0, &shell.home);
    let broken = r#"[{"image": "nginx:1.92", "pullError": true}]"#;
    let broken = serde_json::from_str(broken).unwrap();
    cluster.server.with(|cluster, _| cluster.set_behaviours(broken));
    for file in ["canary-with-pauses", "rolling-update", "blue-green"] {
        let path = root().join("examples/rollouts").join(file).with_extension("yaml");
        let text = std::fs::read_to_string(path).unwrap();
        // Two seconds may pass before anybody looks.
        let text = text.replace(" scaleDownDelaySeconds: 2", " scaleDownDelaySeconds: 30");
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        objects.iter().for_each(|object| cluster.store(object));
    }
    let (_controller, health, _) = start(&cluster.kubeconfig, &[]);
    let prepare = "for name in checkout cart colors; do gradus status $name -t 60s; done
                   gradus set image checkout checkout=nginx:1.28
                   gradus wait checkout --for=paused -t 60s";
    shell.says(prepare, &cluster.kubeconfig);
    // The controller knows of its own write a moment after everybody else.
    let is_paused = |_, text: &str| {
        let is_so = |saved: Value| saved["world"]["rollout"]["status"]["phase"] == "Paused";
        serde_json::from_str(text).is_ok_and(is_so)
    };
    let world = ask_until(health, "/debug/world/rollout/default/checkout", is_paused);
    std::fs::write(shell.home.join("world.json"), world).unwrap();
    let blocks = blocks();
    let mut wrong = Vec::new();
    for (info, lines) in PRINTED {
        let printed = shell.says(&format!("{SOON}{lines}"), &cluster.kubeconfig);
        let shown = blocks.iter().filter(|block| block.info == info);
        let wrong_ones = shown.filter(|block| !is_like(&block.text, &printed));
        wrong.extend(wrong_ones.map(|block| {
            format!("{} shows\n{}\nand this is printed:\n{printed}", block.page, block.text)
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A line that stands for any number of lines.
const LEFT_OUT: &str = "…";

/// Does a text show what was printed, line by line?
fn is_like(shown: &str, printed: &str) -> bool {
    let lines = |text: &str| text.trim_end().lines().map(shape).collect::<Vec<_>>();
    let (shown, printed) = (lines(shown), lines(printed));
    let mut rest = &printed[..];
    let mut is_left_out = false;
    for part in shown.split(|line| line == LEFT_OUT) {
        let starts = if is_left_out { 0..=rest.len() } else { 0..=0 };
        let Some(at) = starts.into_iter().find(|at| rest[*at..].starts_with(part)) else {
            return false;
        };
        (rest, is_left_out) = (&rest[at + part.len()..], true);
    }
    rest.is_empty() || shown.last().is_some_and(|line| line == LEFT_OUT)
}

/// A line as it always is: blanks are one, and what chance, time and builds give has a name.
fn shape(line: &str) -> String {
    // Of a version only the fields are always the same.
    if let Some((field, _)) = line.split_once(": ").filter(|(field, _)| VERSION.contains(field)) {
        return field.to_owned();
    }
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// Fields of `version`.
pub const VERSION: [&str; 7] = [
    "kubectl-argo-rollouts",
    "  BuildDate",
    "  GitCommit",
    "  GitTreeState",
    "  GoVersion",
    "  Compiler",
    "  Platform",
];

fn word(word: &str) -> String {
    let is_mark = |c: char| "(),;:".contains(c);
    let bare = word.trim_matches(is_mark);
    let is_age = bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.ends_with(['s', 'm', 'h'])
        && bare.chars().all(|c| c.is_ascii_digit() || "smh".contains(c));
    let name = match bare.rsplit_once('-') {
        _ if is_age => "AGE".to_owned(),
        _ if bare.parse::<Timestamp>().is_ok() => "TIME".to_owned(),
        // A pod is called like its ReplicaSet, with five letters of its own.
        Some((set, letters)) if set.contains('-') && letters.len() == 5 => format!("{set}-POD"),
        _ => return word.to_owned(),
    };
    word.replace(bare, &name)
}

#[test]
fn lines_may_be_left_out_and_words_may_not() {
    let printed = "checkout-65d-wnt5l 20s\na: b\nc (since 3m, 2026-11-16T00:10:00Z)\n";
    let cases = [
        ("the same", printed, true),
        ("another time", "checkout-65d-xxxxx 5s\na: b\nc (since 1h2m, 2026-11-17T00:10:00Z)", true),
        ("left out", "checkout-65d-wnt5l  20s\n…\n  c (since 3m, 2026-11-16T00:10:00Z)", true),
        ("nothing left out", "…\na: b\n…", true),
        ("another word", "…\na: c\n…", false),
        ("the end is missing", "checkout-65d-wnt5l 20s\na: b", false),
        ("another order", "…\na: b\n…\ncheckout-65d-wnt5l 20s\n…", false),
    ];
    for (what, shown, expected) in cases {
        assert_eq!(is_like(shown, printed), expected, "{what}");
    }
}
