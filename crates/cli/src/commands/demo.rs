//! `gradus demo`: an embedded cluster, the production controller and rollouts that move.

mod board;
mod cluster;
mod kubeconfig;
mod picture;
mod scene;
mod screen;
mod script;
#[cfg(test)]
mod still;
mod terminal;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use gradus_controller::ask::{AddressPolicy, HttpClient};
use gradus_controller::clock::Clock;
use gradus_controller::connect;
use gradus_controller::engines::GRADUS;
use gradus_controller::health::Health;
use gradus_controller::production::{Parts, control};
use gradus_controller::rate::Rate;
use gradus_controller::run::Settings;
use gradus_controller::stop::Stop;
use gradus_controller::telemetry::{LogFormat, Metrics, start_logging};
use gradus_lab::sight::Sight;
use tokio::sync::oneshot;

use board::Wish;
use cluster::{Embedded, NAMESPACE};
use screen::Screen;
use script::{Script, described, scripts};

/// How often the demo looks at the cluster.
const FRAME: Duration = Duration::from_millis(100);

/// The controller's share of the embedded cluster: as much as it likes.
const NO_LIMIT: Rate = Rate { per_second: 0.0, burst: 1 };

/// Play rollouts on an embedded cluster, without Kubernetes
#[derive(Debug, Args)]
pub struct Arguments {
    /// End when the first canary, checkout, is fully promoted
    #[arg(long)]
    once: bool,
    /// Loopback port of the embedded API server; 0 takes a free one
    #[arg(long, default_value = "0")]
    port: u16,
}

/// Plays the demo until Ctrl-C, or once.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(play(arguments))?;
    Ok(ExitCode::SUCCESS)
}

async fn play(arguments: &Arguments) -> anyhow::Result<()> {
    let mut stop = Stop::listen()?;
    let clock = Clock::system();
    let folder = std::env::current_dir()?;
    let embedded = Embedded::start(&clock, arguments.port, &folder).await?;
    let path = embedded.kubeconfig.path().display().to_string();
    let mut screen = Screen::of_stdout(clock.now(), &path)?;
    if let Some(other) = embedded.kubeconfig.first_other() {
        let text = format!("Another demo runs in this folder; {other} leads to that one.");
        screen.announce(&text, clock.now())?;
    }
    match screen {
        Screen::Terminal(_) => stop = stop.or_hangup()?,
        // On a terminal they would tear the picture.
        Screen::Lines(_) => {
            start_logging("warn", LogFormat::Text, 0)?;
            writeln!(io::stdout(), "{}", greeting(&path))?;
        }
    }
    embedded.apply_samples()?;
    let (done, is_done) = oneshot::channel::<()>();
    let playing = async {
        let outcome = tokio::select! {
            outcome = show(&embedded, &clock, &mut screen, arguments.once) => outcome,
            () = stop.asked() => Ok(()),
        };
        drop(done);
        outcome
    };
    let controlling = control(&GRADUS, parts(&embedded, clock.clone())?, async {
        // The sender sends nothing: its end is the message.
        drop(is_done.await);
    });
    let (outcome, ()) = tokio::join!(playing, controlling);
    outcome
}

fn greeting(kubeconfig: &str) -> String {
    format!(
        "An embedded cluster with sample rollouts; Ctrl-C ends it. In another terminal:\n  \
         export KUBECONFIG={kubeconfig}; kubectl get rollouts\n"
    )
}

/// The production controller, connected to the embedded cluster over its port.
fn parts(embedded: &Embedded, clock: Clock) -> anyhow::Result<Parts> {
    let address = embedded.url().parse().context("the address of the embedded cluster")?;
    let client = connect::client(kube::Config::new(address))?.client;
    let (health, worlds) = Health::new();
    let (metrics, settings) = (Metrics::new(), Settings::default());
    let loopback = "127.0.0.0/8".parse().context("the network of the metric server")?;
    let policy = AddressPolicy { allow: vec![loopback], ..AddressPolicy::default() };
    Ok(Parts {
        client,
        http: Some(HttpClient::new(policy)?),
        home: None,
        plugins: None,
        rate: NO_LIMIT,
        clock,
        metrics,
        health,
        worlds,
        settings,
    })
}

/// Plays the scenarios and shows what comes of them, until somebody quits, or once.
async fn show(
    embedded: &Embedded,
    clock: &Clock,
    screen: &mut Screen,
    once: bool,
) -> anyhow::Result<()> {
    let mut scripts = scripts();
    let lead = scripts[0].rollout;
    let mut frames = tokio::time::interval(FRAME);
    loop {
        frames.tick().await;
        for wish in screen.wishes(clock.now())? {
            let Wish::Act((namespace, name), action) = wish else { return Ok(()) };
            if let Err(refusal) = embedded.act(&namespace, &name, &action) {
                screen.report(&name, &refusal.to_string(), clock.now())?;
            }
        }
        let are_people_active = screen.are_people_active();
        for script in scripts.iter_mut().filter(|_| are_people_active) {
            if let Some(deed) = advance(script, embedded) {
                screen.report(script.rollout, &deed, clock.now())?;
            }
        }
        let (shown, is_over) = embedded.server.with(|cluster, now| {
            let lead = scene::rollout(cluster, NAMESPACE, lead);
            let lead = lead.map(|rollout| scene::standing(rollout));
            let is_over = lead.is_some_and(|lead| {
                lead.revision > 1 && lead.is_promoted && lead.phase == "Healthy"
            });
            (screen.show(cluster, now), is_over)
        });
        shown?;
        if once && is_over {
            return Ok(());
        }
    }
}

/// Lets the people of a scenario act if it is time; says what they did. The cluster is open to
/// others, who may make it refuse that: the scenario goes on all the same.
fn advance(script: &mut Script, embedded: &Embedded) -> Option<String> {
    let action = embedded.server.with(|cluster, now| {
        let rollout = scene::rollout(cluster, NAMESPACE, script.rollout)?;
        let document = scene::document(rollout);
        script.look(&Sight::of(&document), now)
    })?;
    let deed = described(&action);
    Some(match embedded.act(NAMESPACE, script.rollout, &action) {
        Ok(()) => deed,
        Err(refusal) => format!("{deed}: {refusal}"),
    })
}

#[cfg(test)]
mod tests {
    use gradus_api::names;
    use gradus_simkube::Request;
    use gradus_simkube::kinds::KindId;
    use serde_json::json;

    use super::*;

    /// Whoever edits the definition can make the server refuse what the scenario's people write.
    #[tokio::test]
    async fn a_refused_write_is_reported_and_the_scenario_goes_on() {
        let folder = std::env::temp_dir().join(format!("gradus-refused-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let clock = Clock::system();
        let embedded = Embedded::start(&clock, 0, &folder).await.unwrap();
        embedded.apply_samples().unwrap();
        embedded.server.with(|cluster, now| {
            let healthy = json!({"status": {"phase": "Healthy", "observedGeneration": "1"}});
            let kind = scene::rollouts(cluster).unwrap();
            let status = Request::merge(kind, NAMESPACE, "checkout", healthy);
            cluster.call(&status.on(gradus_simkube::Subresource::Status), now).unwrap();
            let (_, mut crd) = gradus_api::crd::crds()
                .into_iter()
                .find(|(name, _)| *name == "rollout-crd.yaml")
                .unwrap();
            let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
            *crd.pointer_mut(schema).unwrap() = json!({
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "it stays"}],
            });
            let name = format!("rollouts.{}", names::GROUP);
            let change = Request::merge(KindId::CUSTOM_RESOURCE_DEFINITION, "", &name, crd);
            cluster.call(&change, now).unwrap();
        });
        let mut script = scripts().swap_remove(0);
        let mut deed = None;
        for _ in 0..100 {
            deed = advance(&mut script, &embedded);
            if deed.is_some() {
                break;
            }
            tokio::time::sleep(FRAME).await;
        }
        let deed = deed.unwrap();
        let expected = "a person sets the image nginx:1.28: the embedded cluster refused: ";
        assert!(deed.starts_with(expected) && deed.contains("it stays"), "{deed}");
        assert_eq!(advance(&mut script, &embedded), None, "the next moment is awaited");
        drop(embedded);
        std::fs::remove_dir(&folder).unwrap();
    }
}
