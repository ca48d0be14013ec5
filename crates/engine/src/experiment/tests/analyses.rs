//! AnalysisRuns of an Experiment: when they begin, what they are given, and what their end means.

use super::*;

/// An Experiment with these analyses; `!` before a name says that it is required.
fn with(analyses: &str, fields: Value) -> Value {
    let analyses: Vec<Value> = analyses
        .split_whitespace()
        .map(|name| {
            json!({ "name": name.trim_start_matches('!'), "templateName": "errors",
                "requiredForCompletion": name.starts_with('!') })
        })
        .collect();
    let mut spec = one(fields);
    spec["analyses"] = json!(analyses);
    spec
}

/// What is done, one word after the other: `RUN=PHASE` ends a run, `+N` lets N seconds pass,
/// `terminate` ends the Experiment.
fn follow(play: &mut Play, deeds: &str) {
    play.settle();
    for deed in deeds.split_whitespace() {
        match (deed.split_once('='), deed.strip_prefix('+')) {
            (Some((run, phase)), _) => {
                let message = if is_completed(phase) { "because" } else { "" };
                play.judge(&format!("study-{run}"), phase, message);
            }
            (_, Some(seconds)) => play.go(seconds.parse().unwrap()),
            _ => play.spec(|spec| spec.terminate = true),
        }
        play.settle();
    }
}

/// How it stands: its phase and message, then the phase of each analysis.
fn told(play: &Play) -> String {
    let status = play.status();
    let runs = status.analysis_runs.iter().map(|run| format!("{}={}", run.name, run.phase));
    let runs: Vec<String> = runs.collect();
    format!("{} {} [{}]", status.phase, status.message, runs.join(" ")).replace("  ", " ")
}

/// Analyses | duration | what happens | how it stands then.
const ENDS: &str = "
n    |     |                          | Running [n=Pending]
n    |     | n=Running                | Running [n=Running]
n    |     | n=Failed                 | Failed because [n=Failed]
n    |     | n=Error                  | Error because [n=Error]
n    |     | n=Inconclusive           | Inconclusive because [n=Inconclusive]
n    |     | n=Successful             | Running [n=Successful]
n    | 60s | n=Successful +60         | Successful because [n=Successful]
n    | 60s | n=Running +60            | Successful [n=Running]
n    | 60s | n=Failed +60             | Failed because [n=Failed]
n    |     | n=Running terminate      | Successful [n=Running]
n    |     | n=Running terminate n=Successful | Successful [n=Successful]
n m  |     | n=Successful m=Failed    | Failed because [n=Successful m=Failed]
n m  |     | n=Inconclusive m=Running | Inconclusive because [n=Inconclusive m=Running]
!n   |     | n=Running                | Running [n=Running]
!n   |     | n=Successful             | Successful Required AnalysisRuns completed [n=Successful]
!n   |     | n=Failed                 | Failed because [n=Failed]
!n m |     | n=Successful             | Successful Required AnalysisRuns completed [n=Successful m=Pending]
!n !m |    | n=Successful             | Running [n=Successful m=Pending]
!n !m |    | n=Successful m=Successful | Successful Required AnalysisRuns completed [n=Successful m=Successful]
!n   | 60s | n=Running +60            | Running [n=Running]
!n   | 60s | n=Running +60 n=Successful | Successful Required AnalysisRuns completed [n=Successful]
!n   | 60s | n=Running +60 n=Failed   | Failed because [n=Failed]
!n   |     | n=Running terminate      | Running [n=Running]
!n   |     | n=Running terminate n=Successful | Successful Required AnalysisRuns completed [n=Successful]
!n   |     | n=Running terminate n=Inconclusive | Inconclusive because [n=Inconclusive]
";

#[test]
fn analyses_lead_to_the_end_that_they_say() {
    for row in ENDS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [analyses, duration, deeds, expected] = cells[..] else { panic!("four cells: {row}") };
        let mut play = Play::new(with(analyses, json!({ "duration": duration })));
        follow(&mut play, deeds);
        assert_eq!(told(&play), expected, "{row}");
        let is_over = is_completed(&play.status().phase);
        for (_, run) in play.objects.iter().filter(|((kind, _), _)| kind == "AnalysisRun") {
            let has_ended = is_completed(run["status"]["phase"].as_str().unwrap_or(""));
            let is_ended = run["spec"]["terminate"] == true;
            assert!(!is_over || has_ended || is_ended, "{row}: {run} goes on");
        }
    }
}

#[test]
fn runs_begin_once_the_pods_are_available_and_are_told_of_on_both_objects() {
    let owner = json!({ "ownerReferences": [{ "kind": "Rollout", "name": "web", "uid": "u",
        "controller": true }], "labels": {
            "argo-rollouts.argoproj.io/controller-instance-id": "blue" } });
    let fields = json!({ "analysisRunMetadata": { "labels": { "l": "1" },
        "annotations": { "a": "2" } }, "dryRun": [{ "metricName": "m" }],
        "measurementRetention": [{ "metricName": "m", "limit": 3 }] });
    let mut play = Play::with_metadata(owner, with("n", fields));
    play.has_good_pods = false;
    play.settle();
    assert_eq!(*play.run("n"), ExperimentRunStatus { name: "n".into(), ..Default::default() });
    play.has_good_pods = true;
    play.look();
    play.events.clear();
    play.settle();
    let run = play.object("AnalysisRun", "study-n").unwrap();
    let expected = json!({ "argo-rollouts.argoproj.io/controller-instance-id": "blue", "l": "1" });
    assert_eq!(run["metadata"]["labels"], expected);
    assert_eq!(run["metadata"]["annotations"], json!({ "a": "2" }));
    assert_eq!(run["metadata"]["ownerReferences"][0]["kind"], "Experiment");
    assert_eq!(run["spec"]["dryRun"], json!([{ "metricName": "m" }]));
    assert_eq!(run["spec"]["measurementRetention"][0]["limit"], 3);
    play.judge("study-n", "Running", "");
    play.settle();
    play.judge("study-n", "Failed", "too many");
    play.settle();
    let expected = [
        "TemplateRunning Template 'a' transitioned from Progressing -> Running",
        "ExperimentRunning Experiment transitioned from Pending -> Running",
        "AnalysisRunPending AnalysisRun 'n' transitioned from  -> Pending",
        "Rollout: AnalysisRunPending AnalysisRun 'n' transitioned from  -> Pending",
        "AnalysisRunRunning AnalysisRun 'n' transitioned from Pending -> Running",
        "Rollout: AnalysisRunRunning AnalysisRun 'n' transitioned from Pending -> Running",
        "AnalysisRunFailed AnalysisRun 'n' transitioned from Running -> Failed: too many",
        "Rollout: AnalysisRunFailed AnalysisRun 'n' transitioned from Running -> Failed: too many",
        "ExperimentFailed Experiment transitioned from Running -> Failed",
        "TemplateSuccessful Template 'a' transitioned from Running -> Successful",
    ];
    assert_eq!(play.events, expected);
}

#[test]
fn arguments_speak_of_the_experiment() {
    let given = [
        ("hash", "{{templates.a.podTemplateHash}}"),
        ("set", "of {{ templates.a.replicaset.name }}!"),
        ("from", "{{experiment.availableAt}}"),
        ("until", "{{experiment.finishedAt}}"),
    ];
    let args: Vec<Value> =
        given.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let secret = json!({ "name": "token",
        "valueFrom": { "secretKeyRef": { "name": "keys", "key": "k" } } });
    let declared: Vec<Value> = given.iter().map(|(name, _)| json!({ "name": name })).collect();
    let with_args = |args: Vec<Value>| {
        let mut spec = with("n", json!({ "duration": "60s" }));
        spec["analyses"][0]["args"] = json!(args);
        let mut play = Play::new(spec);
        let declared = [declared.clone(), vec![json!({ "name": "token" })]].concat();
        play.template("errors", json!({ "metrics": [{ "name": "m" }], "args": declared }));
        play.settle();
        play
    };
    let play = with_args([args.clone(), vec![secret.clone()]].concat());
    let run = play.object("AnalysisRun", "study-n").unwrap();
    let set = play.object("ReplicaSet", "study-a").unwrap();
    let hash = &set["metadata"]["labels"]["rollouts-pod-template-hash"];
    let expected = json!([
        { "name": "hash", "value": hash }, { "name": "set", "value": "of study-a!" },
        { "name": "from", "value": "1970-01-01T00:16:40Z" },
        { "name": "until", "value": "1970-01-01T00:17:40Z" }, secret,
    ]);
    assert_eq!(run["spec"]["args"], expected);
    let unknown = json!({ "name": "hash", "value": "{{templates.b.podTemplateHash}}" });
    let cases = [
        (vec![], "args.hash was not resolved"),
        (vec![unknown], "failed to resolve {{templates.b.podTemplateHash}}"),
    ];
    for (args, cause) in cases {
        let play = with_args(args);
        let message = format!("Failed to create AnalysisRun for analysis 'n': {cause}");
        assert_eq!((&*play.run("n").phase, &play.run("n").message), ("Error", &message));
        assert_eq!((&*play.status().phase, &play.status().message), ("Error", &message));
    }
}

#[test]
fn a_template_that_is_missing_ends_it_before_any_pod_is_ready() {
    let (none, kind) = ("nothing", ["AnalysisTemplate", "ClusterAnalysisTemplate"]);
    for is_cluster in [false, true] {
        let mut spec = with("n", json!({}));
        spec["analyses"][0]["templateName"] = json!(none);
        spec["analyses"][0]["clusterScope"] = json!(is_cluster);
        let mut play = Play::new(spec);
        play.has_good_pods = false;
        play.settle();
        let kind = kind[usize::from(is_cluster)];
        let message = format!(
            "{kind} verification failed for analysis 'n': {}.argoproj.io \"nothing\" not found",
            kind.to_lowercase()
        );
        assert_eq!((&*play.status().phase, &play.status().message), ("Error", &message));
    }
    let mut play = Play::new(with("n", json!({})));
    let unknown = Known::Unknown("forbidden".to_owned());
    play.world.templates.namespaced.insert("errors".into(), unknown);
    play.settle();
    assert_eq!((&*play.status().phase, &*play.run("n").phase), ("Running", ""), "it waits");
}

#[test]
fn a_template_that_no_watch_has_shown_yet_is_waited_for() {
    let mut play = Play::new(with("n", json!({})));
    let late = play.world.templates.namespaced.remove("errors").unwrap();
    play.foreign.insert("errors".to_owned(), json!({ "metadata": {} }));
    play.settle();
    assert_eq!(&*play.status().phase, "Running", "a read has found it");
    assert_eq!(&*play.run("n").phase, "", "nothing is known of it");
    play.world.templates.namespaced.insert("errors".into(), late);
    play.settle();
    assert_ne!(play.run("n").analysis_run, "");
}

#[test]
fn a_run_that_is_gone_is_an_error_and_one_of_another_name_is_stepped_around() {
    let mut play = Play::new(with("n", json!({})));
    play.settle();
    play.objects.remove(&("AnalysisRun".to_owned(), "study-n".to_owned()));
    play.look();
    play.settle();
    let message = "analysisruns.argoproj.io \"study-n\" not found";
    assert_eq!((&*play.status().phase, &*play.status().message), ("Error", message));

    let mut play = Play::new(with("n", json!({})));
    play.refuse("create", kinds::ANALYSIS_RUN, "study-n", Class::Exists, "already exists");
    play.foreign.insert("study-n".to_owned(), json!({ "metadata": {} }));
    play.settle();
    assert_eq!(play.run("n").analysis_run, "study-n.1");
}
