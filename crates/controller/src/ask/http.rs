//! Sends metric requests: resolves their secrets, checks every address and redirect, keeps limits, and
//! lets no secret into an answer or an error.

#[cfg(test)]
mod tests;
pub(super) mod user;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gradus_engine::ask::http::{Auth, BODY_LIMIT, HttpError, HttpOutcome, HttpReply, HttpRequest};
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue, LOCATION, USER_AGENT,
};
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::address::{AddressPolicy, CheckedResolver};
use super::aws::{self, Credentials, SigningScope, Unsigned, WantedCredentials};
use super::secrets::{Values, cleaned, form_pair};
use super::trust;
use crate::clock::Clock;
use crate::hidden::Hidden;

/// So many requests to one address at once: a provider is asked, not flooded.
const ADDRESS_LIMIT: usize = 8;
/// So many ways of trusting servers are kept with their connections. Each CA is one.
const POOLS_LIMIT: usize = 16;
/// Credentials of so many profiles and roles are kept.
const CREDENTIALS_LIMIT: usize = 64;

type Pool = Client<HttpsConnector<HttpConnector<CheckedResolver>>, Full<Bytes>>;

/// Sends requests. Clones share connections and limits.
#[derive(Clone)]
pub struct HttpClient {
    policy: Arc<AddressPolicy>,
    shared: Arc<Mutex<Shared>>,
    environment: Environment,
}

/// The variables of an environment.
type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("metric requests cannot be sent: {0}")]
pub struct HttpClientError(HttpError);

#[derive(Default)]
struct Shared {
    /// Connections by how servers are trusted.
    pools: BTreeMap<(bool, Option<String>), Pool>,
    /// Requests under way, by address.
    turns: BTreeMap<String, Arc<Semaphore>>,
    /// AWS credentials that have an end, by profile and role.
    credentials: BTreeMap<(String, String), Credentials>,
}

/// A request of the controller itself: no secret of a user is in it, and no redirect is followed.
pub(super) struct PlainRequest<'r> {
    pub(super) method: &'r str,
    pub(super) url: &'r str,
    pub(super) headers: &'r [(&'r str, &'r str)],
    pub(super) body: String,
    pub(super) signing: Option<Signing<'r>>,
}

/// How a request is signed for AWS.
pub(super) struct Signing<'r> {
    pub(super) service: &'r str,
    pub(super) region: &'r str,
    pub(super) credentials: &'r Credentials,
}

/// An answer whose body has yet to be read. Until then its address is busy.
struct Opened {
    response: Response<Incoming>,
    turn: Option<OwnedSemaphorePermit>,
}

/// A request with everything in it; what must not be seen, and what may go to no other host.
struct Ready {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    /// Headers that carry secrets.
    private: Vec<HeaderName>,
}

impl HttpClient {
    /// A client that may reach what the policy permits.
    pub fn new(policy: AddressPolicy) -> Result<Self, HttpClientError> {
        let environment: Environment = Arc::new(variable);
        let client = HttpClient { policy: Arc::new(policy), shared: Arc::default(), environment };
        client.pool(false, None).map_err(HttpClientError)?;
        Ok(client)
    }

    /// Sends a request; what comes back holds no secret that was sent.
    pub(super) async fn send(&self, values: &Values, request: &HttpRequest) -> HttpOutcome {
        let limit = Duration::try_from(request.timeout).unwrap_or_default();
        let mut hidden = values.hidden(request);
        let sending = self.exchange(values, request, &mut hidden);
        let outcome = tokio::time::timeout(limit, sending).await;
        let outcome = outcome.unwrap_or(Err(HttpError::Timeout(request.timeout)));
        cleaned(outcome, &hidden)
    }

    /// Sends a request and follows its redirects, each checked as the first address is.
    async fn exchange(
        &self,
        values: &Values,
        request: &HttpRequest,
        hidden: &mut Hidden,
    ) -> HttpOutcome {
        let ca = request.tls.ca.as_ref().map(|ca| values.resolve(ca)).transpose()?;
        let pool = self.pool(request.tls.insecure, ca)?;
        let mut ready = ready(values, request)?;
        match &request.auth {
            Auth::OAuth2 { .. } => {
                let token = self.token(&pool, values, request).await?;
                hidden.add(&token);
                ready.authorize(&format!("Bearer {token}"))?;
            }
            Auth::SigV4 { service, region, profile, role_arn } => {
                let region = aws::region(values.resolve(region)?, |name| self.variable(name))?;
                let (profile, role) = (values.resolve(profile)?, values.resolve(role_arn)?);
                let wanted = WantedCredentials { profile: &profile, role: &role, region: &region };
                let credentials = self.credentials(&wanted, hidden).await?;
                ready.sign(&Signing { service, region: &region, credentials: &credentials })?;
            }
            Auth::None | Auth::Basic { .. } | Auth::Bearer(_) => {}
        }
        let mut left = request.redirects;
        loop {
            let opened = self.once(&pool, &ready).await?;
            let response = &opened.response;
            let location = response.headers().get(LOCATION).filter(|_| left > 0);
            if !response.status().is_redirection() || location.is_none() {
                return reply(opened).await;
            }
            let location = location.and_then(|text| text.to_str().ok()).unwrap_or_default();
            let next = joined(&ready.uri, location)?;
            ready.redirect(next, response.status().as_u16())?;
            left -= 1;
        }
    }

    /// A request of the controller itself, and its answer.
    pub(super) async fn plain(&self, request: PlainRequest<'_>) -> HttpOutcome {
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers {
            let name: HeaderName = name.parse().map_err(|_| invalid("the name of a header"))?;
            headers.insert(name, header_value(value)?);
        }
        let mut ready = Ready {
            method: request.method.parse().map_err(|_| invalid("the method"))?,
            uri: parsed(request.url)?,
            headers,
            body: Bytes::from(request.body),
            private: Vec::new(),
        };
        if let Some(signing) = &request.signing {
            ready.sign(signing)?;
        }
        reply(self.once(&self.pool(false, None)?, &ready).await?).await
    }

    /// A variable of the controller's environment.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name)
    }

    /// The same in another environment.
    #[cfg(test)]
    pub(super) fn in_environment(
        self,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        HttpClient { environment: Arc::new(environment), ..self }
    }

    /// Credentials that were fetched before.
    pub(super) fn known_credentials(&self, of: &(String, String)) -> Option<Credentials> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.credentials.get(of).cloned()
    }

    /// Keeps credentials that have an end.
    pub(super) fn keep_credentials(&self, of: (String, String), found: Credentials) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.credentials.len() >= CREDENTIALS_LIMIT {
            shared.credentials.pop_first();
        }
        shared.credentials.insert(of, found);
    }

    /// One request to one address that may be reached.
    async fn once(&self, pool: &Pool, ready: &Ready) -> Result<Opened, HttpError> {
        let host = ready.uri.host().unwrap_or_default();
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if literal.is_ok_and(|address| !self.policy.permits(address)) {
            return Err(HttpError::Forbidden(AddressPolicy::refusal(host)));
        }
        let turns = self.turns(ready.uri.authority().map_or("", |authority| authority.as_str()));
        let turn = turns.acquire_owned().await.ok();
        let mut request = Request::new(Full::new(ready.body.clone()));
        *request.method_mut() = ready.method.clone();
        *request.uri_mut() = ready.uri.clone();
        *request.headers_mut() = ready.headers.clone();
        // Some servers refuse whoever does not say who it is. AWS does not sign it.
        let agent = HeaderValue::from_static(crate::AGENT);
        request.headers_mut().entry(USER_AGENT).or_insert(agent);
        let response = pool.request(request).await.map_err(|error| failed(&error))?;
        Ok(Opened { response, turn })
    }

    /// A token of the client-credentials grant: credentials in a header first, then in the form.
    async fn token(
        &self,
        pool: &Pool,
        values: &Values,
        request: &HttpRequest,
    ) -> Result<String, HttpError> {
        let Auth::OAuth2 { token_url, client_id, client_secret, scopes } = &request.auth else {
            return Ok(String::new());
        };
        let (id, secret) = (values.resolve(client_id)?, values.resolve(client_secret)?);
        let scopes: Result<Vec<String>, _> = scopes.iter().map(|one| values.resolve(one)).collect();
        let mut form = vec![("grant_type", "client_credentials".to_owned())];
        form.extend(Some(("scope", scopes?.join(" "))).filter(|(_, scope)| !scope.is_empty()));
        // Its credentials are the client's.
        let (uri, _) = user::apart(parsed(&values.resolve(token_url)?)?)?;
        let own = ready(values, &HttpRequest { auth: Auth::None, ..request.clone() })?;
        let mut ready = Ready { method: Method::POST, uri, body: Bytes::new(), ..own };
        let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        ready.headers.insert(CONTENT_TYPE, form_type);
        let mut last = String::new();
        for in_header in [true, false] {
            let mut fields = form.clone();
            if in_header {
                ready.authorize(&basic(&form_pair(&id, &secret)))?;
            } else {
                ready.headers.remove(AUTHORIZATION);
                fields.push(("client_id", id.clone()));
                fields.push(("client_secret", secret.clone()));
            }
            let text: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
            ready.body = Bytes::from(text.join("&"));
            let answer = reply(self.once(pool, &ready).await?).await?;
            let parsed: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
            match parsed["access_token"].as_str() {
                Some(token) if (200..300).contains(&answer.status) => return Ok(token.to_owned()),
                _ => last = format!("the token endpoint answered with status {}", answer.status),
            }
        }
        Err(HttpError::Auth(last))
    }

    fn turns(&self, address: &str) -> Arc<Semaphore> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        // Whom nobody is waiting for is forgotten.
        shared.turns.retain(|_, turns| Arc::strong_count(turns) > 1);
        let new = || Arc::new(Semaphore::new(ADDRESS_LIMIT));
        Arc::clone(shared.turns.entry(address.to_owned()).or_insert_with(new))
    }

    fn pool(&self, is_insecure: bool, ca: Option<String>) -> Result<Pool, HttpError> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (is_insecure, ca);
        if let Some(pool) = shared.pools.get(&key) {
            return Ok(pool.clone());
        }
        let mut connector = HttpConnector::new_with_resolver(CheckedResolver(self.policy.clone()));
        connector.enforce_http(false);
        let config = trust::config(is_insecure, key.1.as_deref())?;
        let secured = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
        let connector = secured.enable_http1().wrap_connector(connector);
        let pool = Client::builder(TokioExecutor::new()).build(connector);
        if shared.pools.len() >= POOLS_LIMIT {
            shared.pools.pop_first();
        }
        shared.pools.insert(key, pool.clone());
        Ok(pool)
    }
}

impl Ready {
    fn authorize(&mut self, value: &str) -> Result<(), HttpError> {
        self.headers.insert(AUTHORIZATION, header_value(value)?);
        Ok(())
    }

    /// Signs the request with AWS credentials.
    fn sign(&mut self, signing: &Signing<'_>) -> Result<(), HttpError> {
        let Signing { service, region, credentials } = *signing;
        let query = aws::canonical_query(self.uri.query().unwrap_or_default());
        let path = self.uri.path().to_owned();
        let mut parts = self.uri.clone().into_parts();
        let line = if query.is_empty() { path } else { format!("{path}?{query}") };
        parts.path_and_query = Some(line.parse().map_err(|_| invalid("the address"))?);
        self.uri = Uri::from_parts(parts).map_err(|_| invalid("the address"))?;
        let unsigned = Unsigned {
            method: self.method.as_str(),
            uri: &self.uri,
            headers: &self.headers,
            body: &self.body,
        };
        let scope = SigningScope { region, service, now: Clock::system().now() };
        let added = aws::signature(&unsigned, credentials, &scope)?;
        self.private.extend(added.keys().cloned());
        self.headers.extend(added);
        Ok(())
    }

    /// The request that a redirect asks for. To another host goes nothing that only the first one may
    /// know.
    fn redirect(&mut self, next: Uri, status: u16) -> Result<(), HttpError> {
        let place = |uri: &Uri| (uri.scheme().cloned(), uri.authority().cloned());
        if place(&self.uri) != place(&next) {
            let private = std::mem::take(&mut self.private);
            for name in private.iter().chain([&AUTHORIZATION, &COOKIE]) {
                self.headers.remove(name);
            }
        }
        // As browsers and Go do: only 307 and 308 send the same once more.
        if !matches!(status, 307 | 308) && self.method != Method::GET {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(CONTENT_TYPE);
        }
        let (uri, user) = user::apart(next)?;
        if let Some(user) = user {
            self.authorize(&basic(&user))?;
        }
        self.uri = uri;
        Ok(())
    }
}

/// A variable of the controller's environment.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A request with its secrets in place.
fn ready(values: &Values, request: &HttpRequest) -> Result<Ready, HttpError> {
    let mut headers = HeaderMap::new();
    let mut private = Vec::new();
    for (name, text) in &request.headers {
        let name: HeaderName = name
            .parse()
            .map_err(|_| HttpError::Invalid(format!("{name:?} is no name of a header")))?;
        if !text.references().is_empty() {
            private.push(name.clone());
        }
        headers.append(name, header_value(&values.resolve(text)?)?);
    }
    let (uri, user) = user::apart(parsed(&values.resolve(&request.url)?)?)?;
    let mut ready = Ready {
        method: request.method.text().parse().map_err(|_| invalid("the method"))?,
        uri,
        headers,
        body: match &request.body {
            Some(body) => Bytes::from(values.resolve(body)?),
            None => Bytes::new(),
        },
        private,
    };
    // As Go's client does: the header of a request goes before the user of its URL.
    if let Some(user) = user.filter(|_| !ready.headers.contains_key(AUTHORIZATION)) {
        ready.authorize(&basic(&user))?;
    }
    match &request.auth {
        // These need another request first.
        Auth::None | Auth::OAuth2 { .. } | Auth::SigV4 { .. } => {}
        Auth::Basic { user, password } => {
            let (user, password) = (values.resolve(user)?, values.resolve(password)?);
            ready.authorize(&basic(&format!("{user}:{password}")))?;
        }
        Auth::Bearer(token) => ready.authorize(&format!("Bearer {}", values.resolve(token)?))?,
    }
    Ok(ready)
}

fn basic(pair: &str) -> String {
    format!("Basic {}", STANDARD.encode(pair))
}

fn header_value(text: &str) -> Result<HeaderValue, HttpError> {
    let value = HeaderValue::from_str(text).map_err(|_| invalid("the value of a header"))?;
    Ok(value)
}

fn invalid(what: &str) -> HttpError {
    HttpError::Invalid(format!("{what} cannot be sent as it is written"))
}

/// An absolute address that HTTP leads to.
fn parsed(text: &str) -> Result<Uri, HttpError> {
    let uri: Uri = text.parse().map_err(|_| invalid("the address"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
        let text = "the address must begin with http:// or https://";
        return Err(HttpError::Invalid(text.to_owned()));
    }
    Ok(uri)
}

/// Where a redirect leads to, seen from the address that sent it.
fn joined(base: &Uri, location: &str) -> Result<Uri, HttpError> {
    if location.contains("://") {
        return parsed(location);
    }
    let scheme = base.scheme_str().unwrap_or("http");
    let authority = base.authority().map_or("", |authority| authority.as_str());
    if let Some(other) = location.strip_prefix("//") {
        return parsed(&format!("{scheme}://{other}"));
    }
    let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
    let slash = if location.starts_with('/') { "" } else { "/" };
    let folder = if slash.is_empty() { "" } else { folder };
    parsed(&format!("{scheme}://{authority}{folder}{slash}{location}"))
}

async fn reply(opened: Opened) -> HttpOutcome {
    let Opened { response, turn } = opened;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            HttpError::TooLarge
        } else {
            HttpError::Connect(format!("the answer broke off: {error}"))
        }
    })?;
    drop(turn);
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
    Ok(HttpReply {
        status: head.status.as_u16(),
        headers: headers.collect(),
        body: String::from_utf8_lossy(&body.to_bytes()).into(),
    })
}

/// Why a request failed, by what lies at its root.
fn failed(error: &hyper_util::client::legacy::Error) -> HttpError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut last = error.to_string();
    while let Some(one) = cause {
        last = one.to_string();
        if let Some(inner) = one.downcast_ref::<rustls::Error>() {
            return HttpError::Tls(inner.to_string());
        }
        let io = one.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return HttpError::Forbidden(last);
        }
        // What TLS says is wrapped into errors of I/O, whose source is not what they wrap.
        let wrapped = io.and_then(io::Error::get_ref);
        cause = wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| one.source());
    }
    HttpError::Connect(last)
}

/// As the value of a form.
fn encoded(text: &str) -> String {
    gradus_engine::ask::secret::Encoding::Form.apply(text)
}
