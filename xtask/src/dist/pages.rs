//! Completions for shells, and the manual page, which is what `--help` says.

use std::{fs, path::Path, process::Command};

use super::{Release, output};
use crate::Failure;

const SHELLS: [(&str, &str); 4] = [
    ("bash", "gradus.bash"),
    ("zsh", "_gradus"),
    ("fish", "gradus.fish"),
    ("powershell", "gradus.ps1"),
];

/// Writes one file per shell, and `gradus.1`.
pub(super) fn write(release: &Release, program: &Path) -> Result<(), Failure> {
    for (shell, name) in SHELLS {
        let script = output(Command::new(program).args(["completion", shell]))?;
        fs::write(release.folder.join(name), script.stdout)?;
    }
    let help = |command: &str| -> Result<String, Failure> {
        let mut called = Command::new(program);
        let called = if command.is_empty() { &mut called } else { called.arg(command) };
        Ok(String::from_utf8(output(called.arg("--help"))?.stdout)?)
    };
    let whole = help("")?;
    let mut sections = vec![("DESCRIPTION".to_owned(), whole.clone())];
    for command in commands(&whole).into_iter().filter(|command| command != "help") {
        sections.push((format!("GRADUS {}", command.to_uppercase()), help(&command)?));
    }
    let date =
        jiff::Timestamp::from_second(release.epoch.parse()?)?.strftime("%Y-%m-%d").to_string();
    let page = page(release.version, &date, &sections);
    Ok(fs::write(release.folder.join("gradus.1"), page)?)
}

/// The commands that `--help` lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// A page of troff: each section as it was printed.
fn page(version: &str, date: &str, sections: &[(String, String)]) -> String {
    let mut text = format!(
        ".TH GRADUS 1 {date} \"gradus {version}\" \"User Commands\"\n.SH NAME\ngradus \\- progressive \
         delivery for Kubernetes, with the API of Argo Rollouts\n"
    );
    for (title, body) in sections {
        text.push_str(&format!(".SH \"{title}\"\n.nf\n"));
        for line in body.lines() {
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            // A line that begins with a dot or a quote would be a command.
            let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            text.push_str(&format!("{guard}{line}\n"));
        }
        text.push_str(".fi\n");
    }
    text
}

#[test]
fn a_page_shows_each_command_as_it_was_printed() {
    let help = "Text\n\nCommands:\n  abort  Stop\n  demo   Show\n         more\n\nOptions:\n  -h\n";
    assert_eq!(commands(help), ["abort", "demo"]);
    let page = page("1.0", "2026-11-18", &[("DESCRIPTION".into(), ".x\n  --help\\".into())]);
    assert!(page.contains("\\&.x\n  \\-\\-help\\e\n"), "{page}");
}
