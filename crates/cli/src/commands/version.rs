//! Which build is this?

use clap::Args;

use super::{Caller, PLUGIN};
use crate::output;

/// Print the version
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only the number
    #[arg(long)]
    short: bool,
    /// Further arguments are ignored
    #[arg(hide = true)]
    rest: Vec<String>,
}

/// Prints the version, and the commit where the build knows it. The plugin answers in the form
/// that scripts know from Argo Rollouts'.
pub fn run(arguments: &Arguments, caller: Caller) -> std::io::Result<()> {
    output::print(&BUILD.text(caller, arguments.short))
}

/// What the build script has told.
const BUILD: Build<'static> = Build {
    version: env!("CARGO_PKG_VERSION"),
    tag: option_env!("GRADUS_TAG"),
    commit: option_env!("GRADUS_COMMIT"),
    tree: option_env!("GRADUS_TREE"),
    date: option_env!("GRADUS_DATE"),
    compiler: option_env!("GRADUS_COMPILER"),
};

/// What is known of a build.
#[derive(Clone, Copy, Debug)]
struct Build<'b> {
    version: &'b str,
    /// The tag of its commit.
    tag: Option<&'b str>,
    commit: Option<&'b str>,
    /// `clean`, or `dirty` where files differ from the commit.
    tree: Option<&'b str>,
    /// Of the commit: the same sources make the same binary.
    date: Option<&'b str>,
    compiler: Option<&'b str>,
}

impl Build<'_> {
    fn text(self, caller: Caller, is_short: bool) -> String {
        let known = |value: Option<&str>| value.unwrap_or("unknown").to_owned();
        let version = self.version;
        match (caller, is_short) {
            (Caller::Gradus, true) => format!("{version}\n"),
            (Caller::Gradus, false) => match self.commit {
                Some(_) => format!("gradus {version} ({})\n", self.short_commit()),
                None => format!("gradus {version}\n"),
            },
            (Caller::Kubectl, true) => format!("{PLUGIN}: {}\n", self.full_version()),
            (Caller::Kubectl, false) => format!(
                "{PLUGIN}: {}\n  BuildDate: {}\n  GitCommit: {}\n  GitTreeState: {}\n  \
                 GoVersion: none, this is Gradus\n  Compiler: {}\n  Platform: {}/{}\n",
                self.full_version(),
                known(self.date),
                known(self.commit),
                known(self.tree),
                self.compiler.unwrap_or("rustc"),
                std::env::consts::OS,
                architecture(),
            ),
        }
    }

    /// The tag alone for a tagged commit as it is; else with what tells it apart.
    fn full_version(self) -> String {
        match self.tag {
            Some(tag) if self.tree == Some("clean") => tag.to_owned(),
            _ => format!("v{}+{}", self.version, self.short_commit()),
        }
    }

    fn short_commit(self) -> String {
        let Some(commit) = self.commit else { return "unknown".to_owned() };
        let dirty = if self.tree == Some("dirty") { ".dirty" } else { "" };
        format!("{}{dirty}", commit.get(..7).unwrap_or(commit))
    }
}

/// The architecture by the name that Go gives it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_told_as_far_as_it_is_known() {
        let nothing = Build {
            version: "0.1.0",
            tag: None,
            commit: None,
            tree: None,
            date: None,
            compiler: None,
        };
        let commit = Some("0123456789abcdef");
        let clean = Build { commit, tree: Some("clean"), ..nothing };
        let dirty = Build { commit, tree: Some("dirty"), tag: Some("v0.1.0"), ..nothing };
        let tagged = Build { tag: Some("v0.1.0"), ..clean };
        let table = [
            ("built without git", nothing, "v0.1.0+unknown", "gradus 0.1.0"),
            ("a commit", clean, "v0.1.0+0123456", "gradus 0.1.0 (0123456)"),
            ("with changes", dirty, "v0.1.0+0123456.dirty", "gradus 0.1.0 (0123456.dirty)"),
            ("a tag as it is", tagged, "v0.1.0", "gradus 0.1.0 (0123456)"),
        ];
        for (what, build, plugin, gradus) in table {
            let said = build.text(Caller::Kubectl, true);
            assert_eq!(said, format!("kubectl-argo-rollouts: {plugin}\n"), "{what}");
            assert_eq!(build.text(Caller::Gradus, false), format!("{gradus}\n"), "{what}");
        }
    }
}
