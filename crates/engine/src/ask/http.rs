//! A request to a metric provider, and what came of it. The executor sends it, reads the secrets it
//! refers to, enforces the limits, and signs it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::secret::{SecretError, SecretRef, SecretText};

/// The most that is read of an answer, in bytes. Answers are kept in memory until they are measured,
/// and no provider needs more.
pub const BODY_LIMIT: usize = 1 << 20;

/// The most redirects that are followed, as Go's client does.
pub const REDIRECT_LIMIT: u8 = 10;

/// One HTTP request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// How.
    pub method: Method,
    /// Where, absolute.
    pub url: SecretText,
    /// Headers, in order; names are valid, values are checked when they are resolved.
    pub headers: Vec<(String, SecretText)>,
    /// What is sent.
    pub body: Option<SecretText>,
    /// How long the whole exchange may take.
    pub timeout: SignedDuration,
    /// How many redirects are followed; 0 returns the redirect itself.
    pub redirects: u8,
    /// How the server is trusted.
    pub tls: Tls,
    /// How the request is authenticated.
    pub auth: Auth,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
}

/// How a server is trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// Accept any certificate. The executor may refuse that.
    pub insecure: bool,
    /// Certificates (PEM) to trust besides the system's.
    pub ca: Option<SecretText>,
}

/// How a request is authenticated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Auth {
    /// Not at all, or by its own headers.
    #[default]
    None,
    /// With a user and a password.
    Basic {
        /// The user.
        user: SecretText,
        /// The password.
        password: SecretText,
    },
    /// With a token.
    Bearer(SecretText),
    /// With a token that is fetched for this request. The request's own headers are sent to the
    /// token endpoint too. Credentials go into a Basic header first, and into the form if that is
    /// refused.
    OAuth2 {
        /// Where tokens are issued.
        token_url: SecretText,
        /// The client.
        client_id: SecretText,
        /// Its secret.
        client_secret: SecretText,
        /// What the token is for.
        scopes: Vec<SecretText>,
    },
    /// With a signature made of the AWS credentials of the controller.
    SigV4 {
        /// The AWS service, such as `aps` or `monitoring`.
        service: String,
        /// The region; empty means the controller's own.
        region: SecretText,
        /// The profile; empty means the default one.
        profile: SecretText,
        /// The role to assume; empty means none.
        role_arn: SecretText,
    },
}

/// What a server answered. Values of secrets that were sent are replaced by `*****` in it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpReply {
    /// The status code.
    pub status: u16,
    /// The headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body; bytes that are no UTF-8 are replaced.
    pub body: Arc<str>,
}

/// Why there is no answer. The text names no secret.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum HttpError {
    /// It took too long.
    #[error("no answer within {0:#}")]
    Timeout(SignedDuration),
    /// The server cannot be reached, or the connection broke.
    #[error("{0}")]
    Connect(String),
    /// The certificate is not trusted, or TLS failed otherwise.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The address is one that requests may not be sent to.
    #[error("{0}")]
    Forbidden(String),
    /// The answer is larger than [`BODY_LIMIT`].
    #[error("the answer is larger than {BODY_LIMIT} bytes")]
    TooLarge,
    /// The request cannot be sent as it is written.
    #[error("{0}")]
    Invalid(String),
    /// No token or signature was to be had.
    #[error("authentication failed: {0}")]
    Auth(String),
    /// A secret that the request refers to is not there.
    #[error("{0}")]
    Secret(#[from] SecretError),
}

/// What came of a request.
pub type HttpOutcome = Result<HttpReply, HttpError>;

impl HttpRequest {
    /// A GET without anything special.
    pub fn get(url: impl Into<SecretText>, timeout: SignedDuration) -> Self {
        HttpRequest {
            method: Method::Get,
            url: url.into(),
            headers: Vec::new(),
            body: None,
            timeout,
            redirects: REDIRECT_LIMIT,
            tls: Tls::default(),
            auth: Auth::None,
        }
    }

    /// A POST of this body.
    pub fn post(
        url: impl Into<SecretText>,
        body: impl Into<SecretText>,
        timeout: SignedDuration,
    ) -> Self {
        HttpRequest {
            method: Method::Post,
            body: Some(body.into()),
            ..HttpRequest::get(url, timeout)
        }
    }

    /// The same with one more header.
    pub fn header(mut self, name: &str, value: impl Into<SecretText>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// All secrets it refers to, those of fallbacks included.
    pub fn references(&self) -> Vec<&SecretRef> {
        let auth: Vec<&SecretText> = match &self.auth {
            Auth::None => Vec::new(),
            Auth::Basic { user, password } => vec![user, password],
            Auth::Bearer(token) => vec![token],
            Auth::OAuth2 { token_url, client_id, client_secret, scopes } => {
                let mut texts = vec![token_url, client_id, client_secret];
                texts.extend(scopes);
                texts
            }
            Auth::SigV4 { region, profile, role_arn, .. } => vec![region, profile, role_arn],
        };
        let headers = self.headers.iter().map(|(_, value)| value);
        let texts = [&self.url].into_iter().chain(headers).chain(&self.body).chain(&self.tls.ca);
        texts.chain(auth).flat_map(SecretText::references).collect()
    }
}

impl Method {
    /// As it is sent.
    pub fn text(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
        }
    }
}

impl HttpReply {
    /// An answer of this status and body.
    pub fn new(status: u16, body: &str) -> Self {
        HttpReply { status, headers: BTreeMap::new(), body: body.into() }
    }
}

impl fmt::Debug for HttpReply {
    /// The body is not printed: it may be long, and belongs to the user.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpReply({}, {} bytes)", self.status, self.body.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::secret::SecretPlace;
    use super::*;

    #[test]
    fn every_place_for_a_secret_is_named() {
        let secret = |key: &str| SecretText::secret(SecretRef::new(SecretPlace::Own, "s", key));
        let base = HttpRequest {
            tls: Tls { insecure: false, ca: Some(secret("ca")) },
            ..HttpRequest::post(secret("url"), secret("body"), SignedDuration::from_secs(1))
                .header("X-Token", secret("header"))
        };
        let cases = [
            (Auth::None, ""),
            (Auth::Basic { user: secret("user"), password: secret("password") }, "user password"),
            (Auth::Bearer(secret("token")), "token"),
            (
                Auth::OAuth2 {
                    token_url: secret("url"),
                    client_id: secret("id"),
                    client_secret: secret("secret"),
                    scopes: vec![secret("scope")],
                },
                "url id secret scope",
            ),
            (
                Auth::SigV4 {
                    service: "aps".to_owned(),
                    region: secret("region"),
                    profile: secret("profile"),
                    role_arn: secret("role"),
                },
                "region profile role",
            ),
        ];
        for (auth, expected) in cases {
            let request = HttpRequest { auth, ..base.clone() };
            let keys: Vec<&str> = request.references().iter().map(|found| &*found.key).collect();
            let expected = format!("url header body ca {expected}");
            assert_eq!(keys.join(" "), expected.trim_end());
        }
    }

    #[test]
    fn a_reply_is_printed_without_its_body() {
        let printed = format!("{:?}", HttpReply::new(200, "private"));
        assert_eq!(printed, "HttpReply(200, 7 bytes)");
    }
}
