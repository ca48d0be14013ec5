//! The binary under the name by which kubectl calls it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Finished, Running, finish, folder};

/// The plugin, and the cluster it speaks to.
pub struct Plugin {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Plugin {
    /// The plugin in a folder of its own; without a cluster the kubeconfig leads nowhere.
    pub fn install(name: &str, kubeconfig: &Path) -> Self {
        let program = folder(&format!("{name}-plugin")).join("kubectl-argo-rollouts");
        symlink(env!("CARGO_BIN_EXE_gradus"), &program).unwrap();
        Plugin { program, kubeconfig: kubeconfig.to_owned() }
    }

    /// The folder that holds it.
    pub fn folder(&self) -> &Path {
        self.program.parent().unwrap()
    }

    /// A call with these words.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words.split_whitespace());
        command.env_remove("KUBERNETES_SERVICE_HOST").env_remove("NO_COLOR");
        command.env("KUBECONFIG", &self.kubeconfig).env("TERM", "xterm");
        command
    }

    /// Runs it to its end.
    pub fn run(&self, words: &str) -> Finished {
        finish(self.command(words))
    }

    /// Runs it to its end, which must be a good one; returns what it said.
    pub fn says(&self, words: &str) -> String {
        let finished = self.run(words);
        assert_eq!(finished.code, Some(0), "{words}: {}", finished.stderr);
        finished.stdout
    }

    /// Starts it.
    pub fn start(&self, words: &str) -> Running {
        Running::start(self.command(words))
    }
}
