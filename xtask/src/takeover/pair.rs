//! Two of our controllers: one ends, is killed, is robbed, or both lead at once; the API server goes
//! away, and etcd dies. Every update that is under way then ends as it would have.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use kube::Client;
use serde_json::json;

use super::{
    seen::{SeenError, Standing, holder, next_holder, reached, rollout, set_image, steal},
    told,
};
use crate::{
    Failure,
    controller::{Controller, Election, Settings},
    debian,
    plane::User,
    real::{apply, create_namespace},
    stage::Stage,
    summary::Summary,
};

const NAMESPACE: &str = "takeover";
const NAMES: [&str; 3] = ["one", "two", "three"];

/// A standby looks every second; the requests and our look take a moment.
const AFTER_A_STOP: Duration = Duration::from_secs(2);
/// The Lease of production holds 15 s.
const AFTER_A_KILL: Duration = Duration::from_secs(16);
/// Two looks of the leader, and the request in between.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);
const AWAY: Duration = Duration::from_secs(30);
/// What a controller logs whose machine's clock has gone ahead.
const PUT_FORWARD: &str = "clock was behind and is put forward";
/// An update takes 10 s of pauses; the machine may be busy.
const UPDATED_WITHIN: Duration = Duration::from_secs(120);

/// All of it, one after the other.
pub async fn play(stage: &mut Stage) -> Summary {
    let mut summary = Summary::default();
    let began = Instant::now();
    let made = prepare(stage).await;
    let client = match made {
        Ok(client) => client,
        Err(error) => return told("two controllers", began, &Err(error)),
    };
    let mut play = Play { client, image: 1, started: 0 };
    let began = Instant::now();
    summary += told("clean stop", began, &play.clean_stop(stage).await);
    let began = Instant::now();
    summary += told("kill -9", began, &play.kill(stage).await);
    let began = Instant::now();
    summary += told("lease stolen", began, &play.stolen(stage).await);
    let began = Instant::now();
    summary += told("both lead", began, &play.both_lead(stage).await);
    let began = Instant::now();
    summary += told("API server away", began, &play.server_away(stage, "kube-apiserver").await);
    let began = Instant::now();
    summary += told("etcd restarted", began, &play.server_away(stage, "etcd").await);
    match debian::extracted("libfaketime") {
        Ok(root) => {
            let began = Instant::now();
            summary += told("clock moved", began, &play.clock_moved(stage, &root).await);
        }
        Err(error) => {
            println!("  clock moved: not tried: libfaketime of Debian cannot be had: {error}");
            summary += Summary::skipped();
        }
    }
    summary
}

async fn prepare(stage: &Stage) -> Result<Client, Failure> {
    let client = stage.plane.client(User::Person).await?;
    create_namespace(&client, NAMESPACE).await?;
    let pause = json!({ "pause": { "duration": 5 } });
    let steps = json!([{ "setWeight": 25 }, pause, { "setWeight": 50 }, pause]);
    let canary = json!({ "canary": { "steps": steps } });
    for name in NAMES {
        apply(&client, NAMESPACE, &rollout(name, &canary)).await?;
    }
    Ok(client)
}

struct Play {
    client: Client,
    image: u32,
    started: u32,
}

impl Play {
    fn start(&mut self, stage: &Stage, election: Election) -> Result<Controller, Failure> {
        self.start_with(stage, election, Vec::new())
    }

    fn start_with(
        &mut self,
        stage: &Stage,
        election: Election,
        variables: Vec<(String, String)>,
    ) -> Result<Controller, Failure> {
        self.started += 1;
        stage.mortal(&Settings {
            name: format!("controller-{}", self.started),
            kubeconfig: stage.plane.kubeconfig(User::Controller),
            election: Some(election),
            variables,
            ..Settings::default()
        })
    }

    /// Two controllers that are ready, of which the first leads.
    async fn pair(&mut self, stage: &Stage) -> Result<(Controller, Controller), Failure> {
        let before = holder(&self.client).await?;
        let mut first = self.start(stage, Election::Production)?;
        next_holder(&self.client, &before, AFTER_A_KILL * 2).await?;
        first.is_ready().await?;
        let mut second = self.start(stage, Election::Production)?;
        second.is_ready().await?;
        self.all_are("Healthy").await?;
        Ok((first, second))
    }

    /// Every Rollout gets the next image, and is on its way.
    async fn update(&mut self) -> Result<(), Failure> {
        self.image += 1;
        let image = format!("example.com/web:{}", self.image);
        for name in NAMES {
            set_image(&self.client, NAMESPACE, name, &image).await?;
        }
        self.all_are("Paused").await
    }

    async fn all_are(&self, phase: &str) -> Result<(), Failure> {
        for name in NAMES {
            let wanted = (phase, UPDATED_WITHIN);
            reached(&self.client, (NAMESPACE, name), wanted, |status| status["phase"] == phase)
                .await?;
        }
        Ok(())
    }

    /// All have the newest image, by one ReplicaSet for each image there was, and no pod restarted.
    async fn ends_well(&self) -> Result<(), Failure> {
        self.all_are("Healthy").await?;
        let standing = Standing::of(&self.client, NAMESPACE).await?;
        let sets = NAMES.len() * usize::try_from(self.image)?;
        let full = standing.sets.values().filter(|size| **size > 0).count();
        let restarts: i32 = standing.pods.values().sum();
        if (standing.sets.len(), full, restarts) == (sets, NAMES.len(), 0) {
            return Ok(());
        }
        let found = format!(
            "expected {sets} ReplicaSets, {} of them with pods, and no restart; found {}, {full}, \
             {restarts}",
            NAMES.len(),
            standing.sets.len()
        );
        Err(SeenError::Other(found).into())
    }

    async fn clean_stop(&mut self, stage: &Stage) -> Result<String, Failure> {
        let (first, _second) = self.pair(stage).await?;
        self.update().await?;
        let before = holder(&self.client).await?;
        first.terminate()?;
        let (_, after) = next_holder(&self.client, &before, AFTER_A_KILL).await?;
        self.ends_well().await?;
        within(after, AFTER_A_STOP)
    }

    async fn kill(&mut self, stage: &Stage) -> Result<String, Failure> {
        let (first, _second) = self.pair(stage).await?;
        self.update().await?;
        let before = holder(&self.client).await?;
        drop(first);
        let (_, after) = next_holder(&self.client, &before, AFTER_A_KILL * 2).await?;
        self.ends_well().await?;
        within(after, AFTER_A_KILL)
    }

    async fn stolen(&mut self, stage: &Stage) -> Result<String, Failure> {
        let (first, second) = self.pair(stage).await?;
        self.update().await?;
        steal(&self.client, "thief").await?;
        let (robbed, lost) = (Instant::now(), "lost the lease");
        while !first.words().contains(lost) {
            if robbed.elapsed() > NOTICED_WITHIN {
                return Err(SeenError::Other(format!("the leader did not log {lost:?}")).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let noticed = robbed.elapsed();
        let (_, after) = next_holder(&self.client, "thief", AFTER_A_KILL * 2).await?;
        self.ends_well().await?;
        drop((first, second));
        Ok(format!("noticed after {noticed:.1?}, one of them leads again after {after:.1?}"))
    }

    async fn both_lead(&mut self, stage: &Stage) -> Result<String, Failure> {
        let mut both = [self.start(stage, Election::Off)?, self.start(stage, Election::Off)?];
        for one in &mut both {
            one.is_ready().await?;
        }
        self.all_are("Healthy").await?;
        self.update().await?;
        self.ends_well().await?;
        Ok("every update ended as with one".to_owned())
    }

    /// The leader's clock jumps an hour ahead, and then back, beside a standby whose clock is right.
    async fn clock_moved(&mut self, stage: &Stage, root: &Path) -> Result<String, Failure> {
        let library = library(root)?;
        let offset = stage.plane.folder().join("offset");
        fs::write(&offset, "+0\n")?;
        let variables = vec![
            ("LD_PRELOAD".to_owned(), library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE".to_owned(), offset.display().to_string()),
            ("FAKETIME_NO_CACHE".to_owned(), "1".into()),
            // A person sets the time of day; what has passed since the start goes on.
            ("FAKETIME_DONT_FAKE_MONOTONIC".to_owned(), "1".into()),
        ];
        let before = holder(&self.client).await?;
        let mut moved = self.start_with(stage, Election::Production, variables)?;
        next_holder(&self.client, &before, AFTER_A_KILL * 2).await?;
        moved.is_ready().await?;
        let mut standby = self.start(stage, Election::Production)?;
        standby.is_ready().await?;
        for hours in ["+1h", "+0"] {
            self.update().await?;
            fs::write(&offset, format!("{hours}\n"))?;
            self.ends_well().await?;
        }
        if moved.death()?.is_some() || standby.death()?.is_some() {
            return Err(SeenError::Other("a controller has ended".to_owned()).into());
        }
        if !moved.words().contains(PUT_FORWARD) {
            return Err(SeenError::Other(format!("expected {PUT_FORWARD:?} in its log")).into());
        }
        Ok("an hour ahead and back, every update ended as with a right clock".to_owned())
    }

    async fn server_away(&mut self, stage: &mut Stage, server: &str) -> Result<String, Failure> {
        let (_first, _second) = self.pair(stage).await?;
        self.update().await?;
        stage.plane.kill_server(server)?;
        let away = if server == "etcd" { Duration::from_secs(2) } else { AWAY };
        tokio::time::sleep(away).await;
        stage.plane.start_server(server)?;
        self.ends_well().await?;
        Ok(format!("away for {away:?}, every update ended"))
    }
}

/// What is loaded before all else, and moves the clock.
fn library(root: &Path) -> Result<PathBuf, Failure> {
    for entry in fs::read_dir(root.join("usr/lib"))? {
        let path = entry?.path().join("faketime/libfaketimeMT.so.1");
        if path.exists() {
            return Ok(path);
        }
    }
    Err(SeenError::Other(format!("no libfaketime in {}", root.display())).into())
}

fn within(found: Duration, expected: Duration) -> Result<String, Failure> {
    if found <= expected {
        return Ok(format!("taken over after {found:.1?}"));
    }
    Err(SeenError::Other(format!("taken over after {found:.1?}, expected {expected:.1?}")).into())
}
