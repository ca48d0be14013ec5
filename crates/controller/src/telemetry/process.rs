//! What the metrics say of the process itself, under the names that every Prometheus client uses. Read
//! from `/proc` at each scrape; where there is none, nothing is said.

use std::fs;

use prometheus::{Counter, Gauge, Registry};

use super::register;

/// Clock ticks per second in `/proc`: a constant of the kernel's interface.
const TICKS: f64 = 100.0;

/// The metrics of the process.
pub(super) struct Process {
    start: Gauge,
    cpu: Counter,
    resident: Gauge,
    virtual_memory: Gauge,
    open_files: Gauge,
    most_files: Gauge,
    heap: Gauge,
}

impl Process {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauge = |name: &str, help: &str| register(registry, Gauge::new(name, help));
        let cpu = Counter::new("process_cpu_seconds_total", "CPU time in seconds.");
        Process {
            start: gauge("process_start_time_seconds", "When it began, in seconds since 1970."),
            cpu: register(registry, cpu),
            resident: gauge("process_resident_memory_bytes", "Resident memory."),
            virtual_memory: gauge("process_virtual_memory_bytes", "Virtual memory."),
            open_files: gauge("process_open_fds", "Open file descriptors."),
            most_files: gauge("process_max_fds", "Most file descriptors it may open."),
            heap: gauge(
                "go_memstats_heap_alloc_bytes",
                "Memory of its own, for dashboards that ask so; there is no Go here.",
            ),
        }
    }

    /// Reads the figures of now.
    pub(super) fn look(&self) {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        if let Some(stat) = Stat::of(&read("/proc/self/stat")) {
            self.cpu.inc_by((stat.cpu_ticks / TICKS - self.cpu.get()).max(0.0));
            let booted = booted(&read("/proc/stat"));
            booted.iter().for_each(|at| self.start.set(at + stat.start_ticks / TICKS));
        }
        let status = read("/proc/self/status");
        let sizes = [
            ("VmRSS:", &self.resident),
            ("VmSize:", &self.virtual_memory),
            ("RssAnon:", &self.heap),
        ];
        for (name, gauge) in sizes {
            bytes(&status, name).iter().for_each(|size| gauge.set(*size));
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            self.open_files.set(open.count() as f64);
        }
        let most = limit(&read("/proc/self/limits"));
        most.iter().for_each(|most| self.most_files.set(*most));
    }
}

/// What is read of `/proc/self/stat`.
struct Stat {
    cpu_ticks: f64,
    start_ticks: f64,
}

impl Stat {
    /// The name of the program stands in brackets and may hold anything: fields count from behind it.
    fn of(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some(Stat { cpu_ticks: number(11)? + number(12)?, start_ticks: number(19)? })
    }
}

/// When the machine began, in seconds since 1970.
fn booted(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// A size of `/proc/self/status`, which counts in kB.
fn bytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// The soft limit of open files.
fn limit(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_the_kernel_writes_them() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 2 0 12300 9 9 9";
        let stat = Stat::of(stat).unwrap();
        assert_eq!((stat.cpu_ticks, stat.start_ticks), (300.0, 12_300.0));
        assert_eq!(booted("cpu 1 2\nbtime 1800000000\n"), Some(1_800_000_000.0));
        assert_eq!(bytes("VmSize:\t 10 kB\nVmRSS:\t  2048 kB\n", "VmRSS:"), Some(2_097_152.0));
        assert_eq!(limit("Max open files            1024   4096   files\n"), Some(1_024.0));
        assert!(Stat::of("").is_none() && booted("").is_none() && limit("").is_none());
    }
}
