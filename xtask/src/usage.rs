//! What does a process use? Read from /proc, as Linux counts it.

use std::{fs, io, time::Duration};

/// How Linux counts the time of a processor: in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time of a processor, in user and in kernel mode.
    pub cpu: Duration,
    /// Bytes in memory.
    pub resident: u64,
    /// The most there ever were.
    pub peak: u64,
}

impl Usage {
    /// Of a process that runs.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let usage = Self::parse(&stat, &status);
        usage.ok_or_else(|| io::Error::other(format!("/proc/{pid}: expected times and sizes")))
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The name of the program may hold anything; what follows it does not.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut times = fields.split(' ').skip(11);
        let mut ticks = || times.next()?.parse::<u32>().ok();
        let cpu = TICK * (ticks()? + ticks()?);
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
        };
        Some(Self { cpu, resident: bytes("VmRSS:")?, peak: bytes("VmHWM:")? })
    }
}

/// How long all processors of this machine have worked together, for whomever.
pub fn machine_cpu() -> io::Result<Duration> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let times: Vec<u32> =
        line.split_whitespace().skip(1).filter_map(|time| time.parse().ok()).collect();
    // user, nice, system, then idle and waiting for a disk, then interrupts.
    let worked = times.iter().take(3).chain(times.iter().skip(5).take(2)).sum();
    Ok(TICK * worked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_parenthesis_does_no_harm() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 1 1 1\n";
        let status = "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let expected =
            Usage { cpu: Duration::from_secs(2), resident: 1024 * 1024, peak: 2048 * 1024 };
        assert_eq!(Usage::parse(stat, status), Some(expected));
        assert_eq!(Usage::parse("7 (a) S", status), None);
    }

    #[test]
    fn this_process_and_this_machine_use_something() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident > 0 && usage.peak >= usage.resident, "{usage:?}");
        assert!(machine_cpu().unwrap() >= usage.cpu);
    }
}
