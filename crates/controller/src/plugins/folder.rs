//! The working folder of one process of a plugin.

use std::io;
use std::path::{Path, PathBuf};

/// A folder of one process, private and gone with it. Its path is short: sockets need that.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Result<Self, String> {
        use std::os::unix::fs::DirBuilderExt as _;
        let base = std::env::temp_dir();
        for _ in 0..100 {
            let bytes = crate::random::bytes(6).map_err(|error| error.message)?;
            let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = base.join(format!("gradus-{name}"));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Folder(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Err(format!("{}: no free name for a folder", base.display()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            let path = self.0.display().to_string();
            tracing::warn!(path, error = error.to_string(), "a plugin's folder is left behind");
        }
    }
}
