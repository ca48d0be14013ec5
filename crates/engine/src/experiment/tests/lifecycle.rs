//! From the first ReplicaSet to the last pod.

use super::*;

#[test]
fn an_experiment_runs_for_its_duration_and_cleans_up() {
    let mut play = Play::new(one(json!({ "duration": "60s" })));
    play.settle();
    assert_eq!((&*play.status().phase, &*play.pods("a").status), ("Running", "Running"));
    assert_eq!(play.status().available_at.unwrap().timestamp(), play.now);
    assert_eq!(play.written, ["create ReplicaSet study-a", "patch ReplicaSet study-a"]);
    let expected = [
        "TemplateProgressing Template 'a' transitioned from  -> Progressing",
        "ExperimentPending Experiment transitioned from  -> Pending",
        "ScalingReplicaSet Scaled up ReplicaSet study-a from 0 to 1",
        "TemplateRunning Template 'a' transitioned from Progressing -> Running",
        "ExperimentRunning Experiment transitioned from Pending -> Running",
    ];
    assert_eq!(play.events, expected);
    play.go(59);
    assert_eq!(play.status().phase, "Running", "its time is not over");
    play.go(1);
    assert_eq!((&*play.status().phase, &*play.pods("a").status), ("Successful", "Successful"));
    let expected = [
        "TemplateSuccessful Template 'a' transitioned from Running -> Successful",
        "ExperimentSuccessful Experiment transitioned from Running -> Successful",
    ];
    assert_eq!(play.events[5..], expected);
    let set = play.object("ReplicaSet", "study-a").unwrap();
    assert_eq!(set["spec"]["replicas"], 1, "its pods stay for a while");
    assert_eq!(set["metadata"]["annotations"]["scale-down-deadline"], "1970-01-01T00:18:10Z");
    play.go(29);
    assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 1);
    play.go(1);
    assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 0);
    assert_eq!(play.events[7..], ["ScalingReplicaSet Scaled down ReplicaSet study-a from 1 to 0"]);
    assert_eq!(play.pods("a").replicas, 0);
    play.go(3600);
    assert_eq!(play.written.len(), 4, "nothing more is done: {:?}", play.written);
    let condition = &play.status().conditions[0];
    assert_eq!(
        (&*condition.r#type, &*condition.status, &*condition.reason, &*condition.message),
        (
            "Progressing",
            "False",
            "ExperimentCompleted",
            "Experiment \"study\" has successfully ran and completed."
        )
    );
}

#[test]
fn a_replica_set_has_the_hash_of_its_own_template_and_says_whose_it_is() {
    let mut play = Play::new(one(json!({})));
    play.step();
    let set = play.object("ReplicaSet", "study-a").unwrap();
    let labels = json!({ "app": "web", "rollouts-pod-template-hash": "5bf4967d4" });
    let hash = &set["metadata"]["labels"]["rollouts-pod-template-hash"];
    assert_ne!(*hash, "stale", "the hash of another revision is not kept");
    let mut labels = labels;
    labels["rollouts-pod-template-hash"] = hash.clone();
    assert_eq!(set["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(set["spec"]["replicas"], 0);
    let expected = json!({ "experiment.argoproj.io/name": "study",
        "experiment.argoproj.io/template-name": "a" });
    assert_eq!(set["metadata"]["annotations"], expected);
    let owner = &set["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("Experiment"), &json!(UID)));
}

#[test]
fn a_service_comes_with_its_pods_and_goes_after_them() {
    let named = |service: Value| {
        json!({ "templates": [template("a", json!({ "service": service }))], "duration": "10s",
            "scaleDownDelaySeconds": 5 })
    };
    for (service, name) in [(json!({}), "study-a"), (json!({ "name": "beta" }), "beta")] {
        let mut play = Play::new(named(service));
        play.settle();
        let order = [
            "create ReplicaSet study-a".to_owned(),
            format!("create Service {name}"),
            "patch ReplicaSet study-a".to_owned(),
        ];
        assert_eq!(play.written, order);
        let set = play.object("ReplicaSet", "study-a").unwrap();
        let hash = set["metadata"]["labels"]["rollouts-pod-template-hash"].clone();
        let made = play.object("Service", name).unwrap();
        let port = json!({ "name": "http", "protocol": "TCP", "port": 80, "targetPort": 80 });
        let selector = json!({ "app": "web", "rollouts-pod-template-hash": hash });
        assert_eq!(made["spec"], json!({ "ports": [port], "selector": selector }));
        let TemplateStatus { service_name, pod_template_hash, .. } = play.pods("a");
        assert_eq!((service_name.as_str(), json!(pod_template_hash)), (name, hash));
        play.go(14);
        assert!(play.object("Service", name).is_some(), "its pods are still there");
        play.go(60);
        assert!(play.object("Service", name).is_none());
        assert_eq!(play.pods("a").service_name, "");
        assert_eq!(play.pods("a").pod_template_hash, "");
    }
}

#[test]
fn without_ports_there_is_no_service() {
    let mut bare = template("a", json!({ "service": {} }));
    bare["template"]["spec"]["containers"][0]["ports"] = Value::Null;
    let mut play = Play::new(json!({ "templates": [bare] }));
    play.settle();
    assert_eq!((&*play.status().phase, &*play.pods("a").service_name), ("Running", ""));
}

#[test]
fn pods_that_never_become_available_fail_it_at_the_deadline() {
    let both = json!([template("a", json!({})), template("b", json!({ "replicas": 0 }))]);
    let mut play = Play::new(json!({ "templates": both, "progressDeadlineSeconds": 20,
        "duration": "5s" }));
    play.has_good_pods = false;
    play.go(19);
    assert_eq!((&*play.status().phase, &*play.pods("b").status), ("Pending", "Running"));
    assert_eq!(play.status().available_at, None, "one is not enough");
    play.go(1);
    let message = "Template 'a' exceeded its progressDeadlineSeconds (20)";
    assert_eq!((&*play.pods("a").status, &*play.pods("a").message), ("Failed", message));
    assert_eq!((&*play.status().phase, &*play.status().message), ("Failed", message));
    assert_eq!(play.pods("b").status, "Successful", "the others end with it");
    assert!(play.events.contains(&format!(
        "TemplateFailed Template 'a' transitioned from Progressing -> Failed: {message}"
    )));
    play.go(60);
    assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 0);
}

#[test]
fn lost_pods_bring_it_back_to_pending_and_its_time_goes_on() {
    let mut play = Play::new(one(json!({ "duration": "60s" })));
    play.go(30);
    let begun = play.status().available_at;
    play.has_good_pods = false;
    play.look();
    play.go(10);
    assert_eq!((&*play.status().phase, &*play.pods("a").status), ("Pending", "Progressing"));
    assert_eq!(play.status().available_at, begun);
    play.has_good_pods = true;
    play.look();
    play.go(25);
    assert_eq!(play.status().phase, "Successful", "60 seconds after it began");
}

#[test]
fn without_duration_it_runs_until_somebody_ends_it() {
    let mut play = Play::new(one(json!({})));
    play.go(100_000);
    assert_eq!(play.status().phase, "Running");
    play.spec(|spec| spec.terminate = true);
    play.go(60);
    assert_eq!((&*play.status().phase, &*play.status().message), ("Successful", ""));
    assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 0);
}

#[test]
fn one_that_is_ended_before_it_began_starts_nothing() {
    let mut play = Play::new(one(json!({ "terminate": true })));
    play.go(60);
    assert_eq!((&*play.status().phase, play.written.len()), ("Successful", 0));
}

#[test]
fn another_try_scales_up_again_and_keeps_its_delay() {
    let mut play = Play::new(one(json!({ "duration": "60s" })));
    play.go(200);
    assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 0);
    play.change(|experiment| experiment.status = Arc::default());
    play.settle();
    let set = play.object("ReplicaSet", "study-a").unwrap();
    assert_eq!(set["spec"]["replicas"], 1);
    assert_eq!(set["metadata"]["annotations"].get("scale-down-deadline"), None);
    play.go(60);
    assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 1);
    play.go(60);
    assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 0);
}

#[test]
fn without_a_delay_pods_go_at_once() {
    let mut play = Play::new(one(json!({ "duration": "10s", "scaleDownDelaySeconds": 0 })));
    play.go(10);
    assert_eq!(play.object("ReplicaSet", "study-a").unwrap()["spec"]["replicas"], 0);
    assert_eq!(play.written.len(), 3, "no deadline is noted: {:?}", play.written);
}

#[test]
fn a_restart_at_any_moment_leads_to_the_same_end() {
    let spec = || {
        json!({ "templates": [template("a", json!({ "service": {} })), template("b", json!({}))],
            "duration": "20s", "analyses": [{ "name": "n", "templateName": "errors" }] })
    };
    let play_with = |lost: usize| {
        let mut play = Play::new(spec());
        for step in 0..200 {
            if step == lost {
                play.restart();
            }
            match play.step() {
                Some(Some(wake_at)) => play.now = wake_at,
                Some(None) => break,
                None => {}
            }
        }
        play
    };
    let undisturbed = play_with(usize::MAX);
    for lost in 0..20 {
        let play = play_with(lost);
        assert_eq!(play.status(), undisturbed.status(), "lost at {lost}");
        assert_eq!(play.objects, undisturbed.objects, "lost at {lost}");
    }
}

#[test]
fn what_is_deleted_is_left_alone_and_what_cannot_be_read_waits() {
    let mut play = Play::new(one(json!({})));
    play.change(|experiment| experiment.is_deleting = true);
    assert_eq!(decide(&play.world, play.now), Decision::default());
    play.change(|experiment| experiment.is_deleting = false);
    play.world.services = Known::Unknown("forbidden".to_owned());
    let decision = decide(&play.world, play.now);
    assert_eq!((decision.changes.len(), decision.status), (0, None));
    assert_eq!(decision.why[0].guard, Guard::Unreadable { message: "forbidden".to_owned() });
}
