//! A shell as readers of the documents have one: `gradus`, kubectl and the files of the repository are
//! found, in a home of its own.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::docs::root;
use crate::found;
use crate::program::folder;

/// A home, and programs that its shell finds.
pub struct Shell {
    pub home: PathBuf,
}

impl Shell {
    /// A shell that finds `gradus` and whatever is put into `~/.local/bin`.
    pub fn open(name: &str) -> Self {
        let home = folder(name);
        for part in ["bin", ".local/bin"] {
            std::fs::create_dir_all(home.join(part)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_gradus"), home.join("bin/gradus")).unwrap();
        for part in ["examples", "manifests"] {
            symlink(root().join(part), home.join(part)).unwrap();
        }
        Shell { home }
    }

    /// One that finds kubectl, too; none where that cannot be had.
    pub fn with_kubectl(name: &str) -> Option<Self> {
        let kubectl = found::kubectl()?;
        let shell = Self::open(name);
        symlink(kubectl, shell.home.join("bin/kubectl")).unwrap();
        Some(shell)
    }

    /// Runs lines up to the first that fails; did all end well, and what did they say?
    pub fn run(&self, lines: &str, kubeconfig: &Path) -> (bool, String) {
        let path = ["bin", ".local/bin"].map(|part| self.home.join(part).display().to_string());
        let path = format!("{}:{}", path.join(":"), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", lines]).current_dir(&self.home).env("PATH", path);
        shell.env("HOME", &self.home).env("KUBECONFIG", kubeconfig);
        let output = shell.env_remove("KUBERNETES_SERVICE_HOST").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), said + &String::from_utf8_lossy(&output.stderr))
    }

    /// Runs lines that must end well; returns what they said.
    pub fn says(&self, lines: &str, kubeconfig: &Path) -> String {
        let (is_good, said) = self.run(lines, kubeconfig);
        assert!(is_good, "{lines}\n{said}");
        said
    }
}
