//! The controller, as it is run, beside plugins that go wrong in every way there is, over both protocols:
//! each is a clear word on the one Rollout that uses it, and nobody else waits for it.

mod kinds;
mod served;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::program::{Running, command, debug_world, folder, gradus};
use served::{Fault, serve};

const PATIENCE: Duration = Duration::from_secs(120);

/// Updates of each measurement.
const UPDATES: usize = 5;

/// How long a call of most of them may take.
const SLOT: Duration = Duration::from_secs(5);

/// A plugin that goes wrong, and what its Rollout says of it.
struct Bad {
    name: &'static str,
    program: String,
    expected: &'static str,
}

/// A plugin in the shell's own words that does this when it is told to run: it finds no programs.
fn lines(run: &str) -> String {
    lines_of("step", "Run", run)
}

/// The same with an interface that the caller names.
fn lines_of(kind: &str, method: &str, does: &str) -> String {
    format!(
        "#!/bin/sh\n\
         echo '{{\"protocol\":\"gradus-plugin\",\"version\":1,\"kind\":\"{kind}\"}}'\n\
         while read -r line; do\n\
         id=${{line#*\\\"id\\\":}}; id=${{id%%[!0-9]*}}\n\
         case \"$line\" in\n\
         *'\"method\":\"{method}\"'*) {does} ;;\n\
         *'\"method\":\"Quit\"'*) exit 0 ;;\n\
         *) echo \"{{\\\"id\\\":$id,\\\"result\\\":null}}\" ;;\n\
         esac\n\
         done\n"
    )
}

const SUCCESS: &str = r#"echo "{\"id\":$id,\"result\":{\"phase\":\"Successful\"}}""#;

fn bad() -> Vec<Bad> {
    let one = |name, program: String, expected| Bad { name, program, expected };
    let says = |line: &str| format!("#!/bin/sh\necho '{line}'\nexec /bin/sleep 600\n");
    let greeting = |fields: &str| says(&format!("{{\"protocol\":\"gradus-plugin\",{fields}}}"));
    let long = "x=xxxxxxxxxxxxxxxx; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x";
    let flood = format!("{long}; while :; do echo $x >&2; done");
    let endless = format!("{long}; while :; do printf %s $x; done");
    let unasked = "while :; do echo '{\"id\":7777,\"result\":null}'; done";
    let blank = "while :; do echo; done";
    let memory = "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done";
    let large = format!(
        "{long}; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x; \
         echo \"{{\\\"id\\\":$id,\\\"result\\\":{{\\\"phase\\\":\\\"Running\\\",\\\"status\\\":{{\\\"x\\\":\\\"$x\\\"}}}}}}\""
    );
    let late = format!("/bin/sleep 8; {SUCCESS}");
    vec![
        one("l/exits", "#!/bin/sh\nexit 3\n".to_owned(), "plugin exited before we could connect"),
        one(
            "l/talks",
            says("I am no plugin"),
            "Unrecognized remote plugin message: I am no plugin",
        ),
        one("l/newer", greeting("\"version\":2,\"kind\":\"step\""), "speaks version 2 of"),
        one(
            "l/other",
            greeting("\"version\":1,\"kind\":\"metric\""),
            "is of kind metric: expected",
        ),
        one("l/hangs", lines("while :; do /bin/sleep 9; done"), "no answer within 5 s"),
        one("l/late", lines(&late), "no answer within 5 s"),
        one("l/dies", lines("exit 1"), "unexpected EOF (it has closed the connection)"),
        one("l/garbage", lines("echo nonsense"), "in a line, found nonsense"),
        one("l/unasked", lines(unasked), "it answers call 7777, which nobody has made"),
        one("l/endless", lines(&endless), "a line is longer than the limit of 4194304 bytes"),
        one("l/blank", lines(blank), "no answer within 5 s"),
        one("l/floods", lines(&flood), "no answer within 5 s"),
        one("l/memory", lines(memory), "unexpected EOF (it has closed the connection)"),
        one("l/large", lines(&large), "the plugin's status is larger than 256 KiB"),
        one("g/newer", says("1|2|unix|/none|netrpc|"), "incompatible API version"),
        one("g/core", says("2|1|unix|/none|netrpc|"), "incompatible core API version"),
        one("g/absent", says("1|1|unix|/none|netrpc|"), "the plugin's socket: No such file"),
    ]
}

/// Faults of go-plugin that the test's own process plays.
const SERVED: [(&str, Fault, &str); 8] = [
    ("g/silent", Fault::Silence, "unable to dispense plugin (g/silent): no answer in time"),
    ("g/garbage", Fault::Garbage, "unable to dispense plugin (g/garbage): "),
    ("g/gigabytes", Fault::TenGigabytes, "Run rpc call error: unexpected EOF ("),
    ("g/floods", Fault::Flood, "Run rpc call error: unexpected EOF ("),
    ("g/exits", Fault::Exit, "Run rpc call error: unexpected EOF ("),
    ("g/hangs", Fault::Hang, "Run rpc call error: no answer within 5 s"),
    ("g/late", Fault::Late, "Run rpc call error: no answer within 5 s"),
    ("g/leaves", Fault::Leave, "Run rpc call error: unexpected EOF"),
];

/// Writes a program, and gives its entry in the list.
fn entry(folder: &Path, name: &str, program: &str) -> Value {
    let path = folder.join(name.replace('/', "-"));
    std::fs::write(&path, program).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let sha256 = digest(&SHA256, program.as_bytes());
    let sha256: String = sha256.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let location = format!("file://{}", path.display());
    // Until all memory that it may have is used, a machine may need a while.
    let timeout = if name == "l/memory" { Duration::from_secs(60) } else { SLOT };
    let timeout = format!("{}s", timeout.as_secs());
    json!({ "name": name, "location": location, "sha256": sha256, "timeout": timeout })
}

fn rollout(name: &str, steps: Value) -> Value {
    json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": name },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
            "strategy": { "canary": { "steps": steps } } } })
}

fn update(cluster: &Cluster, name: &str, image: &str) {
    let path = "/spec/template/spec/containers/0/image";
    cluster.patch(name, json!([{ "op": "replace", "path": path, "value": image }]));
}

/// Waits until the Rollout is as wanted, and gives it.
fn until(cluster: &Cluster, name: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let rollout = cluster.rollout(name);
        if is_wanted(&rollout) {
            return rollout;
        }
        assert!(began.elapsed() < PATIENCE, "{name}: {:#}", rollout["status"]);
        std::thread::sleep(Duration::from_millis(2)); // A cluster in this process has no watch here.
    }
}

fn is_healthy(rollout: &Value) -> bool {
    let observed = rollout["status"]["observedGeneration"].as_str().unwrap_or_default();
    let generation = rollout["metadata"]["generation"].to_string();
    rollout["status"]["phase"] == "Healthy" && observed == generation
}

/// The median of how long updates of a Rollout take, from the change to its end.
fn reaction(cluster: &Cluster, name: &str, attempt: &str) -> Duration {
    let mut all: Vec<Duration> = (0..UPDATES)
        .map(|number| {
            let began = Instant::now();
            update(cluster, name, &format!("web:{attempt}-{number}"));
            until(cluster, name, is_healthy);
            began.elapsed()
        })
        .collect();
    all.sort();
    all[UPDATES / 2]
}

/// The most memory that a process has had, in MiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

fn begin(folder: &Path, kubeconfig: &PathBuf) -> Running {
    let mut command = command(&["controller", "--healthzPort=0", "--metricsPort=0"]);
    command.arg("--kubeconfig").arg(kubeconfig).args(debug_world()).current_dir(folder);
    command.arg("--leader-elect=false");
    Running::start(command)
}

/// Name, program and expected words of every plugin that goes wrong.
fn hostile(sockets: &Path) -> Vec<(String, String, &'static str)> {
    let mut all: Vec<(String, String, &str)> =
        bad().into_iter().map(|one| (one.name.to_owned(), one.program, one.expected)).collect();
    for (name, fault, expected) in SERVED {
        let socket = sockets.join(name.replace('/', "-"));
        let says = format!("1|1|unix|{}|netrpc|", socket.display());
        serve(socket, fault);
        let program = format!("#!/bin/sh\necho '{says}'\nexec /bin/sleep 600\n");
        all.push((name.to_owned(), program, expected));
    }
    all
}

/// The lists of all three interfaces.
fn lists(folder: &Path, steps: Vec<Value>, others: &[kinds::Other]) -> Value {
    let mut data = json!({ "stepPlugins": Value::Array(steps).to_string() });
    for other in others {
        let known = data[other.list].as_str().unwrap_or_default();
        let entry = entry(folder, other.name, &other.program);
        data[other.list] = json!(format!("{known}- {entry}\n"));
    }
    data
}

/// What people are shown of a plugin that hangs.
fn assert_shown(cluster: &Cluster) {
    let kubeconfig = cluster.kubeconfig.to_str().unwrap();
    let seen = [
        (&["get", "rollout"][..], "g/hangs (step 1) Error: Run rpc call error: no answer within"),
        (&["explain", "rollout"], "waits for its plugin: Run rpc call error: no answer within"),
    ];
    for (words, expected) in seen {
        let flags = ["g-hangs", "--kubeconfig", kubeconfig, "-n", "default"];
        let shown = gradus(&[words, &flags].concat());
        let text = format!("{}{}", shown.stdout, shown.stderr);
        assert!(text.contains(expected), "{words:?}: {text}");
    }
}

#[test]
fn plugins_that_go_wrong_are_said_on_their_rollouts_and_cost_no_other_anything() {
    let folder = folder("hostile");
    // Paths of sockets must be short.
    let sockets = std::env::temp_dir().join(format!("gradus-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&sockets).unwrap();
    let cluster = Cluster::start(0, &folder);
    let images = r#"[{"image": "*", "startUpSeconds": 0.0}]"#;
    let images = serde_json::from_str(images).unwrap();
    cluster.server.with(|cluster, _| cluster.set_behaviours(images));
    let all = hostile(&sockets);
    let others = kinds::all();
    let mut list = vec![entry(&folder, "a/good", &lines(SUCCESS))];
    list.extend(all.iter().map(|(name, program, _)| entry(&folder, name, program)));
    cluster.store(&json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "argo-rollouts-config" },
        "data": lists(&folder, list, &others) }));
    let step = |name: &str| json!([{ "plugin": { "name": name } }]);
    cluster.create(rollout("good", step("a/good")));
    cluster.create(rollout("plain", json!([])));
    for (name, ..) in &all {
        cluster.create(rollout(&name.replace('/', "-"), step(name)));
    }
    let mut controller = begin(&folder, &cluster.kubeconfig);
    let names = ["good", "plain"];
    names.iter().for_each(|name| drop(until(&cluster, name, is_healthy)));
    for (name, ..) in &all {
        until(&cluster, &name.replace('/', "-"), is_healthy);
    }
    let without = names.map(|name| reaction(&cluster, name, "without"));
    let memory = peak(controller.id());

    for (name, ..) in &all {
        update(&cluster, &name.replace('/', "-"), "web:2");
    }
    kinds::use_them(&cluster, &others);
    let with = names.map(|name| reaction(&cluster, name, "with"));
    for (name, _, expected) in &all {
        let rollout = until(&cluster, &name.replace('/', "-"), |rollout| {
            let held = rollout["status"]["conditions"].as_array().into_iter().flatten();
            let held = held.filter(|one| one["type"] == "Held").map(|one| &one["message"]);
            let called = rollout["status"]["canary"]["stepPluginStatuses"].as_array();
            let called = called.into_iter().flatten().map(|one| &one["message"]);
            let mut said = held.chain(called).filter_map(Value::as_str);
            said.any(|said| said.contains(expected))
        });
        assert_eq!(rollout["status"]["phase"], "Progressing", "{name}");
    }
    kinds::assert_said(&cluster, &others);
    assert_shown(&cluster);
    let still = names.map(|name| reaction(&cluster, name, "still"));
    let grown = peak(controller.id()).saturating_sub(memory);
    println!("without {without:?}, with {with:?}, later {still:?}, {grown} MiB more");
    for (at, name) in names.into_iter().enumerate() {
        // Who waited for one that hangs would wait for several: never as long as one call may take.
        let limit = without[at] + SLOT;
        assert!(with[at] < limit && still[at] < limit, "{name}: {without:?} {with:?} {still:?}");
        let ratio = with[at].as_secs_f64() / without[at].as_secs_f64();
        println!(
            "{name}: {ratio:.2} times as long beside {} that go wrong",
            all.len() + others.len()
        );
    }
    assert!(grown < 256, "{grown} MiB");
    controller.signal("TERM"); // It ends those that hang, too.
    assert!(controller.end().success());
    std::fs::remove_dir_all(&sockets).unwrap();
}
