//! Plugins as people write them, good and bad: small programs that are started for real.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use gradus_engine::ask::PluginSaid;
use gradus_engine::frame::Frame;
use serde_json::json;

use super::*;
use crate::cluster::{Listing, PostedEvent, Write, Written};

/// A cluster that has a Rollout, and the ConfigMap that lists the plugins.
struct Listed(Mutex<String>);

impl Cluster for Listed {
    async fn write(&self, _: Write) -> Result<Written, WriteError> {
        unreachable!("nobody writes here")
    }

    async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        unreachable!("objects are read whole")
    }

    async fn read_whole(&self, target: &ObjectRef) -> Result<Option<Value>, WriteError> {
        let list = self.0.lock().unwrap().clone();
        let metadata = json!({ "name": target.name, "namespace": target.namespace });
        Ok(Some(match &*target.kind.name {
            "ConfigMap" => json!({ "data": { "stepPlugins": list } }),
            "Deployment" => json!({ "spec": { "template": { "spec": {} },
                "selector": { "matchLabels": { "of": target.name } } } }),
            "PodTemplate" => json!({ "template": { "spec": { "of": target.name } } }),
            _ if &*target.name == "refers" => json!({ "metadata": metadata, "spec": {
                "workloadRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "base" } } }),
            _ if &*target.name == "models" => json!({ "metadata": metadata, "spec": {
                "workloadRef": { "apiVersion": "v1", "kind": "PodTemplate", "name": "model" } } }),
            _ => json!({ "metadata": metadata }),
        }))
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, _: &Listing) -> Result<Vec<Frame>, WriteError> {
        unreachable!("nobody lists here")
    }

    async fn post(&self, _: &PostedEvent) -> Result<(), WriteError> {
        unreachable!("nobody posts here")
    }
}

/// Programs in a folder of the test, and the host that runs them.
struct Ground {
    folder: PathBuf,
    cluster: Listed,
    plugins: Plugins,
}

impl Ground {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("gradus-test-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let plugins = Plugins::new("argo-rollouts", folder.join("bin"));
        Ground { folder, cluster: Listed(Mutex::default()), plugins }
    }

    /// Lists a program of this text, with further fields of its entry.
    fn add(&self, name: &str, program: &str, fields: &str) {
        let path = self.folder.join(name.replace('/', "-"));
        fs::write(&path, program).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let sha = digest(&SHA256, program.as_bytes());
        let sha: String = sha.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let location = path.display();
        let entry =
            format!("- {{name: {name}, location: 'file://{location}', sha256: '{sha}'{fields}}}\n");
        self.cluster.0.lock().unwrap().push_str(&entry);
        *self.plugins.shared.config.lock().unwrap() = None;
    }

    async fn run(&self, name: &str) -> PluginReply {
        let call = PluginCall {
            name: name.to_owned(),
            operation: "Run".to_owned(),
            index: 0,
            config: Some(Arc::new(json!({ "word": "hello" }))),
            status: None,
        };
        let rollout = ObjectRef::new(gradus_engine::kinds::ROLLOUT, &"shop".into(), &"web".into());
        self.plugins.step(&self.cluster, &rollout, &call).await.unwrap()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// A plugin that answers every call with this, in the shell's own words: it finds no programs.
fn answering(result: &str) -> String {
    format!(
        "#!/bin/sh\n\
         echo '{{\"protocol\":\"gradus-plugin\",\"version\":1,\"kind\":\"step\"}}'\n\
         while read -r line; do\n\
         id=${{line#*\\\"id\\\":}}; id=${{id%%[!0-9]*}}\n\
         case \"$line\" in\n\
         *'\"method\":\"Run\"'*) {result} ;;\n\
         *'\"method\":\"Quit\"'*) exit 0 ;;\n\
         *) echo \"{{\\\"id\\\":$id,\\\"result\\\":null}}\" ;;\n\
         esac\n\
         done\n"
    )
}

const SUCCESS: &str =
    r#"echo "{\"id\":$id,\"result\":{\"phase\":\"Successful\",\"message\":\"ok\"}}""#;

fn text(reply: &PluginReply) -> String {
    match reply {
        PluginReply::Said(PluginSaid { phase, message, .. }) => format!("{phase}: {message}"),
        PluginReply::Broken(why) => format!("broken: {why}"),
        PluginReply::Unusable(why) => format!("unusable: {why}"),
        PluginReply::Disabled => "disabled".to_owned(),
    }
}

#[tokio::test]
async fn a_bad_plugin_costs_its_callers_their_answers_and_nobody_else_anything() {
    let ground = Ground::new("bad");
    ground.add("a/good", &answering(SUCCESS), "");
    assert_eq!(text(&ground.run("a/good").await), "Successful: ok");
    let flood = "i=0; while [ $i -lt 20000 ]; do echo flood >&2; i=$((i+1)); done; ".to_owned();
    let endless =
        "while :; do printf xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done";
    let greeting = |version: u32, kind: &str| {
        format!(
            "#!/bin/sh\necho '{{\"protocol\":\"gradus-plugin\",\"version\":{version},\
             \"kind\":\"{kind}\"}}'\nread -r line\n"
        )
    };
    let slow = ", timeout: 1s";
    let late = format!("read -t 2 -r x < /dev/zero; {SUCCESS}");
    let cases = [
        ("a/exits", "#!/bin/sh\nexit 3\n".to_owned(), "", "exited before we could connect"),
        ("a/talks", "#!/bin/sh\necho I am no plugin\n".to_owned(), "", "Unrecognized remote"),
        ("a/grpc", "#!/bin/sh\necho '1|1|unix|x|grpc|'\n".to_owned(), "", "protocol \"grpc\""),
        ("a/newer", greeting(2, "step"), "", "speaks version 2 of gradus-plugin: expected 1"),
        ("a/other", greeting(1, "metric"), "", "of kind metric: expected step"),
        ("a/floods", answering(&format!("{flood}{SUCCESS}")), "", "Successful: ok"),
        ("a/garbage", answering("echo nonsense"), "", "Run rpc call error: unexpected EOF"),
        ("a/dies", answering("exit 1"), "", "Run rpc call error: unexpected EOF"),
        ("a/endless", answering(endless), slow, "Run rpc call error"),
        ("a/hangs", answering("while :; do :; done"), slow, "no answer within 1 s"),
        ("a/late", answering(&late), slow, ""),
    ];
    let mut slowest = Duration::ZERO;
    for (name, program, fields, expected) in cases {
        ground.add(name, &program, fields);
        let bad = ground.run(name);
        let good = async {
            let mut slowest = Duration::ZERO;
            for _ in 0..5 {
                let began = Instant::now();
                assert_eq!(text(&ground.run("a/good").await), "Successful: ok", "beside {name}");
                slowest = slowest.max(began.elapsed());
            }
            slowest
        };
        let (bad, took) = tokio::join!(bad, good);
        assert!(text(&bad).contains(expected), "{name}: {}", text(&bad));
        slowest = slowest.max(took);
    }
    assert!(slowest < Duration::from_secs(1), "the good one took {slowest:?} beside a bad one");
    ground.plugins.stop().await;
}

#[tokio::test]
async fn a_plugin_finds_nothing_of_ours_but_what_its_configuration_lists() {
    let ground = Ground::new("bare");
    let found = r#"IFS=' '; fds=$(cd /proc/self/fd && echo *); here=$(pwd)
        echo "{\"id\":$id,\"result\":{\"message\":\"$GREETING $PATHLESS $fds $here $TMPDIR\"}}""#;
    let fields = ", env: [{name: GREETING, value: hi}, {name: NOT_SET_HERE}]";
    ground.add("a/bare", &answering(found), fields);
    let said = text(&ground.run("a/bare").await);
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(words[1], "hi", "{said}");
    let (folders, descriptors): (Vec<&str>, Vec<&str>) =
        words[2..].iter().partition(|word| word.starts_with('/'));
    let numbers: Vec<u32> = descriptors.iter().filter_map(|word| word.parse().ok()).collect();
    assert!(numbers.iter().all(|number| *number <= 3 || *number >= 10), "{said}");
    assert_eq!(folders.len(), 2, "{said}");
    assert_eq!(folders[0], folders[1], "its own folder");
    let folder = PathBuf::from(folders[0]);
    assert!(folder.exists());
    ground.plugins.stop().await;
    assert!(!folder.exists(), "gone with the process");
}

/// Who may do what with a file.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_plugin_has_limits_and_an_environment_of_its_own() {
    let ground = Ground::new("limits");
    let found = r#"all=$(export -p); names=""
        for word in $all; do case "$word" in *=*) names="$names ${word%%=*}" ;; esac; done
        echo "{\"id\":$id,\"result\":{\"message\":\"$(ulimit -d) $(ulimit -n) $(ulimit -c)$names\"}}""#;
    ground.add("a/limits", &answering(found), ", env: [{name: GREETING, value: hi}]");
    let said = text(&ground.run("a/limits").await);
    let words: Vec<&str> = said.split_whitespace().skip(1).collect();
    #[cfg(target_os = "linux")]
    {
        let data = (confine::data_limit() >> 10).to_string();
        assert_eq!(words[..3], [&*data, "1024", "0"], "KiB of data, files, KiB of core: {said}");
    }
    // What the shell sets by itself is none of ours.
    let known = [
        "ARGO_ROLLOUTS_RPC_PLUGIN",
        "GRADUS_PLUGIN_KIND",
        "GRADUS_PLUGIN_VERSIONS",
        "GREETING",
        "HOME",
        "PLUGIN_MAX_PORT",
        "PLUGIN_MIN_PORT",
        "PLUGIN_PROTOCOL_VERSIONS",
        "TMPDIR",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    ];
    let foreign: Vec<&&str> = words[3..].iter().filter(|name| !known.contains(name)).collect();
    assert!(foreign.is_empty() && words.contains(&"GREETING"), "{said}");
    ground.plugins.stop().await;
}

#[tokio::test]
async fn only_the_program_that_was_configured_is_started_and_none_is_written_over() {
    let ground = Ground::new("sha");
    ground.add("a/plugin", &answering(SUCCESS), "");
    fs::write(ground.folder.join("a-plugin"), "#!/bin/sh\nexit 0\n").unwrap();
    let said = text(&ground.run("a/plugin").await);
    assert!(said.contains("does not match expected hash"), "{said}");

    let ground = Ground::new("kept");
    ground.add("a/plugin", &answering(SUCCESS), "");
    assert_eq!(text(&ground.run("a/plugin").await), "Successful: ok");
    ground.plugins.stop().await;
    let kept = ground.folder.join("bin/.verified/step/a");
    assert_eq!(mode(&kept), 0o700, "nobody else looks into it");
    let program = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    assert_eq!(mode(&program), 0o500, "and nobody changes it");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(&program, "#!/bin/sh\nexit 0\n").unwrap();
    let said = text(&ground.run("a/plugin").await);
    assert!(said.contains("is another file than the one configured"), "{said}");
    assert_eq!(fs::read_to_string(&program).unwrap(), "#!/bin/sh\nexit 0\n", "left alone");
}

#[tokio::test]
async fn one_process_serves_all_calls_and_a_dead_one_is_started_again() {
    let ground = Ground::new("again");
    let counting = r#"n=$((n+1)); [ $n -lt 4 ] || exit 1
        echo "{\"id\":$id,\"result\":{\"message\":\"$$ $n\"}}""#;
    ground.add("a/counts", &answering(counting), "");
    let mut said = Vec::new();
    for _ in 0..3 {
        said.push(text(&ground.run("a/counts").await));
    }
    let process = |said: &str| said.split_whitespace().nth(1).unwrap_or_default().to_owned();
    assert_eq!(process(&said[0]), process(&said[2]), "{said:?}");
    assert!(text(&ground.run("a/counts").await).contains("unexpected EOF"));
    let next = loop {
        let reply = ground.run("a/counts").await;
        if !matches!(reply, PluginReply::Unusable(_)) {
            break text(&reply);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_ne!(process(&said[0]), process(&next), "a new one");
    ground.plugins.stop().await;
}

#[tokio::test]
async fn a_plugin_that_is_listed_no_more_ends() {
    let ground = Ground::new("retired");
    let here = r#"echo "{\"id\":$id,\"result\":{\"message\":\"$(pwd)\"}}""#;
    ground.add("a/first", &answering(here), "");
    let said = text(&ground.run("a/first").await);
    let folder = PathBuf::from(said.trim_start_matches(": "));
    assert!(folder.exists(), "{said}");
    ground.cluster.0.lock().unwrap().clear();
    ground.add("a/second", &answering(SUCCESS), "");
    assert_eq!(text(&ground.run("a/second").await), "Successful: ok");
    let began = Instant::now();
    while folder.exists() {
        assert!(began.elapsed() < Duration::from_secs(10), "{said}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ground.plugins.stop().await;
}

#[tokio::test]
async fn what_is_not_configured_or_switched_off_is_not_started() {
    let ground = Ground::new("none");
    ground.add("a/off", "#!/bin/sh\n", ", disabled: true");
    assert_eq!(ground.run("a/off").await, PluginReply::Disabled);
    let expected = "unusable: failed to get step plugin a/none: unable to start plugin system: unable \
        to find plugin (a/none): plugin a/none not configured in configmap";
    assert_eq!(text(&ground.run("a/none").await), expected);
}

#[tokio::test]
async fn a_plugin_is_told_of_the_pods_of_the_workload_that_a_rollout_refers_to() {
    let cluster = Listed(Mutex::default());
    let cases = [
        ("refers", "/spec/template/spec", json!({})),
        ("refers", "/spec/selector/matchLabels/of", json!("base")),
        ("refers", "/spec/selectorResolvedFromRef", json!(true)),
        ("models", "/spec/template/spec/of", json!("model")),
        ("models", "/spec/templateResolvedFromRef", json!(true)),
        ("models", "/spec/selector", Value::Null),
        ("plain", "/spec", Value::Null),
    ];
    for (name, pointer, expected) in cases {
        let target = ObjectRef::new(gradus_engine::kinds::ROLLOUT, &"shop".into(), &name.into());
        let found = subject::rollout(&cluster, &target).await.unwrap().unwrap();
        let found = found.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{name} {pointer}");
    }
}
