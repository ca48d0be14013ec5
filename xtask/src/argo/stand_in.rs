//! What answers where the suite asks the Internet? Three of its manifests name public addresses. In a
//! working copy of the manifests these lead to a server on loopback that answers as they do; the
//! suite itself is not changed.

use std::{
    convert::Infallible,
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinHandle};

/// An address on the Internet, as a manifest writes it, and what is answered in its place.
struct Public {
    /// As it is written; of a Secret, in base64.
    written: &'static str,
    is_base64: bool,
    path: &'static str,
    answer: &'static str,
}

const PUBLIC: [Public; 2] = [
    Public {
        written: "https://dns.google/resolve?name=google.com",
        is_base64: false,
        path: "/resolve",
        answer: r#"{"Status":0,"Question":[{"name":"google.com.","type":1}]}"#,
    },
    Public {
        written: "aHR0cHM6Ly9naXN0LmdpdGh1YnVzZXJjb250ZW50LmNvbS9raGhpcmFuaS8yYWIxMTIzMjQwMjUxOGQ1\
                  Mjc3YWYwMzBkZDg5MTZkNy9yYXcvZDI3MmY1NTFmMmQxODA2YTAzOTc0ZGJhZWYxMWRmZDU1MTAyZmVl\
                  YS9leGFtcGxlLmpzb24=",
        is_base64: true,
        path: "/example.json",
        answer: r#"{"message":"It worked!"}"#,
    },
];

/// Tests whose public address is compiled into them.
pub const NEED_THE_INTERNET: [&str; 1] = ["AnalysisSuite/TestMultipleAnalysis"];

/// A server and the manifests that lead to it. Dropping it ends the server.
#[derive(Debug)]
pub struct StandIn {
    folder: PathBuf,
    server: JoinHandle<()>,
}

impl StandIn {
    /// Starts the server and copies the manifests to a folder.
    pub async fn ready(manifests: &Path, folder: PathBuf) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(serve(listener));
        let stand_in = Self { folder, server };
        let rewritten = copy(manifests, &stand_in.folder, address)?;
        println!("{rewritten} manifests ask http://{address} instead of the Internet");
        Ok(stand_in)
    }

    /// Where the tests run; their manifests are read relative to it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Copies a folder with everything in it; says how many files name another address now.
fn copy(from: &Path, to: &Path, address: SocketAddr) -> io::Result<usize> {
    fs::create_dir_all(to)?;
    let mut rewritten = 0;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            rewritten += copy(&path, &target, address)?;
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let local = rewrite(&text, address);
        rewritten += usize::from(local != text);
        // Written anew: what lies in Go's cache cannot be overwritten, and a copy would inherit that.
        fs::write(&target, local)?;
    }
    Ok(rewritten)
}

fn rewrite(text: &str, address: SocketAddr) -> String {
    PUBLIC.iter().fold(text.to_owned(), |text, public| {
        let local = format!("http://{address}{}", public.path);
        let local = if public.is_base64 { STANDARD.encode(local) } else { local };
        text.replace(public.written, &local)
    })
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
        tokio::spawn(async move {
            drop(connection.await); // A client that goes away is no matter of ours.
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<String>, Infallible> {
    let known = PUBLIC.iter().find(|public| public.path == request.uri().path());
    let mut response = Response::new(known.map_or("", |public| public.answer).to_owned());
    if known.is_none() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    Ok(response)
}

#[test]
fn public_addresses_lead_to_the_server() {
    let address: SocketAddr = "127.0.0.1:4711".parse().unwrap();
    let cases = [
        ("an address", PUBLIC[0].written, "http://127.0.0.1:4711/resolve"),
        // base64 of http://127.0.0.1:4711/example.json
        ("one in a Secret", PUBLIC[1].written, "aHR0cDovLzEyNy4wLjAuMTo0NzExL2V4YW1wbGUuanNvbg=="),
        ("another text", "image: nginx", "image: nginx"),
    ];
    for (what, written, expected) in cases {
        assert_eq!(
            rewrite(&format!("a {written} b"), address),
            format!("a {expected} b"),
            "{what}"
        );
    }
}
