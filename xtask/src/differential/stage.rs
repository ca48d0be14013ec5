//! Both controllers on one control plane, each in a namespace of its own, and pods that behave
//! alike in both.

use std::{path::Path, time::Duration};

use gradus_simkube::behave::{Behaviour, Behaviours};
use kube::Client;
use thiserror::Error;

use super::mirror::Mirror;
use crate::{
    Failure, argo,
    controller::{Controller, Election, Settings},
    kubelet::Kubelet,
    plane::{Plane, User},
    ports,
    process::{Process, Recipe},
    real::create_namespace,
    repository,
    servers::Servers,
};

/// Pods of this image come up at once.
pub const GOOD: &str = "example.com/app:v";

/// Nobody has this image.
pub const BAD: &str = "example.com/app:bad";

const ARGO_NAMESPACE: &str = "with-argo";
const OUR_NAMESPACE: &str = "with-gradus";

/// Requests per second that Argo's client may make; its default of 40 would slow many cases down.
const REQUESTS_PER_SECOND: &str = "500";

/// How long Argo's controller may take to fail at its start.
const FAILS_WITHIN: Duration = Duration::from_secs(3);

/// What happened to a controller.
#[derive(Debug, Error)]
pub enum StageError {
    #[error("the controller of {side} ended by itself: {words}")]
    Ended { side: &'static str, words: String },
}

/// One controller's half.
#[derive(Debug)]
pub struct Side {
    pub namespace: &'static str,
    pub mirror: Mirror,
}

/// Everything a case is played on. Dropping it stops all of it.
pub struct Stage {
    pub client: Client,
    pub argo: Side,
    pub ours: Side,
    argo_controller: Process,
    our_controller: Controller,
    _kubelet: Kubelet,
    pub plane: Plane,
}

impl Stage {
    /// Starts all of it; `program` is the build of Gradus to compare.
    pub async fn start(servers: &Servers, program: &Path) -> Result<Self, Failure> {
        let argo_program = argo::controller_program()?;
        let plane = Plane::start(servers, &repository()).await?;
        let kubelet = Kubelet::start(plane.client(User::Kubelet).await?).await?;
        let client = plane.client(User::Person).await?;
        for namespace in [ARGO_NAMESPACE, OUR_NAMESPACE] {
            create_namespace(&client, namespace).await?;
            kubelet.behave(namespace, behaviours());
        }
        let argo = Side::of(&client, ARGO_NAMESPACE);
        let ours = Side::of(&client, OUR_NAMESPACE);
        let recipe = argo_recipe(&argo_program, &plane.kubeconfig_in(ARGO_NAMESPACE)?)?;
        let mut argo_controller = Process::start(&recipe, plane.folder())?;
        let settings = Settings {
            name: "gradus".to_owned(),
            kubeconfig: plane.kubeconfig(User::Controller),
            namespace: Some(OUR_NAMESPACE.to_owned()),
            // As the other side, which would have the same Lease.
            election: Some(Election::Off),
            ..Settings::default()
        };
        let mut our_controller = Controller::start(program, &settings, plane.folder())?;
        our_controller.is_ready().await?;
        tokio::time::sleep(FAILS_WITHIN).await;
        if argo_controller.ended()?.is_some() {
            let words = argo_controller.last_words();
            return Err(StageError::Ended { side: "Argo Rollouts", words }.into());
        }
        Ok(Self { client, argo, ours, argo_controller, our_controller, _kubelet: kubelet, plane })
    }

    /// An error if a controller has ended; what was compared since is worth nothing.
    pub fn is_whole(&mut self) -> Result<(), Failure> {
        if let Some(words) = self.our_controller.death()? {
            return Err(StageError::Ended { side: "Gradus", words }.into());
        }
        if self.argo_controller.ended()?.is_some() {
            let words = self.argo_controller.last_words();
            return Err(StageError::Ended { side: "Argo Rollouts", words }.into());
        }
        Ok(())
    }
}

impl Side {
    fn of(client: &Client, namespace: &'static str) -> Self {
        Self { namespace, mirror: Mirror::of(client, namespace) }
    }
}

fn behaviours() -> Behaviours {
    let bad = Behaviour { image: BAD.to_owned(), pull_error: true, ..Behaviour::default() };
    Behaviours::new(vec![bad])
}

/// Its namespace is that of the kubeconfig.
fn argo_recipe(program: &Path, kubeconfig: &Path) -> std::io::Result<Recipe> {
    let [metrics_port, health_port] = ports::free()?;
    Ok(Recipe::new("argo-rollouts", program)
        .argument("--namespaced")
        .flag("kubeconfig", kubeconfig)
        .flag("leader-elect", "false")
        .flag("metricsPort", metrics_port.to_string())
        .flag("healthzPort", health_port.to_string())
        .flag("qps", REQUESTS_PER_SECOND)
        .flag("burst", REQUESTS_PER_SECOND))
}
