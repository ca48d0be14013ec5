//! `set image`: give a rollout another image.

use clap::{Args, Subcommand};
use gradus_engine::command::image::{NoSuchContainer, set_image};
use gradus_engine::kinds;

use crate::cluster::{Cluster, Refusal};
use crate::{near, output};

/// How often a change is tried again because somebody else was faster.
const ATTEMPTS: usize = 5;

/// Change a field of a rollout
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Change the image of a container; * means all containers
    Image(Image),
}

#[derive(Debug, Args)]
struct Image {
    /// Name of the rollout
    name: String,
    /// Container and its new image
    #[arg(value_name = "CONTAINER=IMAGE", value_parser = container_and_image)]
    change: (String, String),
}

/// Exactly one `=`: a name and an image have none of their own.
fn container_and_image(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=').filter(|(_, image)| !image.contains('='));
    let (container, image) = pair.ok_or("expected CONTAINER=IMAGE")?;
    Ok((container.to_owned(), image.to_owned()))
}

/// Sets the image in the rollout, or in the Deployment it refers to.
pub async fn run(arguments: &Arguments, cluster: &Cluster) -> anyhow::Result<()> {
    let What::Image(Image { name, change: (container, image) }) = &arguments.what;
    let mut refusal = None;
    for _ in 0..ATTEMPTS {
        match attempt(cluster, name, container, image).await? {
            Ok(changed) => {
                return Ok(output::say(&format!("{changed} image updated"))?);
            }
            Err(conflict) => refusal = Some(conflict),
        }
    }
    Err(refusal.map_or_else(|| anyhow::anyhow!("no attempt was made"), Into::into))
}

/// What helps somebody who named a container that is not there.
fn meant(missing: &NoSuchContainer) -> String {
    let near = near::offered(&missing.wanted, &missing.there);
    match (near.is_empty(), missing.there.is_empty()) {
        (false, _) => format!("did you mean {}?", near.join(" or ")),
        (true, false) => format!("its containers are {}", missing.there.join(", ")),
        (true, true) => "it has no containers".to_owned(),
    }
}

/// One attempt: what was changed, or the conflict that calls for another.
async fn attempt(
    cluster: &Cluster,
    name: &str,
    container: &str,
    image: &str,
) -> anyhow::Result<Result<String, Refusal>> {
    let rollout = near::get(cluster, &kinds::ROLLOUT, name).await?;
    let (kind, target, workload) = match rollout["spec"]["workloadRef"]["name"].as_str() {
        None => (&kinds::ROLLOUT, name.to_owned(), rollout),
        Some(target) => {
            let workload = near::get(cluster, &kinds::DEPLOYMENT, target).await?;
            (&kinds::DEPLOYMENT, target.to_owned(), workload)
        }
    };
    let changed = set_image(&workload, container, image)
        .map_err(|missing| anyhow::anyhow!("{missing}\n  {}", meant(&missing)))?;
    match cluster.replace(kind, &target, &changed).await {
        Ok(_) => Ok(Ok(format!("{} \"{target}\"", kind.name.to_lowercase()))),
        Err(conflict @ Refusal::Conflict(_)) => Ok(Err(conflict)),
        Err(refusal) => Err(refusal.into()),
    }
}
