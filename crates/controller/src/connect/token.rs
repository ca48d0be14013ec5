//! How does a token that is kept in a file reach every request, also after it was renewed?

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header};
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// A token is read again after this time, so that a renewed one is used before the old one ends.
const READ_AGAIN: Duration = Duration::from_secs(60);

/// Why a request has no token.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("token file {path}: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The file holds something else.
    #[error("token file {path}: not a token: a header cannot carry it")]
    Content {
        /// The file.
        path: PathBuf,
    },
}

/// Puts the token of a file into every request. After a 401 the next request reads it anew.
#[derive(Clone)]
pub(super) struct TokenLayer(Arc<Mutex<TokenFile>>);

impl TokenLayer {
    /// The token of that file; it is read with the first request.
    pub(super) fn new(path: PathBuf) -> Self {
        TokenLayer(Arc::new(Mutex::new(TokenFile { path, known: None })))
    }
}

impl<S> Layer<S> for TokenLayer {
    type Service = WithToken<S>;

    fn layer(&self, inner: S) -> WithToken<S> {
        WithToken { inner, file: Arc::clone(&self.0) }
    }
}

pub(super) struct WithToken<S> {
    inner: S,
    file: Arc<Mutex<TokenFile>>,
}

impl<S, B> Service<Request<Body>> for WithToken<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let token = lock(&self.file).token(Instant::now());
        let sent = match token {
            Ok(token) => {
                request.headers_mut().insert(header::AUTHORIZATION, token);
                Ok(self.inner.call(request))
            }
            Err(error) => Err(error),
        };
        let file = Arc::clone(&self.file);
        Box::pin(async move {
            let response = sent?.await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                lock(&file).known = None;
            }
            Ok(response)
        })
    }
}

struct TokenFile {
    path: PathBuf,
    /// The header as it was read last, and when.
    known: Option<(HeaderValue, Instant)>,
}

impl TokenFile {
    fn token(&mut self, now: Instant) -> Result<HeaderValue, TokenError> {
        if let Some((token, read_at)) = &self.known
            && now < *read_at + READ_AGAIN
        {
            return Ok(token.clone());
        }
        match (read(&self.path), &self.known) {
            (Ok(token), _) => {
                self.known = Some((token.clone(), now));
                Ok(token)
            }
            // The file may be in the middle of its renewal; the server judges the old token.
            (Err(_), Some((token, _))) => Ok(token.clone()),
            (Err(error), None) => Err(error),
        }
    }
}

fn read(path: &Path) -> Result<HeaderValue, TokenError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| TokenError::Read { path: path.to_owned(), reason: error.to_string() })?;
    let content = || TokenError::Content { path: path.to_owned() };
    let token = text.trim();
    if token.is_empty() {
        return Err(content());
    }
    let mut header = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| content())?;
    header.set_sensitive(true);
    Ok(header)
}

fn lock(file: &Mutex<TokenFile>) -> std::sync::MutexGuard<'_, TokenFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}
