//! A user and network namespace of our own: pods have addresses there, and nobody needs to be root.

use std::{
    env, fs, io,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use thiserror::Error;

use super::front::{DataPlane, Installed};
use crate::{Failure, folder::Folder, servers::Servers, stage::Programs, summary::Summary};

/// Every address of the pod network answers on the loopback device.
const ENTER: &str = r#"ip link set lo up && ip route add local 10.1.0.0/16 dev lo && exec "$@""#;

/// How the programs under test are told to whoever is inside.
const PROGRAMS: [&str; 2] = ["GRADUS_DATAPLANE_PROGRAM", "GRADUS_DATAPLANE_OPERATOR"];

#[derive(Debug, Error)]
enum RoomError {
    #[error("the run inside the namespace ended without a result: {0}")]
    NoResult(std::process::ExitStatus),
    #[error("{0} is set, but {1} is not: expected both or none")]
    Half(&'static str, &'static str),
}

/// Namespaces can be had here.
pub struct Room(());

/// The programs under test, if we are inside already.
pub fn programs() -> Result<Option<Programs>, Failure> {
    let [program, operator] = PROGRAMS.map(|name| env::var_os(name).map(PathBuf::from));
    match (program, operator) {
        (None, None) => Ok(None),
        (Some(program), Some(operator)) => Ok(Some(Programs { program, operator })),
        (Some(_), None) => Err(RoomError::Half(PROGRAMS[0], PROGRAMS[1]).into()),
        (None, Some(_)) => Err(RoomError::Half(PROGRAMS[1], PROGRAMS[0]).into()),
    }
}

impl Room {
    /// Tries it; says why not where this machine forbids it. What is needed inside must be there.
    pub fn open(_: &Installed, _: &Servers) -> io::Result<Result<Self, String>> {
        let output = match entering("true".as_ref()).output() {
            Ok(output) => output,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Err("expected unshare (util-linux) in PATH".to_owned()));
            }
            Err(error) => return Err(error),
        };
        if output.status.success() {
            return Ok(Ok(Self(())));
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        Ok(Err(format!("no user and network namespace can be had here: {message}")))
    }

    /// Runs this task again inside, and passes on what it prints.
    pub fn run(
        &self,
        programs: &Programs,
        plane: DataPlane,
        names: &[String],
    ) -> Result<Summary, Failure> {
        // A build may have replaced the file of this program since it was started.
        let folder = Folder::create("room")?;
        let program = folder.path().join("xtask");
        fs::copy("/proc/self/exe", &program)?;
        let mut inside = entering(program.as_os_str())
            .args(["dataplane", plane.name()])
            .args(names)
            .env(PROGRAMS[0], &programs.program)
            .env(PROGRAMS[1], &programs.operator)
            .stdout(Stdio::piped())
            .spawn()?;
        let output = inside.stdout.take().expect("its output is a pipe");
        let mut summary = None;
        for line in BufReader::new(output).lines() {
            let line = line?;
            match Summary::parse(&line) {
                Some(found) => summary = Some(found),
                None => println!("{line}"),
            }
        }
        let status = inside.wait()?;
        Ok(summary.ok_or(RoomError::NoResult(status))?)
    }
}

fn entering(program: &std::ffi::OsStr) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", ENTER, "sh"]).arg(program);
    command
}
