//! What is said to words that cannot be carried out: exit code 1, and something to act on.

use std::path::Path;

use gradus_simkube::ApiError;
use gradus_simkube::service::HookAction;

use crate::cluster::{Cluster, sample};
use crate::outputs::VERSION;
use crate::plugin::Plugin;
use crate::program::{finish, folder, free_port, kubeconfig};

/// Words, exit code, what standard output and standard error contain (`-` for nothing).
const CASES: &str = "
                               | 1 | -                            | Usage: kubectl argo rollouts
--help                         | 0 | Usage: kubectl argo rollouts | -
get --help                     | 0 | Usage: kubectl argo rollouts get | -
promote --help                 | 0 | --full                       | -
get                            | 1 | -                            | Usage: kubectl argo rollouts get
get service x                  | 1 | -                            | Usage: kubectl argo rollouts get
-n default get service x       | 1 | -                            | Usage: kubectl argo rollouts get
-n list promise                | 1 | -                            | Error: unknown command \"promise\"
get rollout                    | 1 | -                            | Usage: kubectl argo rollouts get rollout
get rollout a b                | 1 | -                            | Usage: kubectl argo rollouts get rollout
list                           | 1 | -                            | Usage: kubectl argo rollouts list
retry                          | 1 | -                            | Usage: kubectl argo rollouts retry
terminate                      | 1 | -                            | Usage: kubectl argo rollouts terminate
set                            | 1 | -                            | Usage: kubectl argo rollouts set
set image web                  | 1 | -                            | Usage: kubectl argo rollouts set image
abort                          | 1 | -                            | Usage: kubectl argo rollouts abort
create                         | 1 | -                            | Usage: kubectl argo rollouts create
status a b                     | 1 | -                            | Usage: kubectl argo rollouts status
promise web                    | 1 | -                            | Error: unknown command \"promise\" for \"kubectl-argo-rollouts\"
promot web                     | 1 | -                            | \tpromote
promote --fully web            | 1 | -                            | Error: unknown flag: --fully
promote --ful web              | 1 | -                            | did you mean --full?
promote web --full=perhaps     | 1 | -                            | unexpected value 'perhaps' for '--full'
get rollout web -o table       | 1 | -                            | expected json, yaml, name, wide or jsonpath=TEMPLATE
get rollout web -w -o json     | 1 | -                            | Error: the argument '--watch' cannot be used with '--output <FORMAT>'
list rollouts -w -o name       | 1 | -                            | Error: the argument '--watch' cannot be used with '--output <FORMAT>'
list rollouts -o table         | 1 | -                            | expected json, yaml, name, wide or jsonpath=TEMPLATE
list experiments -o table      | 1 | -                            | expected json, yaml, name, wide or jsonpath=TEMPLATE
wait web                       | 1 | -                            | Usage: kubectl argo rollouts wait
wait web --for=done            | 1 | -                            | Error: invalid value 'done' for '--for <STATE>': expected healthy, paused, aborted, promoted
lint                           | 1 | -                            | Usage: kubectl argo rollouts lint
simulate -f x -o yaml          | 1 | -                            | expected text, json
abort rollout/web              | 1 | -                            | write the name alone: web
abort ../web                   | 1 | -                            | Error: invalid resource name
list experiments               | 0 | -                            | No resources found.
list rollouts -A=true --watch=0 | 0 | -                           | No resources found.
list rollouts -n x -n y        | 0 | -                            | No resources found.
promote web -c -a              | 1 | -                            | Error: Cannot use skip-current-step and skip-all-steps flags at the same time
dashboard --port 1             | 1 | -                            | Error: dashboard is a command of Argo Rollouts that this version does not have
notifications trigger get      | 1 | -                            | Error: notifications is a command of Argo Rollouts that this version does not have
completion                     | 1 | -                            | Error: accepts 1 arg(s), received 0
completion tcsh                | 1 | -                            | Error: invalid argument \"tcsh\" for \"kubectl-argo-rollouts completion\"
version and more               | 0 | kubectl-argo-rollouts: v     | -
version --short                | 0 | kubectl-argo-rollouts: v     | -
";

#[test]
fn wrong_words_are_answered_as_the_contract_says() {
    let folder = folder("words");
    let cluster = Cluster::start(0, &folder);
    let plugin = Plugin::install("words", &cluster.kubeconfig);
    for row in CASES.trim_matches('\n').lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [words, code, stdout, stderr] = cells[..] else { panic!("four cells: {row}") };
        let finished = plugin.run(words);
        assert_eq!(finished.code, code.parse().ok(), "{words}: {}", finished.stderr);
        let cases = [(&finished.stdout, stdout), (&finished.stderr, stderr)];
        for (said, expected) in cases {
            if expected == "-" {
                assert_eq!(said, "", "{words}");
            } else {
                assert!(said.contains(expected), "{words}: {said}");
            }
        }
    }
}

#[test]
fn the_version_is_told_in_the_lines_that_scripts_know() {
    let said = Plugin::install("version", Path::new("/nowhere")).says("version");
    let lines: Vec<&str> = said.lines().collect();
    let fields: Vec<&str> = lines.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(fields, VERSION, "{said}");
    let commit = lines[2].trim_start_matches("  GitCommit: ");
    let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
    assert!(is_commit || commit == "unknown", "{said}");
    assert!(lines[5].contains("rustc 1."), "{said}");
}

#[test]
fn a_cluster_that_cannot_be_had_is_named() {
    let folder = folder("no-cluster");
    let away = folder.join("away");
    std::fs::write(&away, kubeconfig(free_port())).unwrap();
    let bad = folder.join("bad");
    std::fs::write(&bad, "clusters: [").unwrap();
    let cases = [
        ("no kubeconfig", Path::new("/nowhere/config"), "abort web", "Error: no cluster: "),
        ("no YAML", &bad, "abort web", "Error: no cluster: "),
        (
            "another file",
            &away,
            "abort web --kubeconfig /nowhere/x",
            "Error: kubeconfig /nowhere/x: ",
        ),
        ("no such context", &away, "abort web --context prod", "prod"),
        (
            "nobody answers",
            &away,
            "abort web",
            "Error: cannot reach the API server http://127.0.0.1:",
        ),
        (
            "nobody answers get",
            &away,
            "get rollout web",
            "is the cluster up, and the context right?",
        ),
        ("nobody answers status", &away, "status web", "cannot reach the API server"),
        ("nobody answers list", &away, "list rollouts", "cannot reach the API server"),
        (
            "no scheme",
            &away,
            "list rollouts -s 127.0.0.1:1",
            "the API server http://127.0.0.1:1/: ",
        ),
        (
            "no scheme, but TLS",
            &away,
            "list rollouts -s 127.0.0.1:1 --insecure-skip-tls-verify",
            "the API server https://127.0.0.1:1/: ",
        ),
        ("no such user", &away, "abort web --user ann", "no user \"ann\"; it has test"),
        ("no address", &away, "list rollouts --server :::", "--server ::: is no address"),
        ("no duration", &away, "list rollouts --request-timeout 5q", "--request-timeout"),
    ];
    for (what, path, words, expected) in cases {
        let finished = Plugin::install("no-cluster", path).run(words);
        assert_eq!(finished.code, Some(1), "{what}");
        assert!(finished.stderr.contains(expected), "{what}: {}", finished.stderr);
        assert_eq!(finished.stderr.matches("Error:").count(), 1, "{what}: {}", finished.stderr);
    }
}

/// Who names a context must not end up in the cluster of the pod that the command runs in.
#[test]
fn a_context_that_is_missing_is_not_replaced_by_the_pods_own_cluster() {
    let folder = folder("in-a-pod");
    let away = folder.join("away");
    std::fs::write(&away, kubeconfig(free_port())).unwrap();
    let cases = [
        ("abort web --context prod", away.as_path(), "prod"),
        ("abort web --context prod", Path::new("/nowhere/config"), "no cluster"),
        ("abort web", Path::new("/nowhere/config"), "in-cluster configuration"),
    ];
    for (words, kubeconfig, expected) in cases {
        let mut command = Plugin::install("in-a-pod", kubeconfig).command(words);
        command.env("KUBERNETES_SERVICE_HOST", "192.0.2.1").env("KUBERNETES_SERVICE_PORT", "1");
        let refused = finish(command);
        assert_eq!(refused.code, Some(1), "{words}");
        assert!(refused.stderr.contains(expected), "{words}: {}", refused.stderr);
    }
}

#[test]
fn a_missing_permission_is_told_with_verb_and_resource() {
    let folder = folder("forbidden");
    let cluster = Cluster::start(0, &folder);
    cluster.create(sample("canary-with-pauses.yaml"));
    let plugin = Plugin::install("forbidden", &cluster.kubeconfig);
    cluster.server.set_hook(|seen| {
        let resource = if seen.path.contains("/pods") { "pods" } else { "rollouts" };
        let is_refused = resource == "pods" || seen.method != "GET";
        if !is_refused {
            return HookAction::Pass;
        }
        let verb = if resource == "pods" { "list" } else { "patch" };
        let message = format!(
            "{resource} is forbidden: User \"ann\" cannot {verb} resource \"{resource}\" in API \
             group \"\" in the namespace \"default\""
        );
        HookAction::Refuse(ApiError { code: 403, reason: "Forbidden", message, details: None })
    });
    let missing = plugin.run("terminate analysisrun nobody");
    assert!(!missing.stderr.contains("CRD"), "{}", missing.stderr);
    let refused = plugin.run("abort checkout");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("cannot patch resource \"rollouts\""), "{}", refused.stderr);
    let shown = plugin.run("get rollout checkout");
    assert_eq!(shown.code, Some(0), "what may be read is shown");
    assert!(shown.stdout.contains("checkout"), "{}", shown.stdout);
    let warning = "warning: shown without Pods: ";
    assert!(shown.stderr.contains(warning), "{}", shown.stderr);
    assert!(shown.stderr.contains("cannot list resource \"pods\""), "{}", shown.stderr);
}

#[test]
fn a_name_that_is_not_there_comes_with_names_that_are() {
    let folder = folder("near");
    let cluster = Cluster::start(0, &folder);
    let plugin = Plugin::install("near", &cluster.kubeconfig);
    let empty = plugin.run("get rollout web").stderr;
    assert!(empty.contains("there are no Rollouts in namespace default"), "{empty}");
    cluster.create(sample("canary-with-pauses.yaml"));
    let mut other = sample("rolling-update.yaml");
    other["metadata"]["namespace"] = "kube-system".into();
    cluster.store(&other);
    let cases = [
        (
            "get rollout chekout",
            "Error: rollout.argoproj.io \"chekout\" not found",
            "did you mean \"checkout\"?",
        ),
        (
            "status chekout",
            "Error: rollout.argoproj.io \"chekout\" not found",
            "did you mean \"checkout\"?",
        ),
        (
            "get rollout chekout -w",
            "Error: rollout.argoproj.io \"chekout\" not found",
            "did you mean",
        ),
        (
            "promote chekout",
            "Error: rollouts.argoproj.io \"chekout\" not found",
            "did you mean \"checkout\"?",
        ),
        (
            "undo checkou",
            "Error: rollouts.argoproj.io \"checkou\" not found",
            "did you mean \"checkout\"?",
        ),
        (
            "abort cart",
            "Error: rollouts.argoproj.io \"cart\" not found",
            "there is one in namespace kube-system: add -n kube-system",
        ),
        (
            "abort zebra",
            "Error: rollouts.argoproj.io \"zebra\" not found",
            "none of the 1 Rollouts in namespace default is called so",
        ),
        (
            "terminate ar zebra",
            "Error: analysisruns.argoproj.io \"zebra\" not found",
            "there are no AnalysisRuns",
        ),
        (
            "get exp zebra",
            "Error: experiment.argoproj.io \"zebra\" not found",
            "there are no Experiments",
        ),
    ];
    for (words, first, hint) in cases {
        let refused = plugin.run(words);
        assert_eq!(refused.code, Some(1), "{words}");
        assert!(refused.stderr.starts_with(first), "{words}: {}", refused.stderr);
        assert!(refused.stderr.contains(hint), "{words}: {}", refused.stderr);
    }
    let listed = plugin.run("list rollouts -n nobody-here");
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), ""));
    assert_eq!(listed.stderr, "No resources found.\n");
}

#[test]
fn a_cluster_without_rollouts_says_what_to_install() {
    let folder = folder("bare");
    let cluster = Cluster::bare(0, &folder);
    let plugin = Plugin::install("bare", &cluster.kubeconfig);
    let refused = plugin.run("get rollout web");
    assert!(refused.stderr.contains("is the CRD of Rollouts installed?"), "{}", refused.stderr);
}
