//! What the process of a plugin finds, and how much it may take.

use std::ffi::OsString;
use std::path::Path;

use gradus_goplugin::PluginKind;
use tokio::process::Child;

use super::config::PluginEntry;
use super::lines;

/// The most data of a plugin, in bytes, where the system does not leave the controller less.
const DATA_LIMIT: u64 = 1 << 30;

/// What go-plugin needs, what our own protocol needs, and what the configuration lists.
pub(super) fn environment(
    kind: PluginKind,
    entry: &PluginEntry,
    folder: &Path,
) -> Vec<(OsString, OsString)> {
    let (cookie, value) = kind.cookie();
    let mut all: Vec<(OsString, OsString)> = [
        (cookie, value),
        ("PLUGIN_MIN_PORT", "10000"),
        ("PLUGIN_MAX_PORT", "25000"),
        ("PLUGIN_PROTOCOL_VERSIONS", "1"),
        ("GRADUS_PLUGIN_VERSIONS", "1"),
        ("GRADUS_PLUGIN_KIND", lines::name_of(kind)),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec();
    all.push(("TMPDIR".into(), folder.into()));
    all.push(("HOME".into(), folder.into()));
    for (name, value) in &entry.env {
        let value = value.as_ref().map(OsString::from).or_else(|| std::env::var_os(name));
        all.extend(value.map(|value| (name.into(), value)));
    }
    all
}

/// Memory, files and their size are limited where the system can do so.
pub(super) fn restrict(child: &Child) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let limits = [
            (Resource::Data, data_limit()),
            (Resource::Fsize, 256 << 20),
            (Resource::Nofile, 1024),
            (Resource::Core, 0),
        ];
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        // Without an id the limits would be our own.
        let Some(id) = id else { return };
        for (resource, limit) in limits {
            let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
            if let Err(error) = prlimit(Some(id), resource, limit) {
                tracing::warn!(error = error.to_string(), "a plugin runs without a limit");
            }
        }
    }
}

/// How much data a plugin may have. Half of what the container may use: where a container has more
/// than it may, the kernel ends all of its processes, the controller among them.
pub(super) fn data_limit() -> u64 {
    let said = std::fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    part_of_container(&said)
}

fn part_of_container(limit: &str) -> u64 {
    // Where there is no limit, it reads `max`.
    let half = limit.trim().parse::<u64>().map_or(u64::MAX, |limit| limit / 2);
    half.min(DATA_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_has_at_most_half_of_what_the_container_may_use() {
        let cases = [
            ("", 1 << 30),
            ("max\n", 1 << 30),
            ("536870912\n", 256 << 20),
            ("8589934592", 1 << 30),
        ];
        for (limit, expected) in cases {
            assert_eq!(part_of_container(limit), expected, "{limit:?}");
        }
    }
}
