//! `gradus demo`, shown line by line.

use std::time::{Duration, Instant};

use crate::docs::root;
use crate::program::{Running, ask, command, folder, free_port, get, gradus};

#[test]
fn once_it_shows_every_step_of_a_canary_and_ends_well() {
    let folder = folder("demo-once");
    let mut program = command(&["demo", "--once"]);
    let mut demo = Running::start({
        program.current_dir(&folder);
        program
    });
    for expected in [
        "export KUBECONFIG=",
        "checkout  Healthy      revision 1, nginx:1.27",
        "checkout  a person sets the image nginx:1.28",
        "step 1/4: pause until promoted, weight 20 %, 1/5 updated",
        "checkout  a person promotes it",
        "step 3/4: pause until promoted, weight 60 %, 3/5 updated",
        "checkout  Healthy      revision 2, nginx:1.28, 5/5 updated, 5 available",
    ] {
        demo.until(expected);
    }
    assert_eq!(demo.end().code(), Some(0), "{}", demo.seen.join("\n"));
    assert!(!folder.join("gradus-demo.kubeconfig").exists(), "the kubeconfig is removed");
}

#[test]
fn ctrl_c_ends_it_cleanly() {
    let folder = folder("demo-ctrl-c");
    let mut program = command(&["demo"]);
    program.current_dir(&folder);
    let mut demo = Running::start(program);
    demo.until("cart      Healthy");
    assert!(folder.join("gradus-demo.kubeconfig").exists());
    demo.signal("INT");
    assert_eq!(demo.end().code(), Some(0));
    assert!(!folder.join("gradus-demo.kubeconfig").exists());
}

#[test]
fn it_goes_on_when_somebody_deletes_the_kind_of_its_rollouts_and_brings_it_back() {
    let folder = folder("demo-without-kind");
    let port = free_port();
    let mut program = command(&["demo", &format!("--port={port}")]);
    program.current_dir(&folder);
    let mut demo = Running::start(program);
    demo.until("cart      Healthy");
    let kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, answer) = ask(port, "DELETE", &format!("{kinds}/rollouts.argoproj.io"), "").unwrap();
    assert_eq!(code, 200, "{answer}");
    demo.until("cart      is deleted");
    let (_, crd) =
        gradus_api::crd::crds().into_iter().find(|(name, _)| *name == "rollout-crd.yaml").unwrap();
    assert_eq!(ask(port, "POST", kinds, &crd.to_string()).unwrap().0, 201);
    let sample = std::fs::read_to_string(root().join("examples/rollouts/rolling-update.yaml"));
    let rollout: serde_json::Value = serde_saphyr::from_str(&sample.unwrap()).unwrap();
    let rollouts = "/apis/argoproj.io/v1alpha1/namespaces/default/rollouts";
    let (code, answer) = ask(port, "POST", rollouts, &rollout.to_string()).unwrap();
    assert_eq!(code, 201, "{answer}");
    demo.until("cart      Healthy");
    demo.until("cart      a person sets the image");
    demo.signal("INT");
    assert_eq!(demo.end().code(), Some(0));
}

#[test]
fn traffic_moves_and_analyses_are_judged_on_their_own() {
    let port = free_port();
    let mut program = command(&["demo", &format!("--port={port}")]);
    program.current_dir(folder("demo-moves"));
    let mut demo = Running::start(program);
    demo.until("payments  Healthy      revision 2, nginx:1.28, 5/5 updated, 5 available");
    for expected in [
        "shop      Paused       revision 2, nginx:1.28, step 1/4: pause 2m, traffic 20 %",
        "shop      Paused       revision 2, nginx:1.28, step 3/4: pause 2m, traffic 60 %",
        "payments  Progressing  revision 2, nginx:1.28, step 1/4: analysis success-rate, weight 20 %",
    ] {
        assert!(demo.count(expected) > 0, "{expected:?} in:\n{}", demo.seen.join("\n"));
    }
    // The run of the whole update is told to end, and does, or it would stay for ever.
    let began = Instant::now();
    loop {
        let runs = "/apis/argoproj.io/v1alpha1/namespaces/default/analysisruns";
        let runs: serde_json::Value = serde_json::from_str(&get(port, runs).unwrap().1).unwrap();
        let mut runs = runs["items"].as_array().unwrap().iter();
        if runs
            .any(|run| run["spec"]["terminate"] == true && run["status"]["phase"] == "Successful")
        {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", demo.seen);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// It takes a fifth of a second in a release build. Other tests run beside this one: the fastest of
/// a few starts tells of the program, the others of the machine.
#[test]
fn it_is_there_within_two_seconds() {
    let starts = (0..3).map(|_| {
        let mut program = command(&["demo"]);
        program.current_dir(folder("demo-start"));
        let began = Instant::now();
        let mut demo = Running::start(program);
        demo.until("export KUBECONFIG=");
        demo.until("checkout  Progressing");
        began.elapsed()
    });
    let fastest = starts.min().unwrap();
    assert!(fastest < Duration::from_secs(2), "{fastest:?}");
}

#[test]
fn a_second_demo_in_a_folder_has_a_kubeconfig_of_its_own() {
    let folder = folder("demo-two");
    let start = || {
        let mut program = command(&["demo"]);
        program.current_dir(&folder);
        Running::start(program)
    };
    let mut first = start();
    first.until("gradus-demo.kubeconfig");
    let mut second = start();
    second.until("Another demo runs in this folder; gradus-demo.kubeconfig leads to that one.");
    second.until("gradus-demo-2.kubeconfig");
    second.signal("INT");
    assert_eq!(second.end().code(), Some(0));
    assert!(folder.join("gradus-demo.kubeconfig").exists(), "the first one's is not touched");
    assert!(!folder.join("gradus-demo-2.kubeconfig").exists());
    first.signal("INT");
    assert_eq!(first.end().code(), Some(0));
    assert!(!folder.join("gradus-demo.kubeconfig").exists());
}

#[test]
fn a_taken_port_is_one_clear_error() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let finished = gradus(&["demo", &format!("--port={port}")]);
    assert_eq!(finished.code, Some(1));
    let expected = format!("error: cannot listen on 127.0.0.1:{port}: ");
    assert!(finished.stderr.starts_with(&expected), "{}", finished.stderr);
}
