//! How does a person's wish reach a Rollout?

use clap::Args;
use gradus_api::decode::decode;
use gradus_api::rollout::{RolloutSpec, RolloutStatus};
use gradus_engine::command::{Command, Patch, main_patch, patches, refusal};
use gradus_engine::kinds;

use crate::cluster::{Cluster, PatchKind, Refusal, ResourcePart};
use crate::{near, output};

/// Whom a wish is about.
#[derive(Debug, Args)]
pub struct Names {
    /// Names
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// The same wish for each of these rollouts, one after the other; the first refusal ends it.
pub async fn carry_out_on(
    cluster: &Cluster,
    Names { names }: &Names,
    command: Command,
    done: &str,
) -> anyhow::Result<()> {
    for name in names {
        carry_out(cluster, name, command).await?;
        output::say(&format!("rollout '{name}' {done}"))?;
    }
    Ok(())
}

/// Sends the patches of a command. What depends on how the Rollout stands reads it first.
pub async fn carry_out(cluster: &Cluster, name: &str, command: Command) -> anyhow::Result<()> {
    use Command::{Promote, PromoteFull, SkipAllSteps, SkipStep};
    let (mut spec, mut status) = (RolloutSpec::default(), RolloutStatus::default());
    if matches!(command, Promote | PromoteFull | SkipStep | SkipAllSteps) {
        let rollout = near::get(cluster, &kinds::ROLLOUT, name).await?;
        spec = decode(&rollout["spec"]).0;
        status = decode(&rollout["status"]).0;
    }
    if let Some(reason) = refusal(command, &spec) {
        anyhow::bail!("{reason}");
    }
    match send(cluster, name, command, (&spec, &status)).await {
        Ok(()) => Ok(()),
        Err(refusal) => Err(near::explained(cluster, &kinds::ROLLOUT, name, refusal).await),
    }
}

async fn send(
    cluster: &Cluster,
    name: &str,
    command: Command,
    (spec, status): (&RolloutSpec, &RolloutStatus),
) -> Result<(), Refusal> {
    for patch in patches(command, spec, status) {
        let (part, body) = match &patch {
            Patch::Main(body) => (ResourcePart::Main, body),
            Patch::Status(body) => (ResourcePart::Status, body),
        };
        let sent = cluster.patch(&kinds::ROLLOUT, name, part, (PatchKind::Merge, body)).await;
        match sent {
            // A CRD without the subresource: everything goes to the main resource at once.
            Err(Refusal::NotFound(_)) if part == ResourcePart::Status => {
                let body = main_patch(command, spec, status);
                let merge = (PatchKind::Merge, &body);
                return cluster
                    .patch(&kinds::ROLLOUT, name, ResourcePart::Main, merge)
                    .await
                    .map(drop);
            }
            sent => drop(sent?),
        }
    }
    Ok(())
}
