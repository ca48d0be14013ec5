//! The page that Prometheus scrapes. What it shows follows from how often it was read.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::Failure;

/// A page that is served until this is dropped.
pub struct Page {
    pub port: u16,
    /// How often it was read.
    pub reads: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

impl Drop for Page {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub async fn serve() -> Result<Page, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let reads = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&reads);
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            // Who hangs up is scraped again.
            answer(stream, &text(number)).await.ok();
        }
    });
    Ok(Page { port, reads, serving })
}

async fn answer(mut stream: TcpStream, body: &str) -> std::io::Result<()> {
    let mut request = vec![0; 8 << 10];
    if stream.read(&mut request).await? == 0 {
        return Ok(());
    }
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).await
}

/// Of 100 requests to `a` 10 fail, of those to `b` none, and `b` begins anew every seventh time.
fn text(number: u64) -> String {
    let anew = number % 7;
    let warm = number * 7 % 13;
    let (ok, bad, fast, most, all) =
        (90 * number, 10 * number, 50 * number, 80 * number, 100 * number);
    let other = 100 * anew;
    format!(
        "# TYPE http_requests_total counter\n\
         http_requests_total{{pod=\"a\",code=\"200\"}} {ok}\n\
         http_requests_total{{pod=\"a\",code=\"500\"}} {bad}\n\
         http_requests_total{{pod=\"b\",code=\"200\"}} {other}\n\
         http_requests_total{{pod=\"b\",code=\"500\"}} 0\n\
         # TYPE latency_seconds histogram\n\
         latency_seconds_bucket{{pod=\"a\",le=\"0.1\"}} {fast}\n\
         latency_seconds_bucket{{pod=\"a\",le=\"0.5\"}} {most}\n\
         latency_seconds_bucket{{pod=\"a\",le=\"+Inf\"}} {all}\n\
         latency_seconds_sum{{pod=\"a\"}} {fast}\n\
         latency_seconds_count{{pod=\"a\"}} {all}\n\
         # TYPE warmth gauge\n\
         warmth{{pod=\"a\"}} {warm}\n\
         warmth{{pod=\"b\"}} {anew}.5\n"
    )
}
