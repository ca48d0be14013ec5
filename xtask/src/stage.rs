//! What does a scenario on the real control plane stand on? The servers, a kubelet, and the program
//! under test: alone, or behind a proxy that disturbs it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, task::JoinHandle};

use crate::{
    Failure, build,
    controller::{Controller, Election, LOOPBACK, Settings},
    kubelet::Kubelet,
    plane::{Plane, User},
    proxy::{Planned, Proxy},
    repository,
    servers::Servers,
};

/// How often a controller is looked at, to see whether it still lives.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A control plane with a kubelet, and the program to try on it.
#[derive(Debug)]
pub struct Stage {
    // First: it stops before the servers it talks to.
    pub kubelet: Kubelet,
    pub plane: Plane,
    program: PathBuf,
    operator: PathBuf,
    deaths: Deaths,
}

/// The programs under test.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Gradus.
    pub program: PathBuf,
    /// The example operator.
    pub operator: PathBuf,
}

/// Controllers that ended though nobody had killed them. Clones share it.
#[derive(Clone, Debug, Default)]
struct Deaths(Arc<AtomicUsize>);

/// Which controller is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerKind {
    /// Gradus itself.
    Rollouts,
    /// The example operator.
    Databases,
}

impl ControllerKind {
    /// As whom it talks to the API server.
    pub fn user(self) -> User {
        match self {
            Self::Rollouts => User::Controller,
            Self::Databases => User::Operator,
        }
    }

    /// The example operator knows of no election.
    pub fn election(self, election: Election) -> Option<Election> {
        (self == Self::Rollouts).then_some(election)
    }

    /// Scenarios play metric servers on loopback; the example operator measures nothing.
    fn metric_allow(self) -> Option<String> {
        (self == Self::Rollouts).then(|| LOOPBACK.to_owned())
    }
}

/// A controller that is started again whenever it is killed. Dropping this ends it for good.
#[derive(Debug)]
pub struct Supervised {
    supervisor: JoinHandle<()>,
    slot: Arc<Slot>,
}

/// The controller of the moment. Between a kill and the next start there is none.
#[derive(Debug)]
struct Slot {
    controller: Mutex<Option<Controller>>,
    killed: Notify,
    deaths: Deaths,
}

impl Stage {
    /// Builds what is missing and starts the servers and the kubelet.
    pub async fn set(servers: &Servers) -> Result<Self, Failure> {
        // Unoptimised: its parts are there already after the tests, and it checks itself more.
        let [program, operator] = build::tested_programs(["gradus", "database-operator"])?;
        Self::with(servers, Programs { program, operator }).await
    }

    /// Starts the servers and the kubelet for programs that are there.
    pub async fn with(servers: &Servers, programs: Programs) -> Result<Self, Failure> {
        let Programs { program, operator } = programs;
        let plane = Plane::start(servers, &repository()).await?;
        let kubelet = Kubelet::start(plane.client(User::Kubelet).await?).await?;
        Ok(Self { kubelet, plane, program, operator, deaths: Deaths::default() })
    }

    /// How many controllers have ended by themselves so far. Each was told of when it happened.
    pub fn deaths(&self) -> usize {
        self.deaths.0.load(Ordering::Relaxed)
    }

    /// The program under the name by which kubectl finds it.
    pub fn plugin(&self) -> Result<PathBuf, Failure> {
        let plugin = self.plane.folder().join("kubectl-argo-rollouts");
        if !plugin.exists() {
            std::os::unix::fs::symlink(&self.program, &plugin)?;
        }
        Ok(plugin)
    }

    /// One controller for the whole cluster; ready when this returns.
    pub async fn controller(&self, part: ControllerKind) -> Result<Supervised, Failure> {
        let settings = Settings {
            name: format!("{part:?}").to_lowercase(),
            kubeconfig: self.plane.kubeconfig(part.user()),
            election: part.election(Election::On),
            metric_allow: part.metric_allow(),
            ..Settings::default()
        };
        self.controller_with(part, settings).await
    }

    /// A controller with settings of its own; ready when this returns.
    pub async fn controller_with(
        &self,
        part: ControllerKind,
        settings: Settings,
    ) -> Result<Supervised, Failure> {
        let slot = Arc::new(Slot::new(&self.deaths));
        Supervised::start(self.program_of(part), settings, self.plane.folder(), slot).await
    }

    /// A controller of Rollouts whose end nobody prevents.
    pub fn mortal(&self, settings: &Settings) -> Result<Controller, Failure> {
        Ok(Controller::start(&self.program, settings, self.plane.folder())?)
    }

    fn program_of(&self, part: ControllerKind) -> &Path {
        match part {
            ControllerKind::Rollouts => &self.program,
            ControllerKind::Databases => &self.operator,
        }
    }

    /// A controller for one namespace whose writes meet the faults of this plan.
    pub async fn disturbed(
        &self,
        part: ControllerKind,
        namespace: &str,
        plan: Vec<Planned>,
    ) -> Result<(Supervised, Proxy), Failure> {
        let slot = Arc::new(Slot::new(&self.deaths));
        let victim = Arc::clone(&slot);
        let upstream = self.plane.config(part.user()).await?;
        let proxy = Proxy::start(upstream, plan, move || victim.kill()).await?;
        let settings = Settings {
            name: format!("controller-{namespace}"),
            kubeconfig: self.plane.kubeconfig_through(part.user(), &proxy.url(), namespace)?,
            namespace: Some(namespace.to_owned()),
            // Faults are planned by the number of the write: renewals of a lease would count.
            election: part.election(Election::Off),
            metric_allow: part.metric_allow(),
            ..Settings::default()
        };
        let kept =
            Supervised::start(self.program_of(part), settings, self.plane.folder(), slot).await?;
        Ok((kept, proxy))
    }
}

impl Supervised {
    async fn start(
        program: &Path,
        settings: Settings,
        folder: &Path,
        slot: Arc<Slot>,
    ) -> Result<Self, Failure> {
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let mut first = Controller::start(&program, &settings, &folder)?;
        first.is_ready().await?;
        slot.put(first);
        let filled = Arc::clone(&slot);
        let supervisor = tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = filled.killed.notified() => {}
                    words = filled.died() => filled.deplore(&settings.name, &words),
                }
                match Controller::start(&program, &settings, &folder) {
                    Ok(next) => filled.put(next),
                    Err(error) => filled.deplore(&settings.name, &error.to_string()),
                }
            }
        });
        Ok(Self { supervisor, slot })
    }

    /// Kills it; another takes its place.
    pub fn restart(&self) {
        self.slot.kill();
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.supervisor.abort();
        drop(self.slot.take());
    }
}

impl Slot {
    fn new(deaths: &Deaths) -> Self {
        Self { controller: Mutex::default(), killed: Notify::new(), deaths: deaths.clone() }
    }

    /// Returns when the controller has ended though nobody killed it.
    async fn died(&self) -> String {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let mut controller = self.controller.lock().unwrap_or_else(PoisonError::into_inner);
            let death = controller.as_mut().map(Controller::death);
            match death {
                Some(Ok(Some(words))) => return words,
                Some(Err(error)) => return error.to_string(),
                None | Some(Ok(None)) => {}
            }
        }
    }

    /// A controller that ends by itself is a failure, although another takes its place.
    fn deplore(&self, name: &str, words: &str) {
        self.deaths.0.fetch_add(1, Ordering::Relaxed);
        println!("  {name}: FAILED: the controller ended by itself: {words}");
    }

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
