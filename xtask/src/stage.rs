//! What does a scenario on the real control plane stand on? The servers, a kubelet, and the program
//! under test: alone, or behind a proxy that disturbs it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{sync::Notify, task::JoinHandle};

use crate::{
    Failure,
    controller::{self, Controller, Settings},
    kubelet::Kubelet,
    plane::{Plane, User},
    proxy::{Fault, Proxy},
    repository,
    servers::Servers,
};

/// A control plane with a kubelet, and the program to try on it.
#[derive(Debug)]
pub struct Stage {
    // First: it stops before the servers it talks to.
    pub kubelet: Kubelet,
    pub plane: Plane,
    program: PathBuf,
}

/// A controller behind a proxy, started again whenever the proxy kills it. Dropping it ends both.
#[derive(Debug)]
pub struct Disturbed {
    supervisor: JoinHandle<Result<(), Failure>>,
    slot: Arc<Slot>,
    pub proxy: Proxy,
}

/// The controller of the moment. Between a kill and the next start there is none.
#[derive(Debug, Default)]
struct Slot {
    controller: Mutex<Option<Controller>>,
    killed: Notify,
}

impl Stage {
    /// Builds what is missing and starts the servers and the kubelet.
    pub async fn set(servers: &Servers) -> Result<Self, Failure> {
        let program = controller::build()?;
        let plane = Plane::start(servers, &repository().join("manifests")).await?;
        let kubelet = Kubelet::start(plane.client(User::Kubelet).await?).await?;
        Ok(Self { kubelet, plane, program })
    }

    /// One controller for one namespace, or for all; ready when this returns.
    pub async fn controller(
        &self,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Controller, Failure> {
        let settings = Settings {
            name: name.to_owned(),
            kubeconfig: self.plane.kubeconfig(User::Controller),
            namespace: namespace.map(str::to_owned),
        };
        let mut controller = Controller::start(&self.program, &settings, self.plane.folder())?;
        controller.is_ready().await?;
        Ok(controller)
    }

    /// A controller for one namespace whose write number `plan.0` meets a fault.
    pub async fn disturbed(
        &self,
        namespace: &str,
        plan: Option<(usize, Fault)>,
    ) -> Result<Disturbed, Failure> {
        let slot = Arc::new(Slot::default());
        let victim = Arc::clone(&slot);
        let upstream = self.plane.config(User::Controller).await?;
        let proxy = Proxy::start(upstream, plan, move || victim.kill()).await?;
        let settings = Settings {
            name: format!("controller-{namespace}"),
            kubeconfig: self.plane.kubeconfig_through(&proxy.url(), namespace)?,
            namespace: Some(namespace.to_owned()),
        };
        let folder = self.plane.folder().to_owned();
        let (program, keeper) = (self.program.clone(), Arc::clone(&slot));
        slot.put(Controller::start(&program, &settings, &folder)?);
        let supervisor = tokio::spawn(async move {
            loop {
                keeper.killed.notified().await;
                keeper.put(Controller::start(&program, &settings, &folder)?);
            }
        });
        Ok(Disturbed { supervisor, slot, proxy })
    }
}

impl Drop for Disturbed {
    fn drop(&mut self) {
        self.supervisor.abort();
        self.slot.take();
    }
}

impl Slot {
    fn put(&self, controller: Controller) {
        *self.controller.lock().unwrap_or_else(PoisonError::into_inner) = Some(controller);
    }

    fn take(&self) -> Option<Controller> {
        self.controller.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Dropping a controller kills it and waits for its end.
    fn kill(&self) {
        drop(self.take());
        self.killed.notify_one();
    }
}
