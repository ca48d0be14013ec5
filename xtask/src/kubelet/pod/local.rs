//! A pod whose image is a program of this machine: no container, but a real process with an address
//! and a folder for every volume claim.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use gradus_simkube::behave::{ContainerState, Phase, PodState};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Life;
use crate::{
    folder::Folder,
    process::{Process, Recipe},
};

/// How often the process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// An image and the program that stands for it.
#[derive(Debug)]
pub struct Image {
    /// How the image's name begins.
    pub name: &'static str,
    /// What is run, with the container's environment, `POD_IP` and volumes in place of mounts.
    pub command: Vec<String>,
    /// Who owns the volumes, where we may give them away.
    pub user: Option<&'static str>,
    /// Where the programs are that its probes call, and the variable that tells them the address.
    pub programs: (PathBuf, &'static str),
    /// Volumes and logs.
    pub folder: Folder,
}

impl Image {
    /// Is this the image of the pod's container?
    pub fn fits(&self, spec: &Value) -> bool {
        let image = spec["containers"][0]["image"].as_str();
        image.is_some_and(|image| image.starts_with(self.name))
    }
}

/// Runs the program until the pod is deleted; then it is killed, as by a power cut.
pub(super) async fn live(
    client: &Client,
    life: &Life,
    seen: &mut watch::Receiver<Value>,
    image: &Image,
) {
    let [.., third, fourth] = life.address.to_be_bytes();
    let address = format!("127.1.{third}.{fourth}");
    let mut running: Option<Process> = None;
    let (mut starts, mut told) = (0u32, None);
    loop {
        let pod = seen.borrow_and_update().clone();
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            drop(running);
            return life.leave(&pod, None).await;
        }
        if !running.as_mut().is_some_and(|process| matches!(process.ended(), Ok(None))) {
            match start(client, life, &pod, image, &address).await {
                Ok(process) => (running, starts) = (Some(process), starts + 1),
                Err(error) => eprintln!("kubelet: pod {}: {error}", life.name),
            }
        }
        let is_ready = is_ready(life, image, &address).await;
        if told != Some((starts, is_ready)) {
            if !life.write_status(status(life, &address, starts, is_ready)).await {
                return;
            }
            told = Some((starts, is_ready));
        }
        tokio::select! {
            changed = seen.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// What the readiness probe of the container says.
async fn is_ready(life: &Life, image: &Image, address: &str) -> bool {
    let probe = life.spec["containers"][0]["readinessProbe"]["exec"]["command"].as_array();
    let mut words = probe.into_iter().flatten().filter_map(Value::as_str);
    let Some(program) = words.next() else { return true };
    let (folder, variable) = &image.programs;
    let mut command = tokio::process::Command::new(folder.join(program));
    command.args(words).env(variable, address).stdin(Stdio::null()).stdout(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}

fn status(life: &Life, address: &str, starts: u32, is_ready: bool) -> Value {
    let now = Timestamp::now();
    let state = PodState {
        phase: Phase::Running,
        ready: is_ready,
        since: now,
        container: ContainerState::Running(life.started),
        restarts: starts.saturating_sub(1),
    };
    let mut status = life.status(state, now);
    status.ready = is_ready;
    let mut status = status.to_json(&life.spec);
    status["podIP"] = json!(address);
    status["podIPs"] = json!([{ "ip": address }]);
    status
}

async fn start(
    client: &Client,
    life: &Life,
    pod: &Value,
    image: &Image,
    address: &str,
) -> Result<Process, crate::Failure> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let container = &life.spec["containers"][0];
    let mut environment = vec![("POD_IP".to_owned(), address.to_owned())];
    for variable in container["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default().to_owned();
        let reference = &variable["valueFrom"]["secretKeyRef"];
        let value = match reference["name"].as_str() {
            None => variable["value"].as_str().unwrap_or_default().to_owned(),
            Some(secret) => secret_value(client, namespace, secret, &reference["key"]).await?,
        };
        environment.push((name, value));
    }
    for (mount, folder) in volumes(life, namespace, image)? {
        for (_, value) in &mut environment {
            if let Some(rest) = value.strip_prefix(&mount) {
                *value = format!("{}{rest}", folder.display());
            }
        }
    }
    let (program, arguments) = image.command.split_first().ok_or("an image without a command")?;
    let mut recipe = Recipe::new(&format!("{namespace}-{}", life.name), Path::new(program));
    recipe.arguments = arguments.iter().map(Into::into).collect();
    for (name, value) in environment {
        recipe = recipe.variable(&name, value);
    }
    Ok(Process::start(&recipe, image.folder.path())?)
}

async fn secret_value(
    client: &Client,
    namespace: &str,
    name: &str,
    key: &Value,
) -> Result<String, crate::Failure> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let data = secrets.get(name).await?.data.unwrap_or_default();
    let key = key.as_str().unwrap_or_default();
    let bytes = data.get(key).ok_or_else(|| format!("secret {name}: expected key {key}"))?;
    Ok(String::from_utf8(bytes.0.clone())?)
}

/// Where each claim is mounted, and its folder here, which outlives the pod.
fn volumes(life: &Life, namespace: &str, image: &Image) -> io::Result<Vec<(String, PathBuf)>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for mount in list(&life.spec["containers"][0]["volumeMounts"]) {
        let volumes = list(&life.spec["volumes"]);
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
        let claim = volume.and_then(|one| one["persistentVolumeClaim"]["claimName"].as_str());
        let (Some(claim), Some(path)) = (claim, mount["mountPath"].as_str()) else { continue };
        let folder = image.folder.path().join(namespace).join(claim);
        if !folder.exists() {
            std::fs::create_dir_all(&folder)?;
            if let Some(user) = image.user {
                let given = Command::new("chown").arg(format!("{user}:")).arg(&folder).status()?;
                if !given.success() {
                    return Err(io::Error::other(format!("{}: not given away", folder.display())));
                }
            }
        }
        found.push((path.to_owned(), folder));
    }
    Ok(found)
}
