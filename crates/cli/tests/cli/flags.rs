//! What is said to arguments that are wrong, and to those that ask?

use crate::program::gradus;

#[test]
fn wrong_arguments_are_named_and_refused() {
    let cases: [(&str, &[&str], &str); 8] = [
        ("an unknown command", &["promise"], "unrecognized subcommand 'promise'"),
        ("an unknown flag", &["controller", "--speed=9"], "unexpected argument '--speed'"),
        (
            "what Argo Rollouts can do",
            &["controller", "--self-service-notification-enabled"],
            "--self-service-notification-enabled asks for notifications that a namespace configures",
        ),
        (
            "another, value apart",
            &["controller", "--qps", "9", "--traffic-split-api-version", "v2"],
            "Unsupported TrafficSplit API version `v2`",
        ),
        ("no port", &["controller", "--metricsPort=70000"], "invalid value '70000'"),
        ("no level", &["controller", "--loglevel=loud"], "unknown log level \"loud\""),
        ("no format", &["controller", "--logformat=xml"], "unknown log format \"xml\""),
        ("no file", &["controller", "--kubeconfig=/nowhere/config"], "/nowhere/config"),
    ];
    for (what, arguments, expected) in cases {
        let finished = gradus(arguments);
        assert_ne!(finished.code, Some(0), "{what}");
        assert!(finished.stderr.contains(expected), "{what}: {}", finished.stderr);
        let errors = finished.stderr.lines().filter(|line| line.starts_with("error:")).count();
        assert_eq!(errors, 1, "{what}: one clear line in {}", finished.stderr);
    }
}

#[test]
fn every_command_is_described_in_its_own_words() {
    let help = gradus(&["--help"]).stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut about: Vec<&str> =
        commands.lines().map(|line| line.trim().split_once(' ').unwrap().1.trim()).collect();
    let count = about.len();
    about.sort_unstable();
    about.dedup();
    assert_eq!(about.len(), count, "{help}");
    let get = gradus(&["get", "--help"]).stdout;
    assert!(get.starts_with("Show a rollout or an experiment"), "{get}");
}

#[test]
fn the_version_is_told_in_every_way() {
    let version = env!("CARGO_PKG_VERSION");
    for arguments in [&["version"][..], &["--version"], &["controller", "--version"]] {
        let finished = gradus(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}");
        assert!(finished.stdout.contains(version), "{arguments:?}: {}", finished.stdout);
    }
    assert_eq!(gradus(&["version", "--short"]).stdout, format!("{version}\n"));
}
