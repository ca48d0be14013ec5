//! The image as an OCI archive, written without Docker: one layer with one static program.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::{DistError, Release, checksum, output};
use crate::{Failure, debian, folder::Folder};

/// Writes `gradus-image-VERSION.tar`, which `skopeo copy oci-archive:…` and `docker load` read.
pub(super) fn write(release: &Release, program: &Path) -> Result<(), Failure> {
    let folder = release.folder.join("image");
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    fs::copy(program, root.join("gradus"))?;
    let plain = folder.join("layer.tar");
    release.tar(&root, &["gradus"], &plain)?;
    let unpacked = checksum(&plain)?;
    let packed = folder.join("layer.tgz");
    release.pack(&root, &["gradus"], &packed)?;
    let layer = stored(&blobs, &fs::read(&packed)?, LAYER)?;
    let created = jiff::Timestamp::from_second(release.epoch.parse()?)?.to_string();
    let config = stored(&blobs, &bytes(&config(&created, &unpacked)), CONFIG)?;
    let manifest =
        json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
    let mut manifest = stored(&blobs, &bytes(&manifest), MANIFEST)?;
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest] });
    fs::write(folder.join("index.json"), bytes(&index))?;
    fs::write(folder.join("oci-layout"), bytes(&json!({ "imageLayoutVersion": "1.0.0" })))?;
    let archive = release.folder.join(format!("gradus-image-{}.tar", release.version));
    release.tar(&folder, &["oci-layout", "index.json", "blobs"], &archive)?;
    fs::remove_dir_all(&folder)?;
    is_an_image(release, &archive, program)
}

/// A program that others have written unpacks the image, which checks every digest, and finds ours.
fn is_an_image(release: &Release, archive: &Path, program: &Path) -> Result<(), Failure> {
    let root = match debian::extracted("umoci") {
        Ok(root) => root,
        Err(error) => {
            println!("  image: not tried: umoci of Debian cannot be had: {error}");
            return Ok(());
        }
    };
    let folder = Folder::create("image")?;
    output(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(folder.path()))?;
    let image = format!("{}:{}", folder.path().display(), release.version);
    let bundle = folder.path().join("bundle");
    let umoci = root.join("usr/bin/umoci");
    output(Command::new(umoci).args(["unpack", "--rootless", "--image", &image]).arg(&bundle))?;
    let runtime: Value = serde_json::from_slice(&fs::read(bundle.join("config.json"))?)?;
    let found = (checksum(&bundle.join("rootfs/gradus"))?, &runtime["process"]["args"]);
    let expected = (checksum(program)?, &json!(["/gradus", "controller"]));
    if found != expected {
        let message = format!("expected {expected:?} in the image, found {found:?}");
        return Err(DistError::Tool { program: "umoci".to_owned(), message }.into());
    }
    println!("  image: umoci unpacks it, with the program and its arguments");
    Ok(())
}

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// As the Dockerfile says: nobody's user, no shell, the controller by default.
fn config(created: &str, layer: &str) -> Value {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "created": created, "architecture": architecture, "os": "linux",
        "config": { "User": "65532:65532", "Entrypoint": ["/gradus"], "Cmd": ["controller"] },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
    })
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Keeps a blob under its checksum; returns how others refer to it.
fn stored(blobs: &Path, blob: &[u8], kind: &str) -> Result<Value, Failure> {
    let partial = blobs.join("partial");
    fs::write(&partial, blob)?;
    let sum = checksum(&partial)?;
    fs::rename(&partial, blobs.join(&sum))?;
    Ok(json!({ "mediaType": kind, "digest": format!("sha256:{sum}"), "size": blob.len() }))
}
