//! How do others find the demo's cluster? By a kubeconfig in the current folder, one for each demo.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

/// How many demos may run in one folder: more than anybody looks at.
const MOST: usize = 100;

/// How long a server on this machine may take to accept a connection.
const PATIENCE: Duration = Duration::from_millis(200);

/// A file that is removed with its demo, unless it has become somebody else's.
pub struct Kubeconfig {
    path: PathBuf,
    text: String,
    /// Demos that were there before it, each with a file of its own.
    others: usize,
}

impl Kubeconfig {
    /// Writes it under the first name that no running demo uses.
    pub fn write(folder: &Path, text: String) -> io::Result<Self> {
        for others in 0..MOST {
            let path = folder.join(name(others));
            let made = OpenOptions::new().write(true).create_new(true).open(&path);
            match made {
                Ok(mut file) => file.write_all(text.as_bytes())?,
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                Err(_) if is_used(&path) => continue,
                // Left behind by a demo that could not tidy up.
                Err(_) => fs::write(&path, &text)?,
            }
            return Ok(Kubeconfig { path, text, others });
        }
        Err(io::Error::other(format!("{MOST} demos run here already")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the demo that was here first, if this is not the only one.
    pub fn first_other(&self) -> Option<String> {
        (self.others > 0).then(|| name(0))
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let is_ours = fs::read_to_string(&self.path).is_ok_and(|text| text == self.text);
        if !is_ours {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            eprintln!("cannot remove {}: {error}", self.path.display());
        }
    }
}

fn name(others: usize) -> String {
    match others {
        0 => "gradus-demo.kubeconfig".to_owned(),
        others => format!("gradus-demo-{}.kubeconfig", others + 1),
    }
}

/// Does the server that it names listen?
fn is_used(path: &Path) -> bool {
    let address = || -> Option<SocketAddr> {
        let config: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        let server = config["clusters"][0]["cluster"]["server"].as_str()?;
        server.strip_prefix("http://")?.parse().ok()
    };
    address().is_some_and(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;

    fn text(address: SocketAddr) -> String {
        json!({"clusters": [{"cluster": {"server": format!("http://{address}")}}]}).to_string()
    }

    #[test]
    fn demos_in_one_folder_do_not_touch_each_others_files() {
        let folder = std::env::temp_dir().join(format!("gradus-folder-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (one, other) = (listen(), listen());
        let first = Kubeconfig::write(&folder, text(one.local_addr().unwrap())).unwrap();
        assert_eq!((first.path(), first.first_other()), (folder.join(name(0)).as_path(), None));
        let second = Kubeconfig::write(&folder, text(other.local_addr().unwrap())).unwrap();
        assert!(second.path().ends_with("gradus-demo-2.kubeconfig"));
        assert_eq!(second.first_other(), Some(name(0)), "so that a person can be told");
        drop(second);
        assert!(first.path().exists() && !folder.join(name(1)).exists());

        // The first is killed and leaves its file; the next takes it over.
        drop(one);
        let third = Kubeconfig::write(&folder, text(other.local_addr().unwrap())).unwrap();
        assert_eq!(third.path(), first.path());
        drop(first);
        assert!(third.path().exists(), "it is no longer the first one's to remove");
        drop(third);
        fs::remove_dir(&folder).unwrap();
    }
}
