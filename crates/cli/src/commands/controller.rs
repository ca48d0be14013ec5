//! `gradus controller`: runs the controller against a cluster, with the flags of Argo Rollouts.

mod argo;

use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use gradus_api::validate::label_value_errors;
use gradus_api::values::parse_go_duration;
use gradus_controller::ask::BalancerNames;
use gradus_controller::engines::{ANALYSES, Engines, GRADUS};
use gradus_controller::kube_cluster::REQUEST_LIMIT;
use gradus_controller::lease::election::LeaseDurations;
use gradus_controller::lease::{Election, own_namespace};
use gradus_controller::program::Flags;
use gradus_controller::run::Settings;
use gradus_controller::shell::InterlockMode;
use gradus_controller::watched::Scope;

/// Run the controller against a cluster
#[derive(Debug, Args)]
#[command(rename_all = "kebab-case")]
pub struct Arguments {
    /// Only objects labelled with this instance id; empty for those without
    #[arg(long, value_name = "ID", default_value = "", value_parser = label_value)]
    instance_id: String,
    /// Let one of several controllers act, the others stand by
    #[arg(long, default_value = "true", default_missing_value = "true")]
    #[arg(num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    leader_elect: bool,
    /// How long the lease of the leader holds without being renewed
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    leader_election_lease_duration: Duration,
    /// How long the leader acts on its last renewal
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    leader_election_renew_deadline: Duration,
    /// How long to wait between two tries to lead
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    leader_election_retry_period: Duration,
    /// What happens to a write that would break an invariant: enforce holds it, warn tells of it
    #[arg(long, value_name = "MODE", default_value = "enforce")]
    interlock: Interlock,
    /// Decide and print, never write
    #[arg(long, default_value = "false", default_missing_value = "true")]
    #[arg(num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    dry_run: bool,
    /// Run these controllers alone, separated by commas: analysis is the only one there is to choose
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = part)]
    controllers: Vec<String>,
    /// Ask AWS whether load balancers split the traffic as they were told, before a step goes on
    #[arg(
        long,
        alias = "alb-verify-weight",
        default_value = "false",
        default_missing_value = "true"
    )]
    #[arg(num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(value_name = "BOOL", hide_possible_values = true)]
    aws_verify_target_group: bool,
    /// The tag of a target group that names its Ingress, Service and port
    #[arg(long, value_name = "KEY", default_value = "ingress.k8s.aws/resource")]
    alb_tag_key_resource_id: String,
    /// Group and version of TargetGroupBindings, which bind Services to target groups
    #[arg(long, value_name = "GROUP/VERSION", default_value = "elbv2.k8s.aws/v1beta1")]
    #[arg(value_parser = group_version)]
    aws_target_group_binding_api_version: (String, String),
    #[command(flatten)]
    argo: argo::ArgoFlags,
    #[command(flatten)]
    flags: Flags,
}

/// The part of the controller that can run alone, as Kargo uses it.
const ANALYSIS: &str = "analysis";

/// A group and a version of it.
fn group_version(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('/').filter(|(group, version)| {
        !group.is_empty() && !version.is_empty() && !version.contains('/')
    });
    let (group, version) =
        parts.ok_or("expected a group and a version, as in elbv2.k8s.aws/v1beta1")?;
    Ok((group.to_owned(), version.to_owned()))
}

/// The values of `--interlock`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Interlock {
    Enforce,
    Warn,
}

impl From<Interlock> for InterlockMode {
    fn from(value: Interlock) -> Self {
        match value {
            Interlock::Enforce => InterlockMode::Enforce,
            Interlock::Warn => InterlockMode::Warn,
        }
    }
}

/// An instance id becomes the value of a label, and part of a selector.
fn label_value(text: &str) -> Result<String, String> {
    match label_value_errors(text).first() {
        Some(wrong) => Err(wrong.clone()),
        None => Ok(text.to_owned()),
    }
}

/// A part of the controller that can run alone.
fn part(text: &str) -> Result<String, String> {
    if text == ANALYSIS {
        return Ok(text.to_owned());
    }
    Err(format!("unsupported controller: {text} (expected {ANALYSIS})"))
}

/// A duration as Go writes it.
fn duration(text: &str) -> Result<Duration, String> {
    let read = parse_go_duration(text).map_err(|error| error.to_string())?;
    Duration::try_from(read).map_err(|_| "must not be negative".to_owned())
}

impl Arguments {
    /// The election to take part in. A dry run writes nothing, so it takes part in none.
    fn election(&self) -> anyhow::Result<Option<Election>> {
        if !self.leader_elect || self.dry_run {
            return Ok(None);
        }
        let durations = LeaseDurations {
            lease: self.leader_election_lease_duration,
            renew_deadline: self.leader_election_renew_deadline,
            retry_period: self.leader_election_retry_period,
        };
        durations.check(REQUEST_LIMIT)?;
        // As Argo Rollouts names its Lease: one that only analyses has no instance.
        let instance = if self.controllers.is_empty() { &*self.instance_id } else { "" };
        Ok(Some(Election::of_rollouts(&own_namespace(), instance, durations)?))
    }

    fn engines(&self) -> &'static Engines {
        if self.controllers.is_empty() { &GRADUS } else { &ANALYSES }
    }
}

/// Runs the controller until it is asked to end.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.flags.start_logging()?;
    let (election, engines) = (arguments.election()?, arguments.engines());
    arguments.argo.say_unused();
    let job_namespace = job_namespace()?;
    let settings = Settings {
        election,
        scope: Scope {
            instance_id: arguments.instance_id,
            verifies: arguments.aws_verify_target_group,
            job_namespace,
            ..Scope::default()
        },
        balancers: arguments.aws_verify_target_group.then_some(BalancerNames {
            resource_tag: arguments.alb_tag_key_resource_id,
            bindings: arguments.aws_target_group_binding_api_version,
        }),
        places: arguments.argo.places(),
        dry_run: arguments.dry_run,
        interlock: arguments.interlock.into(),
        ..Settings::default()
    };
    let version = env!("CARGO_PKG_VERSION");
    let writes = if arguments.dry_run { ", in a dry run that writes nothing," } else { "" };
    let what = if arguments.controllers.is_empty() { "rollouts" } else { "AnalysisRuns alone" };
    let title = format!("gradus {version} manages {what}{writes}");
    arguments.flags.run(engines, &title, settings)?;
    Ok(ExitCode::SUCCESS)
}

/// Where Jobs of analyses run, as the environment says. Another cluster cannot be named.
fn job_namespace() -> anyhow::Result<Option<String>> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if variable(JOB_KUBECONFIG).is_some() {
        anyhow::bail!("{JOB_KUBECONFIG} is set: Jobs in another cluster are not supported");
    }
    Ok(variable(JOB_NAMESPACE))
}

const JOB_NAMESPACE: &str = "ARGO_ROLLOUTS_ANALYSIS_JOB_NAMESPACE";
const JOB_KUBECONFIG: &str = "ARGO_ROLLOUTS_ANALYSIS_JOB_KUBECONFIG";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_id_is_the_value_of_a_label() {
        for good in ["", "blue", "team-a.2_b"] {
            assert_eq!(label_value(good).as_deref(), Ok(good));
        }
        for bad in ["a b", "a,tier=web", "-a", &"x".repeat(64)] {
            assert!(label_value(bad).is_err(), "{bad}");
        }
    }
}
