//! `cargo xtask crds`: are the files in `manifests/crds` what the types say?

use std::fs;

use crate::{Failure, repository, summary::Summary};

/// Writes the files that differ, and names them.
pub fn run(_arguments: &[String]) -> Result<Summary, Failure> {
    let folder = repository().join("manifests/crds");
    fs::create_dir_all(&folder)?;
    for (name, text) in gradus_api::crd::files() {
        let path = folder.join(name);
        if fs::read_to_string(&path).is_ok_and(|written| written == text) {
            continue;
        }
        fs::write(&path, text)?;
        println!("written: manifests/crds/{name}");
    }
    Ok(Summary::default())
}
