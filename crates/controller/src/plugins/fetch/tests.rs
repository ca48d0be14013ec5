//! Downloads from a server of the test: what is taken, what is refused, and who hears the headers.

use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A certificate of 127.0.0.1 and its key.
const PEM: &[u8] = include_bytes!("../../ask/tests/untrusted.pem");
const PROGRAM: &[u8] = b"#!/bin/sh\nexit 0\n";

/// Trust in the server of the test.
fn trusting() -> Result<ClientConfig, HttpError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(PEM).map(Result::unwrap));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::pem_slice_iter(PEM).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(PEM).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
}

/// A server, and the requests it has heard.
struct Server {
    host: String,
    heard: Arc<Mutex<Vec<String>>>,
}

/// Answers by the path; `/away` leads to another host.
async fn serve(away: String) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, log, away) = (acceptor(), Arc::clone(&log), away.clone());
            tokio::spawn(async move {
                // Who does not trust us hangs up.
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut request = vec![0; 16 << 10];
                let count = stream.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..count]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                log.lock().unwrap().push(request);
                let moved = |to: &str| (format!("302 Found\r\nlocation: {to}"), &b""[..], 0);
                let (status, body, missing) = match path.as_str() {
                    "/check" => ("200 OK".to_owned(), PROGRAM, 0),
                    "/cut" => ("200 OK".to_owned(), PROGRAM, 1000),
                    "/moved" => moved("/check"),
                    "/again" => moved("/again"),
                    "/open" => moved("http://127.0.0.1:1/check"),
                    "/away" => moved(&format!("https://{away}/check")),
                    _ => ("404 Not Found".to_owned(), &b"no"[..], 0),
                };
                let length = body.len() + missing;
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                stream.write_all(&[head.as_bytes(), body].concat()).await.ok();
                stream.shutdown().await.ok();
            });
        }
    });
    Server { host, heard }
}

fn entry(server: &Server, path: &str) -> PluginEntry {
    let digest = aws_lc_rs::digest::digest(&SHA256, PROGRAM);
    PluginEntry {
        name: "example/check".to_owned(),
        location: Location::Https(format!("https://{}{path}", server.host)),
        sha256: digest.as_ref().try_into().unwrap(),
        args: Vec::new(),
        env: Vec::new(),
        headers_from: Vec::new(),
        is_disabled: false,
        timeout: Duration::from_secs(1),
    }
}

fn way(trust: fn() -> Result<ClientConfig, HttpError>) -> Way {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer of-the-test"));
    Way { headers, trust }
}

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("gradus-fetch-{name}-{}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[tokio::test]
async fn a_program_is_downloaded_once_and_its_headers_go_to_no_other_host() {
    let other = serve(String::new()).await;
    let server = serve(other.host.clone()).await;
    let folder = Folder::new("once");
    for _ in 0..3 {
        let entry = entry(&server, "/check");
        let found = program(&folder.0, PluginKind::Step, &entry, way(trusting)).await.unwrap();
        assert_eq!(fs::read(&found).unwrap(), PROGRAM);
    }
    let said = server.heard.lock().unwrap().clone();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("Bearer of-the-test"), "{said:?}");
    for (path, folder) in [("/moved", "moved"), ("/away", "away")] {
        let folder = Folder::new(folder);
        let entry = entry(&server, path);
        let found = program(&folder.0, PluginKind::Step, &entry, way(trusting)).await.unwrap();
        assert_eq!(fs::read(&found).unwrap(), PROGRAM, "{path}");
    }
    let said = other.heard.lock().unwrap().clone();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(!said[0].contains("of-the-test"), "another host: {said:?}");
    assert!(said[0].contains("user-agent: gradus/"), "every host: {said:?}");
}

#[tokio::test]
async fn what_is_not_the_program_is_refused_and_nothing_of_it_is_kept() {
    let server = serve(String::new()).await;
    let cases: [(&str, fn() -> _, &str); 6] = [
        ("/missing", trusting, "HTTP 404 Not Found"),
        ("/again", trusting, "more than 10 redirects"),
        ("/open", trusting, "unsupported scheme http"),
        ("/cut", trusting, "end of file before message length reached"),
        ("/away", trusting, "redirected to no URL"),
        ("/check", crate::ask::system_trust, "invalid peer certificate: UnknownIssuer"),
    ];
    for (path, trust, expected) in cases {
        let folder = Folder::new("refused");
        let entry = entry(&server, path);
        let said = program(&folder.0, PluginKind::Step, &entry, way(trust)).await.unwrap_err();
        assert!(said.contains(expected), "{path}: {said}");
        let kept = fs::read_dir(folder.0.join(".verified/step/example")).unwrap();
        assert_eq!(kept.count(), 0, "{path}");
    }
    let folder = Folder::new("other");
    let other = PluginEntry { sha256: [7; 32], ..entry(&server, "/check") };
    let said = program(&folder.0, PluginKind::Step, &other, way(trusting)).await.unwrap_err();
    assert!(said.ends_with("/check) does not match expected hash"), "{said}");
    let kept = fs::read_dir(folder.0.join(".verified/step/example")).unwrap();
    assert_eq!(kept.count(), 0, "what has another digest is not kept");
}
