//! `cargo xtask conformance`: does the embedded cluster answer as a real API server does? The same
//! request files are sent to both.

use tokio::process::Command;

use crate::{
    Failure,
    interrupt::or_interrupted,
    plane::{Plane, User},
    repository,
    servers::Servers,
    summary::Summary,
    test,
};

/// The runner compares with the server of this kubeconfig, not with recorded answers.
const KUBECONFIG: &str = "GRADUS_CONFORMANCE_KUBECONFIG";

/// Runs the task.
pub fn run(_arguments: &[String]) -> Result<Summary, Failure> {
    let servers = Servers::ready(&repository())?;
    or_interrupted(compare(&servers))
}

async fn compare(servers: &Servers) -> Result<Summary, Failure> {
    let plane = Plane::start(servers, &repository().join("manifests")).await?;
    let output = Command::new(env!("CARGO"))
        .current_dir(repository())
        .args(["test", "--package", "gradus-simkube", "--test", "conformance"])
        .env(KUBECONFIG, plane.kubeconfig(User::Person))
        .kill_on_drop(true)
        .output()
        .await?;
    Ok(test::summary_of(&output))
}
