//! Where does one run keep its files, and who removes them?

use std::{
    io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// A folder of this run alone, removed when dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// `<temporary folder>/gradus-<purpose>-<process>-<number>`.
    pub fn create(purpose: &str) -> io::Result<Self> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("gradus-{purpose}-{}-{number}", process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the logs out of it, so that they can be read when it is gone. Who still writes to one
    /// goes on writing to it.
    pub fn keep_logs(&self) -> io::Result<PathBuf> {
        let mut kept = self.path.clone().into_os_string();
        kept.push("-logs");
        let kept = PathBuf::from(kept);
        std::fs::create_dir_all(&kept)?;
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            if let (Some(name), true) = (path.file_name(), path.extension() == Some("log".as_ref()))
            {
                std::fs::rename(&path, kept.join(name))?;
            }
        }
        Ok(kept)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("{}: could not be removed: {error}", self.path.display());
        }
    }
}

#[test]
fn logs_outlive_it_and_nothing_else_does() {
    let folder = Folder::create("folder-test").unwrap();
    let path = folder.path().to_owned();
    std::fs::write(path.join("controller.log"), "why").unwrap();
    std::fs::write(path.join("tokens.csv"), "secret").unwrap();
    let kept = folder.keep_logs().unwrap();
    drop(folder);
    assert!(!path.exists());
    let names = std::fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["controller.log"]);
    assert_eq!(std::fs::read_to_string(kept.join("controller.log")).unwrap(), "why");
    std::fs::remove_dir_all(kept).unwrap();
}
