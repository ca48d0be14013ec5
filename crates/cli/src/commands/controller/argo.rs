//! Flags of Argo Rollouts' controller that change nothing here, and those that say in which version the
//! kinds of routers are. The former are accepted, so that the arguments of an installation need not be
//! edited, and each that is set is said once at start.
//!
//! One whose value asks for something this version does not do is refused: who sets it relies on it.

mod versions;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use gradus_controller::connect::ServedKinds;
use gradus_controller::telemetry::inform;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Number,
    Truth,
    Text,
    /// May be given several times, or separated by commas.
    List,
}

/// What becomes of a value that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Nothing, and why not.
    None(&'static str),
    /// The default alone can be had, and what another would ask for.
    OnlyDefault(&'static str),
    /// It says in which version, or in which group, kinds of this router are.
    Version(&'static str),
}

/// One flag.
#[derive(Clone, Copy, Debug)]
struct Flag {
    name: &'static str,
    takes: Takes,
    default: &'static str,
    meaning: Meaning,
}

const THREADS: &str = "one thread decides, and any number of writes are under way at once";
const BY_NAME: &str = "Ingresses are found by the names that Rollouts give, whatever their class";

const fn flag(name: &'static str, takes: Takes, default: &'static str, meaning: Meaning) -> Flag {
    Flag { name, takes, default, meaning }
}

/// In the order of their names.
const FLAGS: [Flag; 19] = {
    use Meaning::{None as Unused, OnlyDefault, Version};
    use Takes::{List, Number, Text, Truth};
    [
        flag("alb-ingress-classes", List, "alb", Unused(BY_NAME)),
        flag("ambassador-api-version", Text, "getambassador.io/v2", Version("Mappings")),
        flag("analysis-threads", Number, "30", Unused(THREADS)),
        flag("appmesh-crd-version", Text, "v1beta2", Version("the kinds of App Mesh")),
        flag("enable-pprof-address", Text, "", Unused("there are no profiles of Go to serve")),
        flag("ephemeral-metadata-threads", Number, "10", Unused(THREADS)),
        flag(
            "ephemeral-metadata-update-pod-retries",
            Number,
            "3",
            Unused("a pod that could not be changed is tried again until it is"),
        ),
        flag("experiment-threads", Number, "10", Unused(THREADS)),
        flag(
            "ingress-api-version",
            Text,
            "",
            Unused("Ingresses are those of networking.k8s.io/v1"),
        ),
        flag("ingress-threads", Number, "10", Unused(THREADS)),
        flag(
            "istio-api-version",
            Text,
            "v1alpha3",
            Version("VirtualServices and DestinationRules"),
        ),
        flag("nginx-ingress-classes", List, "nginx", Unused(BY_NAME)),
        flag(
            "rollout-resync",
            Number,
            "900",
            Unused("what changes is seen when it does, so nothing is resynced"),
        ),
        flag("rollout-threads", Number, "10", Unused(THREADS)),
        flag(
            "self-service-notification-enabled",
            Truth,
            "false",
            OnlyDefault("notifications that a namespace configures"),
        ),
        flag("service-threads", Number, "10", Unused(THREADS)),
        flag("traefik-api-group", Text, "traefik.io", Version("TraefikServices")),
        flag("traefik-api-version", Text, "traefik.io/v1alpha1", Version("TraefikServices")),
        flag("traffic-split-api-version", Text, "v1alpha1", Version("TrafficSplits")),
    ]
};

/// The flags of this kind that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgoFlags {
    /// Each with why it has no effect.
    unused: Vec<(&'static str, &'static str)>,
    /// Where kinds of routers are, if not where they usually are.
    places: ServedKinds,
}

impl ArgoFlags {
    /// Says of each, once, that it has no effect and why.
    pub fn say_unused(&self) {
        for (flag, why) in &self.unused {
            inform(&format!("--{flag} has no effect: {why}"));
        }
    }

    /// Where kinds of routers are, if not where they usually are.
    pub fn places(&self) -> ServedKinds {
        self.places.clone()
    }
}

impl Args for ArgoFlags {
    fn augment_args(command: Command) -> Command {
        FLAGS.into_iter().fold(command, |command, flag| command.arg(argument(flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(flag: Flag) -> Arg {
    let help = match flag.meaning {
        Meaning::None(why) => format!("Accepted without effect: {why}"),
        Meaning::OnlyDefault(what) => format!("No value but the default is supported: {what}"),
        Meaning::Version(what) => format!("The version of {what}, or their group"),
    };
    let argument = Arg::new(flag.name).long(flag.name).help(help).hide_short_help(true);
    let argument = argument.default_value(flag.default).hide_possible_values(true);
    match flag.takes {
        Takes::Number => argument.value_name("NUMBER").value_parser(clap::value_parser!(i64)),
        Takes::Text => argument.value_name("TEXT"),
        Takes::List => argument.value_name("NAMES").value_delimiter(',').action(ArgAction::Append),
        Takes::Truth => argument
            .value_name("BOOL")
            .value_parser(clap::value_parser!(bool))
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
    }
}

impl FromArgMatches for ArgoFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = ArgoFlags::default();
        for flag in FLAGS {
            if matches.value_source(flag.name) != Some(ValueSource::CommandLine) {
                continue;
            }
            match flag.meaning {
                Meaning::None(why) => flags.unused.push((flag.name, why)),
                Meaning::OnlyDefault(_) if given(matches, flag.name) == flag.default => {}
                Meaning::OnlyDefault(what) => return Err(refused(flag, what)),
                Meaning::Version(_) => {
                    let value = given(matches, flag.name);
                    versions::note(&mut flags.places, flag.name, &value).map_err(|wrong| {
                        let text = format!("--{}: {wrong}\n", flag.name);
                        clap::Error::raw(clap::error::ErrorKind::InvalidValue, text)
                    })?;
                }
            }
        }
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The value as it was written.
fn given(matches: &ArgMatches, name: &str) -> String {
    let mut values = matches.get_raw(name).into_iter().flatten();
    values.next_back().map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
}

fn refused(flag: Flag, what: &str) -> clap::Error {
    let Flag { name, default, .. } = flag;
    clap::Error::raw(
        clap::error::ErrorKind::InvalidValue,
        format!(
            "--{name} asks for {what}, which this version of Gradus does not have; leave it out \
             or set it to {default}\n"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<ArgoFlags, clap::Error> {
        let command = ArgoFlags::augment_args(Command::new("controller"));
        let matches = command.try_get_matches_from([&["controller"], words].concat())?;
        ArgoFlags::from_arg_matches(&matches)
    }

    #[test]
    fn what_has_no_effect_is_said_only_where_it_is_set() {
        let names = |words: &[&str]| {
            let unused = parse(words).unwrap().unused.into_iter();
            unused.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), Vec::<&str>::new());
        assert_eq!(names(&["--rollout-threads=4", "--rollout-resync", "60"]).len(), 2);
        assert_eq!(names(&["--alb-ingress-classes=a,b", "--alb-ingress-classes", "c"]).len(), 1);
        let defaults =
            ["--traefik-api-group=traefik.io", "--self-service-notification-enabled=false"];
        assert_eq!(names(&defaults), Vec::<&str>::new());
    }

    #[test]
    fn what_asks_for_more_than_there_is_is_refused_by_name() {
        let cases = [
            ("--self-service-notification-enabled=true", "notifications that a namespace"),
            (
                "--traffic-split-api-version=v1alpha4",
                "--traffic-split-api-version: Unsupported TrafficSplit API version `v1alpha4`",
            ),
            ("--rollout-threads=many", "invalid value 'many'"),
        ];
        for (word, expected) in cases {
            let error = parse(&[word]).unwrap_err().to_string();
            assert!(error.contains(expected), "{word}: {error}");
        }
    }
}
