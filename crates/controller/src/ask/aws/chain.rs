//! Where the controller's AWS credentials come from, in the order of AWS' own clients: the environment, a
//! web identity (IRSA), a profile, the container (Pod Identity, ECS), the machine (EC2). Roles are assumed
//! from there. What has an end is kept until shortly before it.

use std::fs;
use std::time::Duration;

use gradus_engine::ask::http::{HttpError, HttpReply};
use gradus_engine::ask::secret::Encoding;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::super::address::{AddressPolicy, Network};
use super::super::http::{HttpClient, PlainRequest, Signing};
use super::super::xml::Element;
use super::Credentials;
use super::profile::{Profiles, Role, Start};
use crate::clock::Clock;
use crate::hidden::Hidden;

/// The version of the API that gives roles.
const VERSION: &str = "2011-06-15";
/// What a session is called where nobody says so.
const SESSION: &str = "gradus";
/// Credentials are fetched anew so long before they end.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);
/// How long the container or the machine may take: where there is none, nobody answers.
const NEARBY: Duration = Duration::from_secs(2);
/// Where a container's credentials are served.
const CONTAINER: &str = "http://169.254.170.2";
/// Where a machine's credentials are served.
const MACHINE: &str = "http://169.254.169.254";
/// Hosts that a container's token may be sent to without TLS.
const NEARBY_HOSTS: [&str; 4] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "localhost"];

/// Whose credentials are wanted.
pub(in crate::ask) struct WantedCredentials<'w> {
    /// The profile; empty for none.
    pub profile: &'w str,
    /// The role that is assumed; empty for none.
    pub role: &'w str,
    /// Where.
    pub region: &'w str,
}

impl HttpClient {
    /// The credentials that are wanted; `hidden` takes in what nobody may see.
    pub(in crate::ask) async fn credentials(
        &self,
        wanted: &WantedCredentials<'_>,
        hidden: &mut Hidden,
    ) -> Result<Credentials, HttpError> {
        let WantedCredentials { profile, role, region } = *wanted;
        let key = (profile.to_owned(), role.to_owned());
        let is_fresh = |found: &Credentials| {
            found.expires.is_none_or(|end| Clock::system().now() + MARGIN < end)
        };
        let known = self.known_credentials(&key).filter(is_fresh);
        let found = match known {
            Some(known) => known,
            None => {
                let mut search = Search { http: self, region, hidden };
                let mut found = search.own(profile).await?;
                if !role.is_empty() {
                    let role = Role { arn: role.to_owned(), ..Role::default() };
                    found = search.assumed(&found, &role).await?;
                }
                if found.expires.is_some() {
                    self.keep_credentials(key, found.clone());
                }
                found
            }
        };
        hidden.join(Hidden::of(found.hidden().cloned()));
        Ok(found)
    }
}

/// One search.
struct Search<'s> {
    http: &'s HttpClient,
    region: &'s str,
    hidden: &'s mut Hidden,
}

fn fault(message: impl Into<String>) -> HttpError {
    HttpError::Auth(message.into())
}

impl Search<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.http.variable(name).filter(|value| !value.is_empty())
    }

    /// The credentials of a profile, or the first that there are.
    async fn own(&mut self, profile: &str) -> Result<Credentials, HttpError> {
        if profile.is_empty() {
            if let Some(found) = Credentials::of_environment(|name| self.variable(name)) {
                return Ok(found);
            }
            let named =
                (self.variable("AWS_WEB_IDENTITY_TOKEN_FILE"), self.variable("AWS_ROLE_ARN"));
            if let (Some(file), Some(arn)) = named {
                let session = self.variable("AWS_ROLE_SESSION_NAME").unwrap_or_default();
                let role = Role { arn, session, ..Role::default() };
                return self.web_identity(&file, &role).await;
            }
        }
        let profiles = Profiles::read(|name| self.variable(name));
        let named = Some(profile.to_owned()).filter(|name| !name.is_empty());
        let named = named.or_else(|| self.variable("AWS_PROFILE"));
        let name = named.clone().unwrap_or_else(|| "default".to_owned());
        if named.is_none() && !profiles.has(&name) {
            return self.begin(&Start::Surroundings).await;
        }
        let (start, roles) = profiles.follow(&name).map_err(fault)?;
        let mut found = self.begin(&start).await?;
        for role in &roles {
            found = self.assumed(&found, role).await?;
        }
        Ok(found)
    }

    async fn begin(&mut self, start: &Start) -> Result<Credentials, HttpError> {
        match start {
            Start::Keys { id, secret, session } => Ok(Credentials {
                key_id: id.clone(),
                secret: secret.clone(),
                session: session.clone(),
                expires: None,
            }),
            Start::WebIdentity { file, role } => self.web_identity(file, role).await,
            Start::Environment => Credentials::of_environment(|name| self.variable(name))
                .ok_or_else(|| fault("the environment has no AWS_ACCESS_KEY_ID")),
            Start::Container => self.container().await?.ok_or_else(|| {
                fault("no container gives credentials: AWS_CONTAINER_CREDENTIALS_FULL_URI is not set")
            }),
            Start::Machine => self.machine().await,
            Start::Surroundings => match self.container().await? {
                Some(found) => Ok(found),
                None => self.machine().await.map_err(|_| {
                    fault(
                        "the controller has no AWS credentials: set AWS_ACCESS_KEY_ID and \
                         AWS_SECRET_ACCESS_KEY in its environment, or give its ServiceAccount a role",
                    )
                }),
            },
        }
    }

    /// What the token in a file is worth.
    async fn web_identity(&mut self, file: &str, role: &Role) -> Result<Credentials, HttpError> {
        let read = fs::read_to_string(file);
        let token =
            read.map_err(|error| fault(format!("the web identity token {file}: {error}")))?;
        let token = token.trim();
        self.hidden.add(token);
        let more = [("WebIdentityToken", token)];
        self.of_role("AssumeRoleWithWebIdentity", role, &more, None).await
    }

    /// A role that these credentials may assume.
    async fn assumed(&mut self, by: &Credentials, role: &Role) -> Result<Credentials, HttpError> {
        self.hidden.join(Hidden::of(by.hidden().cloned()));
        let external = ("ExternalId", role.external_id.as_str());
        let more: Vec<_> = [external].into_iter().filter(|(_, id)| !id.is_empty()).collect();
        self.of_role("AssumeRole", role, &more, Some(by)).await
    }

    async fn of_role(
        &self,
        action: &str,
        role: &Role,
        more: &[(&str, &str)],
        by: Option<&Credentials>,
    ) -> Result<Credentials, HttpError> {
        let session = if role.session.is_empty() { SESSION } else { &role.session };
        let fields = [
            ("Action", action),
            ("Version", VERSION),
            ("RoleArn", &role.arn),
            ("RoleSessionName", session),
        ];
        let fields = fields.iter().chain(more);
        let pair = |(name, value): &(&str, &str)| format!("{name}={}", Encoding::Form.apply(value));
        let body = fields.map(pair).collect::<Vec<_>>().join("&");
        let region = self.region;
        let own = self.variable("AWS_ENDPOINT_URL_STS");
        let endpoint = own
            .or_else(|| self.variable("AWS_ENDPOINT_URL"))
            .unwrap_or_else(|| format!("https://sts.{region}.amazonaws.com/"));
        let request = PlainRequest {
            method: "POST",
            url: &endpoint,
            headers: &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
            body,
            signing: by.map(|credentials| Signing { service: "sts", region, credentials }),
        };
        let reply = self.http.plain(request).await?;
        let answer = Element::parse(&reply.body);
        let said = answer.as_ref().map_or("", |answer| answer.text_of("Message"));
        if reply.status != 200 {
            let status = reply.status;
            let arn = &role.arn;
            return Err(fault(format!("{action} of {arn} failed with status {status}: {said}")));
        }
        let text = |name: &str| answer.as_ref().map_or("", |answer| answer.text_of(name));
        let fields = ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"].map(text);
        of_fields(fields).ok_or_else(|| fault(format!("{action} gave no credentials")))
    }

    /// What the container gives; `None` where it gives nothing.
    async fn container(&mut self) -> Result<Option<Credentials>, HttpError> {
        let relative = self.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let relative = relative.map(|path| format!("{CONTAINER}{path}"));
        let whole = || self.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        let Some(url) = relative.or_else(whole) else { return Ok(None) };
        check_nearby(&url)?;
        let in_file = match self.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => Some(fs::read_to_string(&file).map_err(|error| {
                fault(format!("the authorization token of the container {file}: {error}"))
            })?),
            None => self.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        };
        let token = in_file.unwrap_or_default().trim().to_owned();
        self.hidden.add(&token);
        let header = [("authorization", token.as_str())];
        let headers: &[(&str, &str)] = if token.is_empty() { &[] } else { &header };
        let reply = nearby("GET", &url, headers).await?;
        let found = of_json(&reply).ok_or_else(|| {
            fault(format!("the container gave no AWS credentials: status {}", reply.status))
        })?;
        Ok(Some(found))
    }

    /// What the machine gives.
    async fn machine(&self) -> Result<Credentials, HttpError> {
        if self.variable("AWS_EC2_METADATA_DISABLED").is_some_and(|text| text == "true") {
            return Err(fault("AWS_EC2_METADATA_DISABLED is set"));
        }
        let base = self.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let base = base.unwrap_or_else(|| MACHINE.to_owned());
        let base = base.trim_end_matches('/');
        let lifetime = [("x-aws-ec2-metadata-token-ttl-seconds", "21600")];
        let token = nearby("PUT", &format!("{base}/latest/api/token"), &lifetime).await?;
        let header = [("x-aws-ec2-metadata-token", &*token.body)];
        let roles = format!("{base}/latest/meta-data/iam/security-credentials/");
        let named = nearby("GET", &roles, &header).await?;
        let role = named.body.lines().next().unwrap_or_default();
        let reply = nearby("GET", &format!("{roles}{role}"), &header).await?;
        of_json(&reply).ok_or_else(|| fault("the machine gave no AWS credentials"))
    }
}

/// A request to where credentials are served. No other request may go there.
async fn nearby(method: &str, url: &str, headers: &[(&str, &str)]) -> Result<HttpReply, HttpError> {
    let networks = ["169.254.0.0/16", "fd00:ec2::/32", "127.0.0.0/8", "::1"];
    let allow = networks.iter().filter_map(|text| text.parse::<Network>().ok()).collect();
    let policy = AddressPolicy { allow, ..AddressPolicy::default() };
    let client = HttpClient::new(policy).map_err(|error| fault(error.to_string()))?;
    let request = PlainRequest { method, url, headers, body: String::new(), signing: None };
    let reply = tokio::time::timeout(NEARBY, client.plain(request)).await;
    let reply = reply.unwrap_or_else(|_| Err(fault(format!("{url} does not answer"))))?;
    match reply.status {
        200 => Ok(reply),
        status => Err(fault(format!("{url} answered with status {status}"))),
    }
}

/// A token goes over plain HTTP to the container's own host alone.
fn check_nearby(url: &str) -> Result<(), HttpError> {
    let host = url.strip_prefix("http://").map(|rest| rest.split('/').next().unwrap_or_default());
    let is_nearby = |host: &str| {
        let name = host.rsplit_once(':').filter(|(name, _)| !name.ends_with(':'));
        let name = name.map_or(host, |(name, _)| name);
        NEARBY_HOSTS.contains(&host) || NEARBY_HOSTS.contains(&name) || name.starts_with("127.")
    };
    match host {
        Some(host) if !is_nearby(host) => {
            Err(fault(format!("AWS_CONTAINER_CREDENTIALS_FULL_URI leads to {host} without TLS")))
        }
        _ => Ok(()),
    }
}

fn of_json(reply: &HttpReply) -> Option<Credentials> {
    let answer: Value = serde_json::from_str(&reply.body).ok()?;
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    of_fields(["AccessKeyId", "SecretAccessKey", "Token", "Expiration"].map(text))
}

/// Credentials of the id and the secret of a key, a session and an end.
fn of_fields([id, secret, session, end]: [&str; 4]) -> Option<Credentials> {
    let is_whole = !id.is_empty() && !secret.is_empty();
    is_whole.then(|| Credentials {
        key_id: id.to_owned(),
        secret: secret.to_owned(),
        session: Some(session.to_owned()).filter(|session| !session.is_empty()),
        expires: end.parse::<Timestamp>().ok(),
    })
}

#[cfg(test)]
mod tests;
