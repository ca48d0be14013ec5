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
        for pod in evidence.pods.iter().filter(|pod| owner(pod) == Some(set.uid)) {
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
    advice: String,
}

#[derive(Default)]
struct Found {
    namespace: String,
    order: Vec<Trouble>,
    objects: BTreeMap<Trouble, Vec<(String, String)>>,
}

/// More names than this are counted.
const NAMED: usize = 3;

impl Found {
    fn add(&mut self, object: &str, trouble: Trouble, since: &str) {
        if !self.objects.contains_key(&trouble) {
            self.order.push(trouble.clone());
        }
        self.objects.entry(trouble).or_default().push((object.to_owned(), since.to_owned()));
    }

    fn causes(mut self, last: Option<Cause>) -> Vec<Cause> {
        let namespace = self.namespace.clone();
        let causes = self.order.into_iter().map(|trouble| {
            let objects = self.objects.remove(&trouble).unwrap_or_default();
            let first = objects.first().map(|(name, _)| name.clone()).unwrap_or_default();
            let pod = first.strip_prefix("pod ");
            let more = objects.iter().skip(1).take(NAMED - 1);
            let more: Vec<&str> = more.map(|(name, _)| name.trim_start_matches("pod ")).collect();
            let others = match objects.len().saturating_sub(1) {
                0 => String::new(),
                count if count < NAMED => format!(" and {count} more ({})", more.join(", ")),
                count => format!(" and {count} more ({}, …)", more.join(", ")),
            };
            let advice = trouble.advice.replace("POD", pod.unwrap_or(&first));
            let earliest = objects.iter().map(|(_, since)| since).filter(|it| !it.is_empty()).min();
            let describe = pod.map(|pod| format!("kubectl describe pod {pod} -n {namespace}"));
            Cause {
                what: format!("{first}{others}: {}", trouble.what),
                advice,
                since: earliest.cloned(),
                commands: describe.into_iter().collect(),
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
    unscheduled(pod)
        .or_else(|| {
            let lists = ["initContainerStatuses", "containerStatuses"];
            let statuses = lists.into_iter().filter_map(|list| pod["status"][list].as_array());
            statuses.flatten().find_map(|status| container(pod, status, events))
        })
        .or_else(|| gate(pod))
        .or_else(|| pending(pod, events))
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
    Some(Trouble {
        what: format!("its containers are ready, but its readiness gate {kind} is not true"),
        advice: format!("find out why nobody sets the condition {kind} of the pod"),
    })
}

/// A pod that no container has begun in.
fn pending(pod: &Value, events: &[Value]) -> Option<Trouble> {
    if pod["status"]["phase"] != "Pending" || !pod["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let said = warning(events, "Pod", text(&pod["metadata"]["name"]));
    let said = said.map(|message| format!(" ({message})")).unwrap_or_default();
    let what = match text(&pod["spec"]["nodeName"]) {
        "" => format!("it is Pending and has no node yet{said}"),
        _ => format!("it is Pending: its containers have not started yet{said}"),
    };
    Some(Trouble { what, advice: "its Events say what it waits for".to_owned() })
}

fn unscheduled(pod: &Value) -> Option<Trouble> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| {
        condition["type"] == "PodScheduled"
            && condition["status"] == "False"
            && condition["reason"] == "Unschedulable"
    })?;
    Some(Trouble {
        what: format!("no node takes it ({})", text(&found["message"])),
        advice: "free or add nodes, or ask for less (resources, affinity, tolerations)".to_owned(),
    })
}

fn container(pod: &Value, status: &Value, events: &[Value]) -> Option<Trouble> {
    let (name, image) = (text(&status["name"]), text(&status["image"]));
    let waiting = &status["state"]["waiting"];
    let message = text(&waiting["message"]);
    let said = if message.is_empty() { String::new() } else { format!(" ({message})") };
    match text(&waiting["reason"]) {
        "ImagePullBackOff"
        | "ErrImagePull"
        | "ErrImageNeverPull"
        | "RegistryUnavailable"
        | "InvalidImageName" => Some(Trouble {
            what: format!("image {image} of container {name} cannot be pulled{said}"),
            advice: "check the image's name and tag, the registry and imagePullSecrets".to_owned(),
        }),
        "CrashLoopBackOff" => Some(crash(status, name)),
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            Some(Trouble {
                what: format!("container {name} cannot be started{said}"),
                advice: "check the ConfigMaps, Secrets and commands it names".to_owned(),
            })
        }
        _ if !status["state"]["terminated"].is_null() && status["ready"] != true => {
            let is_done = status["state"]["terminated"]["exitCode"] == 0;
            (!is_done).then(|| crash(status, name))
        }
        _ => unready(pod, status, events),
    }
}

/// A container that ends again and again, with how it ended last.
fn crash(status: &Value, name: &str) -> Trouble {
    let now = &status["state"]["terminated"];
    let last = if now.is_null() { &status["lastState"]["terminated"] } else { now };
    let ending = match (text(&last["reason"]), last["exitCode"].as_i64()) {
        ("OOMKilled", _) => "it used more memory than its limit".to_owned(),
        (_, Some(code)) => format!("its last exit code was {code}"),
        ("", None) => "how it ended is not known".to_owned(),
        (reason, None) => reason.to_owned(),
    };
    let advice = if text(&last["reason"]) == "OOMKilled" {
        "raise resources.limits.memory, or find what needs it".to_owned()
    } else {
        format!("kubectl logs POD -c {name} --previous")
    };
    let words = text(&last["message"]).lines().find(|line| !line.trim().is_empty());
    let words = words.map(|line| format!("; it said: {}", line.trim())).unwrap_or_default();
    Trouble { what: format!("container {name} crashes; {ending}{words}"), advice }
}

/// A container that runs and does not get ready: which probe says so.
fn unready(pod: &Value, status: &Value, events: &[Value]) -> Option<Trouble> {
    let is_running = !status["state"]["running"].is_null();
    if !is_running || status["ready"] == true {
        return None;
    }
    let name = text(&status["name"]);
    let said = warning(events, "Pod", text(&pod["metadata"]["name"]));
    let said = said.map(|message| format!(" ({message})")).unwrap_or_default();
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let container = containers.into_iter().find(|container| container["name"] == name);
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
    Some(Trouble {
        what: format!("container {name} runs but is not ready{said}{which}"),
        advice: format!("{advice}; kubectl logs POD -c {name}"),
    })
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

/// Pods, or their ReplicaSet, that the API server refuses.
fn refused(what: &str, message: &str) -> Trouble {
    let advice = if message.contains("exceeded quota") {
        "raise the ResourceQuota, or ask for less"
    } else if message.contains("per Container") || message.contains("LimitRange") {
        "change resources of the containers, or the LimitRange"
    } else if message.contains(" cannot ") && message.contains("User ") {
        "grant the controller's ServiceAccount this right (manifests/rbac.yaml)"
    } else if message.contains("admission webhook") || message.contains("violates") {
        "change the pod template so that admission accepts it, or the policy"
    } else {
        "the API server's words say what it expects"
    };
    Trouble { what: format!("its {what} refused ({message})"), advice: advice.to_owned() }
}

/// The message of the latest warning about an object.
fn warning<'e>(events: &'e [Value], kind: &str, name: &str) -> Option<&'e str> {
    let about = events.iter().filter(|event| {
        event["type"] == "Warning"
            && event["involvedObject"]["kind"] == kind
            && event["involvedObject"]["name"] == name
    });
    let latest = about.max_by_key(|event| text(&event["lastTimestamp"]))?;
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
