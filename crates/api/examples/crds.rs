//! Writes the CRDs into a folder: `cargo run -p gradus-api --example crds -- manifests/crds`.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(|| "manifests/crds".into(), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    for (name, text) in gradus_api::crd::files() {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}
