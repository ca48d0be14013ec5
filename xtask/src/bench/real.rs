//! `cargo xtask bench --real N`: what do N Rollouts cost on a real control plane? They are created, left
//! alone, all updated, and found again after a restart; then a quiet namespace is updated beside a busy
//! one. With `--peer` Argo Rollouts' own controller does the same on the same servers, one after the
//! other, and every figure is a ratio.

mod crowd;
mod fairness;
mod phase;
mod reactions;
mod report;
mod side;
mod soak;

use std::{path::PathBuf, time::Duration};

use kube::Client;
use thiserror::Error;

use crate::{
    Failure, build,
    interrupt::or_interrupted,
    kubelet::Kubelet,
    plane::{Plane, User},
    real::create_namespace,
    repository,
    servers::Servers,
    summary::Summary,
};
use crowd::Crowd;
use phase::{Measured, Meter};
use side::{Running, Side};

/// `cargo xtask soak`.
pub use soak::run as soak;

/// How long nothing must happen before silence is measured: Events of the last writes may still come.
const SETTLES: Duration = Duration::from_secs(8);
/// How long silence is measured.
const IDLE: Duration = Duration::from_secs(30);
/// How many Rollouts are updated one after the other, and how long after each other.
const ALONE: usize = 20;
const BETWEEN: Duration = Duration::from_millis(400);

#[derive(Debug, Error)]
pub(super) enum RealError {
    #[error("--real {0}: expected one or more numbers of Rollouts, as 100 or 100,1000")]
    Numbers(String),
    #[error("unknown option {0}: expected --peer, --default-rate or --program FILE")]
    UnknownOption(String),
    #[error("{what}: expected all Rollouts to be there within {} s, {done} of {all} are", within.as_secs())]
    NotReached { what: &'static str, within: Duration, done: usize, all: usize },
    #[error("--program: expected a file after it")]
    NoProgram,
    #[error("{0}: expected a number of minutes, at least 1")]
    Minutes(String),
    #[error("{0} has ended by itself:\n{1}")]
    Ended(&'static str, String),
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    numbers: Vec<usize>,
    has_peer: bool,
    /// The rate of requests that both have by default, instead of none that could be felt.
    has_default_rate: bool,
    /// The build of Gradus; an optimised one is made where none is named.
    program: Option<PathBuf>,
}

/// What one controller needed for one number of Rollouts.
#[derive(Clone, Debug)]
struct Course {
    side: Side,
    count: usize,
    /// Bytes in memory before there was anything to do, with all Rollouts, and at most.
    resident: [u64; 3],
    create: Measured,
    idle: Measured,
    update: Measured,
    restart: Measured,
    /// From the change of a Rollout to the first write it leads to, one Rollout at a time.
    alone: Vec<Duration>,
    /// The same while all are updated.
    together: Vec<Duration>,
    /// Events of the mass update that its metrics count; not where its rate may hold them back.
    events_due: Option<usize>,
    /// Reactions in a quiet namespace, alone and beside a busy one.
    quiet: Option<[Vec<Duration>; 2]>,
}

/// Runs the task; the first word is what follows `--real`.
pub(super) fn run(arguments: &[String]) -> Result<Summary, Failure> {
    let wish = Wish::parse(arguments)?;
    let servers = Servers::ready(&repository())?;
    let program = match &wish.program {
        Some(program) => program.clone(),
        None => build::program(&["--profile", "dist", "--package", "gradus"])?,
    };
    let peer = wish.has_peer.then(crate::argo::controller_program).transpose()?;
    or_interrupted(async {
        let mut courses = Vec::new();
        for count in &wish.numbers {
            // Each on servers of its own: those of before would be larger and slower.
            let ground = Ground::start(&servers).await?;
            for side in [(Side::Gradus, Some(&program)), (Side::Argo, peer.as_ref())] {
                let (side, Some(program)) = side else { continue };
                let start = side::Start { side, program, has_default_rate: wish.has_default_rate };
                courses.push(ground.course(&start, *count).await?);
            }
        }
        Ok(report::print(&courses))
    })
}

impl Wish {
    fn parse(arguments: &[String]) -> Result<Self, RealError> {
        let (numbers, options) =
            arguments.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let wrong = || RealError::Numbers(numbers.to_owned());
        let parsed = numbers.split(',').map(|number| number.parse().ok().filter(|one| *one > 0));
        let mut wish = Self {
            numbers: parsed.collect::<Option<_>>().ok_or_else(wrong)?,
            has_peer: false,
            has_default_rate: false,
            program: None,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match option.as_str() {
                "--program" => {
                    let file = options.next().map(PathBuf::from);
                    wish.program = Some(file.ok_or(RealError::NoProgram)?);
                }
                "--peer" => wish.has_peer = true,
                "--default-rate" => wish.has_default_rate = true,
                other => return Err(RealError::UnknownOption(other.to_owned())),
            }
        }
        Ok(wish)
    }
}

/// The servers, and pods that run.
struct Ground {
    // First: it stops before the servers.
    _kubelet: Kubelet,
    plane: Plane,
    client: Client,
}

impl Ground {
    async fn start(servers: &Servers) -> Result<Self, Failure> {
        let plane = Plane::start(servers, &repository()).await?;
        let kubelet = Kubelet::start(plane.client(User::Kubelet).await?).await?;
        let client = plane.client(User::Person).await?;
        side::grant(&client).await?;
        Ok(Self { _kubelet: kubelet, plane, client })
    }

    /// Everything that one controller is measured by.
    async fn course(&self, start: &side::Start<'_>, count: usize) -> Result<Course, Failure> {
        let side = start.side;
        println!("  {}: {count} Rollouts", side.name());
        create_namespace(&self.client, side.namespace()).await?;
        create_namespace(&self.client, side.quiet_namespace()).await?;
        let mut running = Running::start(start, &self.plane).await?;
        running.leads(&self.client).await?;
        tokio::time::sleep(SETTLES).await;
        let empty = running.usage()?.resident;
        let crowd = Crowd::of(&self.client, side.namespace());
        let meter = |running: &Running| Meter::start(&self.plane, running);

        let began = meter(&running)?;
        crowd.create(count, crowd::Shape::OneStep).await?;
        crowd.is_done(&mut running, "created").await?;
        let create = began.read(&running, SETTLES).await?;

        let began = meter(&running)?;
        tokio::time::sleep(IDLE).await;
        let idle = began.read(&running, Duration::ZERO).await?;

        let alone = self.one_at_a_time(&crowd, &mut running).await?;

        let due_before = running.events_due().await?;
        let began = meter(&running)?;
        crowd.update(&crowd.names()).await?;
        crowd.is_done(&mut running, "updated").await?;
        let update = began.read(&running, SETTLES).await?;
        let due = running.events_due().await?.saturating_sub(due_before);
        let events_due = (!start.has_default_rate).then_some(due);
        let together = reactions::of(&update.requests, side.user(), side.namespace());
        let usage = running.usage()?;

        let began = Meter::start_anew(&self.plane)?;
        running.ends().await?;
        let mut running = Running::start(start, &self.plane).await?;
        running.has_reconciled(count).await?;
        let restart = began.read(&running, SETTLES).await?;

        let quiet = match side {
            Side::Gradus if count >= fairness::BUSY => {
                // As it is shipped: a rate that nobody has makes the servers the limit, for all.
                running.ends().await?;
                let start = side::Start { has_default_rate: true, ..*start };
                running = Running::start(&start, &self.plane).await?;
                running.has_reconciled(count).await?;
                Some(fairness::measure(self, &crowd, &mut running).await?)
            }
            // Argo Rollouts manages one namespace here.
            Side::Gradus | Side::Argo => None,
        };
        running.ends().await?;
        let resident = [empty, usage.resident, usage.peak];
        Ok(Course {
            side,
            count,
            resident,
            create,
            idle,
            update,
            restart,
            alone,
            together,
            events_due,
            quiet,
        })
    }

    /// Reactions of a controller that has nothing else to do.
    async fn one_at_a_time(
        &self,
        crowd: &Crowd,
        running: &mut Running,
    ) -> Result<Vec<Duration>, Failure> {
        let meter = Meter::start(&self.plane, running)?;
        for name in crowd.names().into_iter().take(ALONE) {
            crowd.update(&[name]).await?;
            tokio::time::sleep(BETWEEN).await;
        }
        crowd.is_done(running, "updated one after the other").await?;
        let measured = meter.read(running, SETTLES).await?;
        let side = running.side();
        Ok(reactions::of(&measured.requests, side.user(), side.namespace()))
    }
}

#[test]
fn numbers_and_options_are_read() {
    let parse = |line: &str| {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Wish::parse(&words)
    };
    let wish = parse("100,1000 --peer").unwrap();
    let (numbers, program) = (vec![100, 1000], None);
    let expected = Wish { numbers, has_peer: true, has_default_rate: false, program };
    assert_eq!(wish, expected);
    let wish = parse("1 --program target/gradus").unwrap();
    assert_eq!(wish.program, Some("target/gradus".into()));
    for wrong in ["", "0", "ten", "10,", "10 --pear", "10 --program"] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}
