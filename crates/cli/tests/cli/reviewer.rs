//! What does `simulate` answer to somebody who reviews a change of manifests?

use serde_json::Value;

use crate::docs::root;
use crate::program::{Finished, folder, gradus};

fn example(name: &str) -> String {
    root().join("examples/rollouts").join(name).display().to_string()
}

fn text(name: &str) -> String {
    std::fs::read_to_string(example(name)).unwrap()
}

/// A file with this text.
fn file(folder_name: &str, text: &str) -> String {
    let path = folder(folder_name).join("web.yaml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn json(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}{}", done.stdout, done.stderr))
}

#[test]
fn a_change_of_manifests_is_played_from_one_to_the_other() {
    let old = text("canary-with-timed-pauses.yaml");
    let new = old.replace("image: ", "image: registry.example.com/");
    let more = new.replacen("replicas: ", "replicas: 1", 1);
    assert!(old != new && new != more);
    let [old, more] = [("old", &old), ("more", &more)].map(|(name, text)| file(name, text));
    let done = gradus(&["simulate", "--from", &old, "--to", &more, "-o", "json"]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let report = json(&done);
    assert_eq!(report["result"], "promoted");
    let pods = report["timeline"].as_array().unwrap().last().unwrap()["pods"].clone();
    assert!(pods["2"]["wanted"].as_i64().unwrap() > 9, "the new replicas count: {pods}");
    let same = gradus(&["simulate", "--from", &old, "--to", &old]);
    assert_eq!(same.code, Some(1));
    assert!(same.stderr.contains("say the same"), "{}", same.stderr);
    let alone = gradus(&["simulate", "--from", &old]);
    assert_eq!(alone.code, Some(1), "{}", alone.stderr);
}

#[test]
fn a_change_without_a_new_revision_is_played_too() {
    let old = text("rolling-update.yaml");
    let new = old.replacen("replicas: ", "replicas: 1", 1);
    let [old, new] =
        [("scale-old", &old), ("scale-new", &new)].map(|(name, text)| file(name, text));
    let done = gradus(&["simulate", "--from", &old, "--to", &new]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
}

#[test]
fn the_manifests_own_image_is_what_is_deployed() {
    let file = example("rolling-update.yaml");
    let text = text("rolling-update.yaml");
    let image = text.lines().find_map(|line| line.trim().strip_prefix("image: ")).unwrap();
    let image = image.trim_matches('"');
    let done = gradus(&["simulate", "-f", &file, "--image", image, "-o", "json"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(json(&done)["timeline"].as_array().unwrap().len() > 1, "{}", done.stdout);
    let note = format!("note: \"{image}\" is deployed over \"{image}-before\", which is made up");
    assert!(done.stderr.contains(&note), "{}", done.stderr);
}

#[test]
fn what_is_refused_is_shown_as_lint_shows_it() {
    let faulty = root().join("crates/cli/tests/faulty/weight-above-100.yaml");
    let done = gradus(&["simulate", "-f", faulty.to_str().unwrap()]);
    assert_eq!(done.code, Some(1));
    let finding = "error: spec.strategy.canary.steps[2].setWeight: Invalid value: 120";
    assert!(done.stderr.contains(finding), "{}", done.stderr);
}

const PLAIN: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\n\
    spec:\n  replicas: 2\n  selector: {matchLabels: {app: web}}\n  template:\n    \
    metadata: {labels: {app: web}}\n    spec:\n      containers: [{name: web, image: 'web:1'}]\n";

#[test]
fn templates_that_are_missing_are_made_up_and_said() {
    let steps = "  strategy: {canary: {steps: [{setWeight: 50}, {analysis: {templates: \
                 [{templateName: smoke}]}}]}}\n";
    let file = file("made-up", &format!("{PLAIN}{steps}"));
    let done = gradus(&["simulate", "-f", &file]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let note =
        "note: AnalysisTemplate \"smoke\" is not in the manifests; one that succeeds is made up";
    assert!(done.stderr.contains(note), "{}", done.stderr);
    let failed = gradus(&["simulate", "-f", &file, "--behaviour", "new:analysis=failed"]);
    assert_eq!(failed.code, Some(2), "{}{}", failed.stdout, failed.stderr);
}

#[test]
fn readiness_gates_open_unless_a_behaviour_keeps_them_closed() {
    let gates = PLAIN.replace(
        "      containers",
        "      readinessGates: [{conditionType: lb}]\n      containers",
    );
    let file = file("gates", &format!("{gates}  strategy: {{canary: {{}}}}\n"));
    assert_eq!(gradus(&["simulate", "-f", &file]).code, Some(0));
    let closed = gradus(&["simulate", "-f", &file, "--behaviour", "new:gates-closed"]);
    assert_eq!(closed.code, Some(2), "{}", closed.stdout);
}

#[test]
fn an_autoscaler_is_said_to_be_ignored() {
    let scaler = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n\
                  metadata: {name: web}\nspec: {maxReplicas: 9}\n";
    let file = file("scaler", &format!("{PLAIN}  strategy: {{canary: {{}}}}\n{scaler}"));
    let done = gradus(&["simulate", "-f", &file]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let note = "note: HorizontalPodAutoscaler \"web\" is ignored";
    assert!(done.stderr.contains(note), "{}", done.stderr);
}

#[test]
fn a_promotion_shows_all_the_weight_before_it_is_over() {
    let routed = "  strategy:\n    canary:\n      stableService: web\n      canaryService: web-new\n      \
                  trafficRouting: {nginx: {stableIngress: web}}\n      steps: [{setWeight: 50}, \
                  {pause: {duration: 1m}}]\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\n\
                  metadata: {name: web}\nspec:\n  rules:\n  - http:\n      paths:\n      - path: /\n        \
                  pathType: Prefix\n        backend: {service: {name: web, port: {number: 80}}}\n";
    let file = file("all-weight", &format!("{PLAIN}{routed}"));
    let done = gradus(&["simulate", "-f", &file, "-o", "json"]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let weights: Vec<i64> = json(&done)["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["weight"].as_i64())
        .collect();
    assert!(weights.contains(&100) && weights.contains(&50), "{weights:?}");
    let table = gradus(&["simulate", "-f", &file]).stdout;
    assert!(table.lines().any(|line| line.split_whitespace().nth(2) == Some("100")), "{table}");
    let picture = folder("all-weight-plot").join("out.svg");
    gradus(&["simulate", "-f", &file, "--plot", picture.to_str().unwrap()]);
    let svg = std::fs::read_to_string(picture).unwrap();
    let path = svg.lines().find(|line| line.contains("stroke=\"#d93025\"")).unwrap();
    let mut heights = path.split(['M', 'L']).filter_map(|point| point.trim().split(' ').nth(1));
    assert!(heights.any(|y| y == "70.0"), "the line reaches 100 %: {path}");
}

#[test]
fn what_repeats_is_folded() {
    let file = file("flapping", &format!("{PLAIN}  strategy: {{canary: {{}}}}\n"));
    let flapping = ["--behaviour", "new:flapping=10s/5s", "--behaviour", "scale=0@30m"];
    for (format, words) in [("text", " lines like these "), ("json", "\"repeated\": ")] {
        let done = gradus(&[&["simulate", "-f", &file, "-o", format], &flapping[..]].concat());
        let lines = done.stdout.lines().count();
        assert!(lines < 400 && done.stdout.contains(words), "{format}: {lines} lines");
    }
}

#[test]
fn a_pause_that_waits_for_a_person_says_how_to_play_one() {
    let done = gradus(&["simulate", "-f", &example("canary-with-pauses.yaml")]);
    assert_eq!(done.code, Some(3));
    assert!(done.stdout.contains("--behaviour promote plays one"), "{}", done.stdout);
}

#[test]
fn behaviours_that_cannot_be_meant_are_refused_in_words() {
    let file = example("rolling-update.yaml");
    let cases = [
        ("abort@-5m", "\"abort@-5m\": -5m is before the update begins"),
        ("promote@5", "\"promote@5\": 5 needs a unit, such as 5s or 5m"),
        ("promote@soon", "expected a duration such as 10s or 1h30m, found \"soon\""),
        ("nowhere.yaml", "cannot read nowhere.yaml"),
        ("new:sleepy", "is not known; expected one of"),
        ("new:neverready", "is not known; did you mean \"never-ready\"? expected one of"),
        ("abbort@5m", "is not known; did you mean \"abort\"?"),
        ("next:never-ready", "\"next\" is no part of it; expected new:, old: or metric:"),
        ("never-ready=5s", "never-ready takes no value"),
        ("metric:rate=5", "there is no metric in the manifests"),
        ("new:start=-5s", "-5s is no length of time; expected 0s or more"),
        ("scale=many@5m", "expected a number of replicas, found \"many\""),
        ("scale=-2@5m", "expected a number of replicas, found \"-2\""),
    ];
    for (behaviour, expected) in cases {
        let done = gradus(&["simulate", "-f", &file, "--behaviour", behaviour]);
        assert_eq!(done.code, Some(1), "{behaviour}");
        assert!(done.stderr.contains(expected), "{behaviour}: {}", done.stderr);
    }
    let analysed = example("canary-with-analysis.yaml");
    let done = gradus(&["simulate", "-f", &analysed, "--behaviour", "metric:sucess-rate=1"]);
    let expected = "no metric is called \"sucess-rate\"; did you mean \"success-rate\"?";
    assert!(done.code == Some(1) && done.stderr.contains(expected), "{}", done.stderr);
    for image in ["", "web 2"] {
        let done = gradus(&["simulate", "-f", &file, "--image", image]);
        assert_eq!(done.code, Some(1), "{image:?}: {}", done.stdout);
        assert!(done.stderr.contains("is no image: expected one such as"), "{}", done.stderr);
    }
}

#[test]
fn the_picture_says_what_came_of_it_and_clips_nothing() {
    let folder = folder("pictures");
    let draw = |name: &str, behaviour: &str| {
        let path = folder.join(name);
        let file = example("canary-with-timed-pauses.yaml");
        let words =
            ["simulate", "-f", &file, "--behaviour", behaviour, "--plot", path.to_str().unwrap()];
        gradus(&words);
        std::fs::read_to_string(path).unwrap()
    };
    let good = draw("good.svg", "start=5s");
    assert!(good.contains(": promoted after ") && good.contains("fill=\"#fff\""), "{good}");
    assert!(good.matches("class=\"tick\"").count() >= 4, "{good}");
    assert!(good.matches("class=\"step\"").count() >= 3, "{good}");
    for key in ["stable pods", "new pods", "weight of the new pods", "begin of a step"] {
        assert!(good.contains(key), "{key}");
    }
    for part in good.split(" x=\"").skip(1) {
        let x: f64 = part.split('"').next().unwrap().parse().unwrap();
        assert!((0.0..=900.0).contains(&x), "{x} is outside");
    }
    let bad = draw("bad.svg", "new:never-ready");
    assert!(bad.contains(": degraded after ") && bad.contains("#fce8e6"), "{bad}");
    let png = gradus(&["simulate", "-f", &example("rolling-update.yaml"), "--plot", "x.png"]);
    assert_eq!(png.code, Some(1));
    assert!(png.stderr.contains("the name must end with .svg"), "{}", png.stderr);
}
