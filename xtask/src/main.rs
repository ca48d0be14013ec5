//! Project tasks: which one is meant, and how did it end?

mod argo;
mod argo_cd;
mod audit;
mod balancers;
mod bench;
mod build;
mod chart;
mod conformance;
mod controller;
mod corpus;
mod crds;
mod dataplane;
mod debian;
mod differential;
mod dist;
mod folder;
mod go_module;
mod interrupt;
mod kubelet;
mod manifests;
mod monitoring;
mod mutants;
mod plane;
mod plugins;
mod ports;
mod process;
mod providers;
mod proxy;
mod real;
mod servers;
mod sim;
mod stage;
mod summary;
mod takeover;
mod test;
mod tidy;
mod usage;

use std::{env, error::Error, path::PathBuf, process::ExitCode};

use summary::Summary;

/// A task that could not be done at all; one that found faults is a [`Summary`].
type Failure = Box<dyn Error + Send + Sync>;

/// One command of `cargo xtask`.
struct Task {
    name: &'static str,
    /// Its arguments, as help shows them.
    arguments: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<Summary, Failure>,
}

/// In the order in which help shows them.
const TASKS: &[Task] = &[
    Task {
        name: "test",
        arguments: "",
        help: "everything below that can fail; what CI runs",
        run: test::run,
    },
    Task {
        name: "tidy",
        arguments: "",
        help: "check lengths, module files, crate arrows, licences and sources",
        run: tidy::run,
    },
    Task {
        name: "conformance",
        arguments: "[--record]",
        help: "compare the embedded cluster with a real API server",
        run: conformance::run,
    },
    Task {
        name: "real",
        arguments: "[--keep] [--crashes | --faults] [NAME…]",
        help: "run the scenarios on a real control plane",
        run: real::run,
    },
    Task {
        name: "dataplane",
        arguments: "[traefik | istio] [ROUTER…]",
        help: "update Rollouts under load behind Traefik, or istiod and Envoy: is a request lost?",
        run: dataplane::run,
    },
    Task {
        name: "balancers",
        arguments: "",
        help: "let moto, which stands in for AWS, say whether a load balancer has its weights",
        run: balancers::run,
    },
    Task {
        name: "argo-e2e",
        arguments: "[NAME…]",
        help: "run Argo Rollouts' own end-to-end suite against our controller",
        run: argo::run,
    },
    Task {
        name: "plugins",
        arguments: "",
        help: "run Argo Rollouts' sample plugins against our host on a real control plane",
        run: plugins::run,
    },
    Task {
        name: "providers",
        arguments: "",
        help: "measure with real metric servers; compare our PromQL with Prometheus",
        run: providers::run,
    },
    Task {
        name: "differential",
        arguments: "[--cases N] [--seed S] [--play FILE] [--program FILE]",
        help: "compare Argo Rollouts and Gradus side by side",
        run: differential::run,
    },
    Task {
        name: "takeover",
        arguments: "[pair | argo]",
        help: "let controllers take over from each other, and from Argo Rollouts and back",
        run: takeover::run,
    },
    Task {
        name: "sim",
        arguments: "[--two] [--seeds N] [--from S] [--seed S] [--scenario X]",
        help: "run many seeds of every scenario with faults, optimised",
        run: sim::run,
    },
    Task {
        name: "mutants",
        arguments: "[--all | --sample N] [--seed S] [PATH…]",
        help: "change the engine deliberately: do the tests notice?",
        run: mutants::run,
    },
    Task {
        name: "bench",
        arguments: "[--json] | --real N[,N…] [--peer] [--default-rate] [--program FILE]",
        help: "measure, with budget and command of each figure; N Rollouts on a real control plane",
        run: bench::run,
    },
    Task {
        name: "soak",
        arguments: "[MINUTES]",
        help: "change Rollouts for ten minutes: do memory or metric series grow?",
        run: bench::soak,
    },
    Task {
        name: "corpus",
        arguments: "expr|jsonpath|yaml FILE",
        help: "compare answers with those of the Go originals in a file",
        run: corpus::run,
    },
    Task {
        name: "crds",
        arguments: "",
        help: "write manifests/crds from the types",
        run: crds::run,
    },
    Task {
        name: "manifests",
        arguments: "",
        help: "write what is installed, from the CRDs, the rights and the workload",
        run: manifests::run,
    },
    Task {
        name: "chart",
        arguments: "",
        help: "compare what Helm renders with the manifests",
        run: chart::run,
    },
    Task {
        name: "argo-manifests",
        arguments: "",
        help: "lint the manifests of Argo Rollouts",
        run: |_| argo::manifests::check(),
    },
    Task {
        name: "argo-cd",
        arguments: "",
        help: "run Argo CD's own health checks and actions on the states of every scenario",
        run: argo_cd::run,
    },
    Task {
        name: "monitoring",
        arguments: "",
        help: "try the alerts with promtool, and the queries of dashboards with Prometheus",
        run: monitoring::run,
    },
    Task {
        name: "dist",
        arguments: "[--twice]",
        help: "make the release folder: program, image, chart, manifests, checksums",
        run: dist::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", help());
        return ExitCode::from(2);
    };
    if ["help", "-h", "--help"].contains(&name.as_str()) {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("cargo xtask {name}: no such task\n\n{}", help());
        return ExitCode::from(2);
    };
    match (task.run)(rest) {
        Ok(summary) => {
            if summary != Summary::default() {
                println!("{summary}");
            }
            ExitCode::from(u8::from(summary.failed != 0))
        }
        Err(error) => {
            eprintln!("cargo xtask {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn help() -> String {
    let mut text = String::from("Tasks of this repository: cargo xtask <task>\n\n");
    for Task { name, arguments, help, .. } in TASKS {
        let usage = format!("{name} {arguments}");
        text.push_str(&format!("  {usage:<50}{help}\n"));
    }
    text
}

/// The root of the work tree.
fn repository() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the repository").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_in_the_documents_is_there() {
        let root = repository();
        let files = tidy::tracked(&root).unwrap();
        let mut named = Vec::new();
        for page in files.iter().filter(|path| path.ends_with(".md")) {
            let text = std::fs::read_to_string(root.join(page)).unwrap();
            for call in text.split("cargo xtask ").skip(1) {
                let call = call.split(['`', '\n']).next().unwrap();
                let mut words = call.split_whitespace();
                let name = words.next().unwrap();
                let task = TASKS.iter().find(|task| task.name == name);
                let task = task.unwrap_or_else(|| panic!("{page}: no task {name}"));
                for option in words.filter(|word| word.starts_with("--")) {
                    assert!(task.arguments.contains(option), "{page}: {name} has no {option}");
                }
                named.push(name.to_owned());
            }
            // What can be run nowhere but outside the tests: to build, and to run them.
            for block in text.split("\n```sh\n").skip(1) {
                for line in block.split("\n```").next().unwrap().lines() {
                    let is_known = line == "cargo build" || line.starts_with("cargo xtask ");
                    assert!(is_known, "{page}: nothing tries {line:?}");
                }
            }
        }
        for Task { name, .. } in TASKS {
            assert!(named.iter().any(|known| known == name), "no document names {name}");
        }
    }
}
