//! Why do pods not come up? World, pods and Events to causes that a person can act on. For
//! `explain` alone: the controller never reads pods.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

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
}

/// The causes, each once, however many pods it holds up.
pub fn causes(world: &World, evidence: Evidence<'_>) -> Vec<Cause> {
    let mut found = Found::default();
    for set in world.replica_sets.present().into_iter().flatten() {
        let object = format!("ReplicaSet {}", set.name);
        match set.failure() {
            Some(failure) => found.add(&object, refused(&failure.message)),
            None if set.replicas < set.size => {
                if let Some(message) = warning(evidence.events, "ReplicaSet", &set.name) {
                    found.add(&object, refused(message));
                }
            }
            None => {}
        }
        for pod in evidence.pods.iter().filter(|pod| owner(pod) == Some(set.uid)) {
            let name = text(&pod["metadata"]["name"]);
            if let Some(trouble) = trouble(pod, evidence.events) {
                found.add(&format!("pod {name}"), trouble);
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
    order: Vec<Trouble>,
    objects: BTreeMap<Trouble, Vec<String>>,
}

impl Found {
    fn add(&mut self, object: &str, trouble: Trouble) {
        if !self.objects.contains_key(&trouble) {
            self.order.push(trouble.clone());
        }
        self.objects.entry(trouble).or_default().push(object.to_owned());
    }

    fn causes(mut self, last: Option<Cause>) -> Vec<Cause> {
        let causes = self.order.into_iter().map(|trouble| {
            let objects = self.objects.remove(&trouble).unwrap_or_default();
            let first = objects.first().cloned().unwrap_or_default();
            let others = match objects.len().saturating_sub(1) {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            let advice = trouble.advice.replace("POD", first.trim_start_matches("pod "));
            Cause { what: format!("{first}{others}: {}", trouble.what), advice }
        });
        causes.chain(last).collect()
    }
}

fn trouble(pod: &Value, events: &[Value]) -> Option<Trouble> {
    unscheduled(pod).or_else(|| {
        let lists = ["initContainerStatuses", "containerStatuses"];
        let statuses = lists.into_iter().filter_map(|list| pod["status"][list].as_array());
        statuses.flatten().find_map(|status| container(pod, status, events))
    })
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
    Trouble { what: format!("container {name} crashes; {ending}"), advice }
}

/// A container that runs and does not get ready, where an Event says why.
fn unready(pod: &Value, status: &Value, events: &[Value]) -> Option<Trouble> {
    let is_running = !status["state"]["running"].is_null();
    if !is_running || status["ready"] == true {
        return None;
    }
    let name = text(&status["name"]);
    let message = warning(events, "Pod", text(&pod["metadata"]["name"]))?;
    Some(Trouble {
        what: format!("container {name} runs but is not ready ({message})"),
        advice: format!("check its readinessProbe; kubectl logs POD -c {name}"),
    })
}

/// Pods that the API server refuses.
fn refused(message: &str) -> Trouble {
    let advice = if message.contains("exceeded quota") {
        "raise the ResourceQuota, or ask for less"
    } else if message.contains("admission webhook") || message.contains("violates") {
        "change the pod template so that admission accepts it, or the policy"
    } else {
        "the API server's words say what it expects"
    };
    Trouble { what: format!("its pods are refused ({message})"), advice: advice.to_owned() }
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
