//! Where a plugin's program comes from: a file or a download, taken only if it is the one that was
//! configured, kept once, and never written over another.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gradus_engine::ask::http::HttpError;
use gradus_engine::decision::ObjectRef;
use gradus_engine::kinds;
use gradus_goplugin::PluginKind;
use http::header::{HeaderName, HeaderValue, LOCATION, USER_AGENT};
use http::{HeaderMap, Request, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;

use super::config::{Location, PluginEntry};
use crate::cluster::Cluster;

/// The largest program; real ones have 30 to 80 MB.
const SIZE_LIMIT: u64 = 512 << 20;
/// How long a download may take.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(240);
/// As many as Go's own client follows.
const REDIRECTS: usize = 10;

/// How a download is made.
pub(super) struct Way {
    /// What is sent along, to the host that the configuration names and to no other.
    pub headers: HeaderMap,
    /// Whom it trusts, read when there is something to download.
    pub trust: fn() -> Result<ClientConfig, HttpError>,
}

/// The headers of a download: every entry of the Secrets that are named.
pub(super) async fn headers<C: Cluster>(
    cluster: &C,
    namespace: &Arc<str>,
    entry: &PluginEntry,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for name in &entry.headers_from {
        let target = ObjectRef::new(kinds::SECRET, namespace, &name.as_str().into());
        let found = cluster.read_whole(&target).await;
        let found = found.map_err(|error| format!("{target}: {}", error.message))?;
        let secret = found.ok_or_else(|| format!("{target} is not there"))?;
        for (key, value) in secret["data"].as_object().into_iter().flatten() {
            let unfit = || format!("{target}: {key} cannot be a header");
            let value = STANDARD.decode(value.as_str().unwrap_or_default());
            let mut value = HeaderValue::from_bytes(&value.map_err(|_| unfit())?);
            if let Ok(value) = &mut value {
                value.set_sensitive(true);
            }
            let key = HeaderName::from_bytes(key.as_bytes()).map_err(|_| unfit())?;
            headers.append(key, value.map_err(|_| unfit())?);
        }
    }
    Ok(headers)
}

/// The program, verified, in a folder of ours.
pub(super) async fn program(
    folder: &Path,
    kind: PluginKind,
    entry: &PluginEntry,
    way: Way,
) -> Result<PathBuf, String> {
    let folder = std::path::absolute(folder).map_err(|error| failed(folder, &error))?;
    let digits: String = entry.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    let (namespace, name) = entry.name.split_once('/').unwrap_or(("", &entry.name));
    let folder = folder.join(".verified").join(kind.cookie().1).join(namespace);
    let target = folder.join(format!("{name}-{}", &digits[..16]));
    let sha256 = entry.sha256;
    let (kept_in, kept) = (folder.clone(), target.clone());
    let is_there = blocking(move || {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&kept_in);
        made.map_err(|error| failed(&kept_in, &error))?;
        if kept.exists() { is_it(&kept, &sha256) } else { Ok(false) }
    });
    if is_there.await? {
        return Ok(target);
    }
    let part = folder.join(format!(".{name}.{}", std::process::id()));
    let obtained = match &entry.location {
        Location::File(path) => {
            let (path, part) = (path.clone(), part.clone());
            blocking(move || copy(&path, &part)).await
        }
        Location::Https(url) => {
            let loading = download(url, way, &part);
            let loaded = tokio::time::timeout(DOWNLOAD_LIMIT, loading).await;
            loaded.unwrap_or_else(|_| Err(format!("{url}: not loaded within 4 minutes")))
        }
    };
    let location = match &entry.location {
        Location::File(path) => path.display().to_string(),
        Location::Https(url) => url.clone(),
    };
    blocking(move || {
        let placed = obtained.and_then(|()| place(&part, &target, &sha256, &location));
        if let Err(error) = fs::remove_file(&part)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(failed(&part, &error));
        }
        placed.map(|()| target)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Gives a verified file its name; a file that has it already stays.
fn place(part: &Path, target: &Path, sha256: &[u8; 32], location: &str) -> Result<(), String> {
    if verify_slices_are_equal(&digest(part)?, sha256).is_err() {
        return Err(format!(
            "sha256 hash of downloaded plugin ({location}) does not match expected hash"
        ));
    }
    fs::set_permissions(part, Permissions::from_mode(0o500)).map_err(|e| failed(part, &e))?;
    match fs::hard_link(part, target) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            is_it(target, sha256).map(|_| ())
        }
        Err(error) => Err(failed(target, &error)),
    }
}

/// True if the file is the one that was configured; another one is never touched.
fn is_it(target: &Path, sha256: &[u8; 32]) -> Result<bool, String> {
    if verify_slices_are_equal(&digest(target)?, sha256).is_ok() {
        return Ok(true);
    }
    let path = target.display();
    Err(format!("{path} is another file than the one configured: expected its sha256, or no file"))
}

fn digest(path: &Path) -> Result<Vec<u8>, String> {
    let mut file = File::open(path).map_err(|error| failed(path, &error))?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(|error| failed(path, &error))? {
            0 => return Ok(context.finish().as_ref().to_vec()),
            count => context.update(&buffer[..count]),
        }
    }
}

fn copy(from: &Path, part: &Path) -> Result<(), String> {
    let path = std::path::absolute(from).map_err(|error| failed(from, &error))?;
    let found = fs::metadata(&path).map_err(|error| failed(&path, &error))?;
    if !found.is_file() {
        return Err(format!("{}: expected a regular file", path.display()));
    }
    if found.len() > SIZE_LIMIT {
        return Err(too_large(&path.display().to_string()));
    }
    let source = File::open(&path).map_err(|error| failed(&path, &error))?;
    let mut target = create(part)?;
    io::copy(&mut source.take(SIZE_LIMIT), &mut target).map_err(|error| failed(part, &error))?;
    Ok(())
}

fn create(part: &Path) -> Result<File, String> {
    if let Err(error) = fs::remove_file(part)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(failed(part, &error)); // Left by a download that was cut off.
    }
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part);
    created.map_err(|error| failed(part, &error))
}

async fn download(url: &str, way: Way, part: &Path) -> Result<(), String> {
    let trust = (way.trust)().map_err(|error| format!("{url}: {error}"))?;
    let connector = HttpsConnectorBuilder::new().with_tls_config(trust);
    let client: Client<_, Empty<Bytes>> =
        Client::builder(TokioExecutor::new()).build(connector.https_only().enable_http1().build());
    let mut at: Uri = url.parse().map_err(|_| format!("{url}: not a URL"))?;
    let home = at.authority().cloned();
    for _ in 0..=REDIRECTS {
        let mut request = Request::get(at.clone());
        if let Some(all) = request.headers_mut() {
            if at.authority() == home.as_ref() {
                all.clone_from(&way.headers);
            }
            // GitHub's API refuses who does not say what he is.
            all.entry(USER_AGENT).or_insert(HeaderValue::from_static(crate::AGENT));
        }
        let request = request.body(Empty::new()).map_err(|error| format!("{url}: {error}"))?;
        let answer = client.request(request).await;
        let answer = answer.map_err(|error| format!("{url}: {}", whole(&error)))?;
        let status = answer.status();
        let next = answer.headers().get(LOCATION).and_then(|text| text.to_str().ok());
        match next {
            Some(next) if status.is_redirection() => {
                let next = led_to(&at, next);
                at = next.ok_or_else(|| format!("{url}: redirected to no URL"))?;
                continue;
            }
            _ if !status.is_success() => return Err(format!("{url}: HTTP {status}")),
            _ => {}
        }
        let mut file = create(part)?;
        let mut body = answer.into_body();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| format!("{url}: {}", whole(&error)))?;
            let Ok(data) = frame.into_data() else { continue };
            size += data.len() as u64;
            if size > SIZE_LIMIT {
                return Err(too_large(url));
            }
            file.write_all(&data).map_err(|error| failed(part, &error))?;
        }
        return Ok(());
    }
    Err(format!("{url}: more than {REDIRECTS} redirects"))
}

/// Where a redirection leads, which may say no more than a path.
fn led_to(from: &Uri, next: &str) -> Option<Uri> {
    let next = next.parse::<Uri>().ok()?;
    if next.host().is_some() {
        return Some(next);
    }
    let path = next.path_and_query().filter(|path| path.as_str().starts_with('/'))?;
    let mut parts = from.clone().into_parts();
    parts.path_and_query = Some(path.clone());
    Uri::from_parts(parts).ok()
}

/// An error with what is behind it: the first words alone say only that it was one of the client.
fn whole(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

fn too_large(what: &str) -> String {
    format!("{what}: larger than the limit of {} MiB", SIZE_LIMIT >> 20)
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
