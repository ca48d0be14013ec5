//! Why do pods not come up? World, pods and Events to causes that a person can act on. For
//! `explain` alone: the controller never reads pods.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use gradus_api::names::{condition, reason};
use serde_json::Value;

use crate::uid::Uid;
use crate::world::World;

/// What is read of a namespace to find causes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'e> {
    /// Pods of anybody.
    pub pods: &'e [Value],
    /// Events about anything.
    pub events: &'e [Value],
    /// PodDisruptionBudgets of anybody.
    pub budgets: &'e [Value],
}

/// Something that a person can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What is wrong with what, in a sentence without its full stop.
    pub what: String,
    /// What to do about it.
    pub advice: String,
    /// Since when, as far as it is known.
    pub since: Option<String>,
    /// Commands that show more.
    pub commands: Vec<String>,
}

/// The causes, each once, however many pods it holds up.
pub fn causes(world: &World, evidence: Evidence<'_>) -> Vec<Cause> {
    let mut found = Found { namespace: world.rollout.namespace.to_string(), ..Found::default() };
    if let Some(message) = refused_set(world) {
        found.add(
            &format!("Rollout {}", world.rollout.name),
            refused("ReplicaSet is", message),
            "",
        );
    }
    for set in world.replica_sets.present().into_iter().flatten() {
        let object = format!("ReplicaSet {}", set.name);
        match set.failure() {
            Some(failure) => found.add(&object, refused("pods are", &failure.message), ""),
            None if set.replicas < set.size => {
                if let Some(message) = warning(evidence.events, "ReplicaSet", &set.name) {
                    found.add(&object, refused("pods are", message), "");
                }
            }
            None => {}
        }
        // What is on its way out holds nothing up, nor does a pod that another one has replaced.
        let is_short = set.ready < set.size;
        let theirs = evidence.pods.iter().filter(|pod| {
            owner(pod) == Some(set.uid) && pod["metadata"]["deletionTimestamp"].is_null()
        });
        for pod in theirs.filter(|pod| is_short || pod["status"]["phase"] != "Failed") {
            let name = text(&pod["metadata"]["name"]);
            if let Some(trouble) = trouble(pod, evidence.events) {
                found.add(&format!("pod {name}"), trouble, since(pod));
            }
        }
    }
    found.causes(budget(world, evidence))
}

/// What is wrong with one thing; the same for many pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Trouble {
    what: String,
    /// What is said of this one pod alone: its address, the state of a back-off.
    detail: String,
    advice: String,
    /// A command that shows more; POD and NS stand for the pod and its namespace.
    look: Option<String>,
}

impl Trouble {
    fn new(what: String, advice: impl Into<String>) -> Self {
        Trouble { what, detail: String::new(), advice: advice.into(), look: None }
    }

    fn detail(self, said: &str) -> Self {
        let detail = if said.is_empty() { String::new() } else { format!(" ({said})") };
        Trouble { detail, ..self }
    }

    fn look(self, command: String) -> Self {
        Trouble { look: Some(command), ..self }
    }
}

#[derive(Default)]
struct Found {
    namespace: String,
    order: Vec<Trouble>,
    objects: BTreeMap<Trouble, Vec<Affected>>,
}

/// An object that something is wrong with.
struct Affected {
    name: String,
    since: String,
    detail: String,
}

/// More names than this are counted.
const NAMED: usize = 3;

impl Found {
    fn add(&mut self, object: &str, mut trouble: Trouble, since: &str) {
        let detail = std::mem::take(&mut trouble.detail);
        if !self.objects.contains_key(&trouble) {
            self.order.push(trouble.clone());
        }
        let affected = Affected { name: object.to_owned(), since: since.to_owned(), detail };
        self.objects.entry(trouble).or_default().push(affected);
    }

    fn causes(mut self, last: Option<Cause>) -> Vec<Cause> {
        let namespace = self.namespace.clone();
        let causes = self.order.into_iter().map(|trouble| {
            let objects = self.objects.remove(&trouble).unwrap_or_default();
            let first = objects.first().map(|one| one.name.clone()).unwrap_or_default();
            let detail = objects.first().map(|one| one.detail.clone()).unwrap_or_default();
            let pod = first.strip_prefix("pod ");
            let more = objects.iter().skip(1).take(NAMED - 1);
            let more: Vec<&str> = more.map(|one| one.name.trim_start_matches("pod ")).collect();
            let others = match objects.len().saturating_sub(1) {
                0 => String::new(),
                count if count < NAMED => format!(" and {count} more ({})", more.join(", ")),
                count => format!(" and {count} more ({}, …)", more.join(", ")),
            };
            let earliest = objects.iter().map(|one| &one.since).filter(|it| !it.is_empty()).min();
            let name = pod.unwrap_or(&first);
            let filled = |command: String| command.replace("POD", name).replace("NS", &namespace);
            let describe = pod.map(|_| "kubectl describe pod POD -n NS".to_owned());
            Cause {
                what: format!("{first}{others}: {}{detail}", trouble.what),
                advice: trouble.advice,
                since: earliest.cloned(),
                commands: trouble.look.into_iter().chain(describe).map(filled).collect(),
            }
        });
        causes.chain(last).collect()
    }
}

/// The server's words about a ReplicaSet of this revision that it did not take.
fn refused_set(world: &World) -> Option<&str> {
    let conditions = world.rollout.status.conditions.iter();
    let mut refused = conditions.filter(|condition| {
        condition.r#type == condition::PROGRESSING
            && condition.reason == reason::REPLICA_SET_CREATE_ERROR
    });
    refused.next().map(|condition| condition.message.as_str())
}

/// Since when a pod is not ready.
fn since(pod: &Value) -> &str {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut open = conditions.filter(|one| {
        ["PodScheduled", "ContainersReady", "Ready"].iter().any(|kind| one["type"] == *kind)
            && one["status"] == "False"
    });
    open.next().map_or("", |condition| text(&condition["lastTransitionTime"]))
}

fn trouble(pod: &Value, events: &[Value]) -> Option<Trouble> {
    failed(pod)
        .or_else(|| unscheduled(pod))
        .or_else(|| {
            let lists = ["initContainerStatuses", "containerStatuses"];
            let statuses = lists.into_iter().filter_map(|list| pod["status"][list].as_array());
            statuses.flatten().find_map(|status| container(pod, status, events))
        })
        .or_else(|| gate(pod))
        .or_else(|| pending(pod, events))
        .or_else(|| unready_node(pod))
}

/// A pod that has ended as a whole: evicted, or not taken by its node.
fn failed(pod: &Value) -> Option<Trouble> {
    if pod["status"]["phase"] != "Failed" {
        return None;
    }
    let reason = text(&pod["status"]["reason"]);
    let reason = if reason.is_empty() { "no reason is given" } else { reason };
    let advice = if reason == "Evicted" {
        "its node ran short: ask for what it needs (resources.requests), or add nodes"
    } else {
        "its Events say why"
    };
    let trouble = Trouble::new(format!("it has failed: {reason}"), advice);
    Some(trouble.detail(text(&pod["status"]["message"])))
}

/// A pod that is not ready although its containers are, as on a node that is away.
fn unready_node(pod: &Value) -> Option<Trouble> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|one| one["type"] == "Ready" && one["status"] == "False")?;
    let is_done = pod["status"]["phase"] == "Succeeded";
    let statuses = pod["status"]["containerStatuses"].as_array()?;
    if is_done || !statuses.iter().all(|status| status["ready"] == true) {
        return None;
    }
    let said = [text(&found["reason"]), text(&found["message"])];
    let said: Vec<&str> = said.into_iter().filter(|word| !word.is_empty()).collect();
    let node = text(&pod["spec"]["nodeName"]);
    let what = "its containers are ready, but its condition Ready is False".to_owned();
    let trouble = Trouble::new(what, "check its node").detail(&said.join(": "));
    Some(if node.is_empty() {
        trouble
    } else {
        trouble.look(format!("kubectl describe node {node}"))
    })
}

/// A readiness gate that nobody has opened, of a pod whose containers are ready.
fn gate(pod: &Value) -> Option<Trouble> {
    let statuses = pod["status"]["containerStatuses"].as_array()?;
    if statuses.is_empty() || !statuses.iter().all(|status| status["ready"] == true) {
        return None;
    }
    let conditions = pod["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let is_true =
        |kind: &Value| conditions.iter().any(|one| one["type"] == *kind && one["status"] == "True");
    let gates = pod["spec"]["readinessGates"].as_array()?;
    let closed = gates.iter().map(|gate| &gate["conditionType"]).find(|kind| !is_true(kind))?;
    let kind = text(closed);
    Some(Trouble::new(
        format!("its containers are ready, but its readiness gate {kind} is not true"),
        format!("find out why nobody sets the condition {kind} of the pod"),
    ))
}

/// A pod that no container has begun in.
fn pending(pod: &Value, events: &[Value]) -> Option<Trouble> {
    if pod["status"]["phase"] != "Pending" || !pod["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let said = warning(events, "Pod", text(&pod["metadata"]["name"])).unwrap_or_default();
    let what = match text(&pod["spec"]["nodeName"]) {
        "" if !pod["spec"]["schedulingGates"].as_array().is_none_or(Vec::is_empty) => {
            let gates = pod["spec"]["schedulingGates"].as_array().into_iter().flatten();
            let gates: Vec<&str> = gates.map(|gate| text(&gate["name"])).collect();
            format!("it is Pending: its scheduling gate {} is closed", gates.join(", "))
        }
        "" => "it is Pending and has no node yet".to_owned(),
        _ => "it is Pending: its containers have not started yet".to_owned(),
    };
    let trouble = match lacking(said) {
        Some(lack) => lack.of(what),
        None => Trouble::new(what, "its Events say what it waits for"),
    };
    Some(trouble.detail(said))
}

/// An object that a pod names and that is not there.
struct Lack {
    kind: &'static str,
    name: String,
}

impl Lack {
    fn of(&self, what: String) -> Trouble {
        let Lack { kind, name } = self;
        let advice = format!("create the {kind} {name}, or name another one in the pod template");
        Trouble::new(what, advice).look(format!("kubectl get {} -n NS", kind.to_lowercase()))
    }
}

/// Objects that pods name, as messages write them.
const NAMED_BY_PODS: [(&str, &str); 4] = [
    ("configmap \"", "ConfigMap"),
    ("secret \"", "Secret"),
    ("persistentvolumeclaim \"", "PersistentVolumeClaim"),
    ("serviceaccount \"", "ServiceAccount"),
];

/// The object that a message says is not there.
fn lacking(message: &str) -> Option<Lack> {
    NAMED_BY_PODS.into_iter().find_map(|(start, kind)| {
        let (_, rest) = message.split_once(start)?;
        let (name, rest) = rest.split_once('"')?;
        rest.trim_start().starts_with("not found").then(|| Lack { kind, name: name.to_owned() })
    })
}

fn unscheduled(pod: &Value) -> Option<Trouble> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| {
        condition["type"] == "PodScheduled"
            && condition["status"] == "False"
            && condition["reason"] == "Unschedulable"
    })?;
    let message = text(&found["message"]);
    let what = format!("no node takes it ({message})");
    let advice = "free or add nodes, or ask for less (resources, affinity, tolerations)";
    Some(match lacking(message) {
        Some(lack) => lack.of(what),
        None => Trouble::new(what, advice),
    })
}

fn container(pod: &Value, status: &Value, events: &[Value]) -> Option<Trouble> {
    let (name, image) = (text(&status["name"]), text(&status["image"]));
    let waiting = &status["state"]["waiting"];
    let message = text(&waiting["message"]);
    match text(&waiting["reason"]) {
        "ImagePullBackOff"
        | "ErrImagePull"
        | "ErrImageNeverPull"
        | "RegistryUnavailable"
        | "InvalidImageName" => {
            let what = format!("image {image} of container {name} cannot be pulled");
            let advice = "check the image's name and tag, the registry and imagePullSecrets";
            Some(Trouble::new(what, advice).detail(message))
        }
        "CrashLoopBackOff" => Some(crash(status, name)),
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            let what = format!("container {name} cannot be started");
            let advice = "check the ConfigMaps, Secrets and commands it names";
            let trouble = match lacking(message) {
                Some(lack) => lack.of(what),
                None => Trouble::new(what, advice),
            };
            Some(trouble.detail(message))
        }
        _ if !status["state"]["terminated"].is_null() && status["ready"] != true => {
            let is_done = status["state"]["terminated"]["exitCode"] == 0;
            (!is_done).then(|| crash(status, name))
        }
        _ => unready(pod, status, events),
    }
}

/// How a container has ended.
fn ending(last: &Value) -> String {
    let ending = match (text(&last["reason"]), last["exitCode"].as_i64()) {
        ("OOMKilled", _) => "it used more memory than its limit".to_owned(),
        (_, Some(code)) => format!("its last exit code was {code}"),
        ("", None) => "how it ended is not known".to_owned(),
        (reason, None) => reason.to_owned(),
    };
    let words = text(&last["message"]).lines().find(|line| !line.trim().is_empty());
    let words = words.map(|line| format!("; it said: {}", line.trim())).unwrap_or_default();
    ending + &words
}

/// A container that ends again and again, with how it ended last.
fn crash(status: &Value, name: &str) -> Trouble {
    let now = &status["state"]["terminated"];
    let last = if now.is_null() { &status["lastState"]["terminated"] } else { now };
    let advice = if text(&last["reason"]) == "OOMKilled" {
        "raise resources.limits.memory, or find what needs it"
    } else {
        "its log says what went wrong"
    };
    let is_again = now.is_null() || status["restartCount"].as_i64().is_some_and(|it| it > 0);
    let previous = if is_again { " --previous" } else { "" };
    Trouble::new(format!("container {name} crashes; {}", ending(last)), advice)
        .look(format!("kubectl logs POD -c {name}{previous} -n NS"))
}

/// A container that runs and does not get ready: which probe says so.
fn unready(pod: &Value, status: &Value, events: &[Value]) -> Option<Trouble> {
    let is_running = !status["state"]["running"].is_null();
    if !is_running || status["ready"] == true {
        return None;
    }
    let name = text(&status["name"]);
    let is_it = |container: &&Value| container["name"] == name;
    let list = |field: &str| pod["spec"][field].as_array().map_or(&[][..], Vec::as_slice);
    let logs = format!("kubectl logs POD -c {name} -n NS");
    let init = list("initContainers").iter().find(is_it);
    if init.is_some_and(|init| init["restartPolicy"] != "Always") {
        let what = format!("init container {name} runs and has not ended yet");
        return Some(Trouble::new(what, "its log says what it waits for").look(logs));
    }
    let said = warning(events, "Pod", text(&pod["metadata"]["name"])).unwrap_or_default();
    let container = list("containers").iter().find(is_it).or(init);
    let is_starting = status["started"] == false;
    let kinds = ["startupProbe", "readinessProbe"].into_iter().skip(usize::from(!is_starting));
    let probe = container.and_then(|container| {
        let mut probes = kinds.map(|kind| (kind, &container[kind]));
        probes.find(|(_, probe)| probe.is_object())
    });
    let (which, advice) = match probe {
        Some((kind, probe)) => (
            format!(": its {kind} ({}) does not succeed", probed(probe)),
            format!("check its {kind}"),
        ),
        None => (String::new(), "check its readinessProbe".to_owned()),
    };
    let ended = &status["lastState"]["terminated"];
    let again = match ended.is_null() {
        true => String::new(),
        false => format!("; it has been restarted: {}", ending(ended)),
    };
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut open = conditions.filter(|one| one["type"] == "Ready" && one["status"] == "False");
    let open = open.next().map_or("", |_| "; the pod's condition Ready is False");
    let what = format!("container {name} runs but is not ready{which}{again}{open}");
    Some(Trouble::new(what, advice).look(logs).detail(said))
}

/// What a probe does, in a few words.
fn probed(probe: &Value) -> String {
    let port = |call: &Value| call["port"].to_string().trim_matches('"').to_owned();
    let (http, tcp, exec, grpc) =
        (&probe["httpGet"], &probe["tcpSocket"], &probe["exec"], &probe["grpc"]);
    if http.is_object() {
        let path = http["path"].as_str().unwrap_or("/");
        return format!("GET {path} on port {}", port(http));
    }
    if tcp.is_object() {
        return format!("a connection to port {}", port(tcp));
    }
    if grpc.is_object() {
        return format!("gRPC health on port {}", port(grpc));
    }
    let command = exec["command"].as_array().into_iter().flatten().filter_map(Value::as_str);
    format!("`{}`", command.collect::<Vec<_>>().join(" "))
}

/// What a refusal says, and what to do about it; the first that is said counts.
const REFUSALS: [(&[&str], &str); 9] = [
    (&["exceeded quota"], "raise the ResourceQuota, or ask for less"),
    (&["failed quota"], "give every container the resources that the ResourceQuota counts"),
    (&[" usage per ", "LimitRange"], "change resources of the containers, or the LimitRange"),
    (&["failed calling webhook"], "the webhook does not answer: mend it, or its configuration"),
    (
        &["violates PodSecurity"],
        "change the pod template so that admission accepts it, or the policy (the label \
         pod-security.kubernetes.io/enforce of the namespace)",
    ),
    (
        &["admission webhook", "ValidatingAdmissionPolicy", "denied request", "violates"],
        "change the pod template so that admission accepts it, or the policy",
    ),
    (&["no PriorityClass"], "create the PriorityClass, or name another one"),
    (&["is being terminated"], "the namespace is being deleted"),
    (&["is invalid: "], "change the pod template as the API server's words say"),
];

/// Pods, or their ReplicaSet, that the API server refuses.
fn refused(what: &str, message: &str) -> Trouble {
    let what = format!("its {what} refused ({message})");
    if let Some(lack) = lacking(message) {
        return lack.of(what);
    }
    if message.contains(" cannot ") && message.contains("User ") {
        return Trouble::new(
            what,
            "grant the controller's ServiceAccount this right (manifests/rbac.yaml)",
        );
    }
    let is_said = |(said, _): &&(&[&str], &str)| said.iter().any(|said| message.contains(said));
    let advice = REFUSALS.iter().find(is_said).map(|(_, advice)| *advice);
    Trouble::new(what, advice.unwrap_or("the API server's words say what it expects"))
}

/// The message of the latest warning about an object.
fn warning<'e>(events: &'e [Value], kind: &str, name: &str) -> Option<&'e str> {
    let about = events.iter().filter(|event| {
        event["type"] == "Warning"
            && event["involvedObject"]["kind"] == kind
            && event["involvedObject"]["name"] == name
    });
    // Newer components leave out the old field; both are RFC 3339 in UTC.
    let times = |event: &&Value| {
        let fields = ["/lastTimestamp", "/series/lastObservedTime", "/eventTime"];
        fields
            .into_iter()
            .filter_map(|field| event.pointer(field)?.as_str())
            .max()
            .map(str::to_owned)
    };
    let latest = about.max_by_key(times)?;
    latest["message"].as_str()
}

/// A budget that keeps a restart from evicting pods.
fn budget(world: &World, evidence: Evidence<'_>) -> Option<Cause> {
    let (spec, status) = (&world.rollout.spec.fields, &world.rollout.status);
    if spec.restart_at.is_none() || spec.restart_at == status.restarted_at {
        return None;
    }
    let wanted = &spec.selector.as_ref()?.match_labels;
    let found = evidence.budgets.iter().find(|budget| {
        let labels = budget["spec"]["selector"]["matchLabels"].as_object();
        let selects = labels.is_some_and(|labels| {
            labels.iter().all(|(key, value)| wanted.get(key).map(String::as_str) == value.as_str())
        });
        selects && budget["status"]["disruptionsAllowed"] == 0
    })?;
    let name = text(&found["metadata"]["name"]);
    Some(Cause {
        what: format!("PodDisruptionBudget {name} allows no eviction now"),
        advice: "wait until all its pods are ready, or lower its minAvailable".to_owned(),
        since: None,
        commands: vec![format!("kubectl describe pdb {name} -n {}", world.rollout.namespace)],
    })
}

/// The identity of the object that manages a pod.
fn owner(pod: &Value) -> Option<Uid> {
    let owners = pod["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    owner["uid"].as_str().map(Uid::parse)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
