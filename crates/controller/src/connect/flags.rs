//! The connection flags of kubectl: which cluster is meant, as whom, and which namespace?

use std::path::{Path, PathBuf};

use clap::{ArgAction, Args};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::proxy::is_passed_over;
use super::{ConnectError, Connection, client, kubeconfig};
use crate::one_line::one_line;

/// The connection flags of kubectl; before or after the command's own.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionFlags {
    /// Path of a kubeconfig
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// Cluster of the kubeconfig
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    cluster: Option<String>,
    /// User of the kubeconfig
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    user: Option<String>,
    /// Namespace; without it the context's
    #[arg(long, short, global = true, value_name = "NAME")]
    namespace: Option<String>,
    /// Address of the API server
    #[arg(long, short, global = true, value_name = "URL", hide_short_help = true)]
    server: Option<String>,
    /// Proxy on the way to the API server
    #[arg(long, global = true, value_name = "URL", hide_short_help = true)]
    pub(super) proxy_url: Option<String>,
    /// Bearer token
    #[arg(long, global = true, hide_short_help = true)]
    token: Option<String>,
    /// Name for basic authentication
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub(super) username: Option<String>,
    /// Password for basic authentication
    #[arg(long, global = true, value_name = "TEXT", hide_short_help = true)]
    pub(super) password: Option<String>,
    /// User to act as
    #[arg(long = "as", global = true, value_name = "NAME", hide_short_help = true)]
    as_user: Option<String>,
    /// Uid to act as
    #[arg(long, global = true, value_name = "UID", hide_short_help = true)]
    as_uid: Option<String>,
    /// Group to act as; may be given several times
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    as_group: Vec<String>,
    /// How long one request may take, as 10s or 1m; 0 for ever
    #[arg(long, global = true, value_name = "DURATION", hide_short_help = true)]
    request_timeout: Option<String>,
    /// Do not check the server's certificate
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(default_value = "false", default_missing_value = "true", value_name = "BOOL")]
    #[arg(hide_short_help = true, hide_possible_values = true)]
    insecure_skip_tls_verify: bool,
    /// Do not ask for compressed answers
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    #[arg(default_value = "false", default_missing_value = "true", value_name = "BOOL")]
    #[arg(hide_short_help = true, hide_possible_values = true)]
    disable_compression: bool,
    /// Certificate of the authority that signed the server's
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    certificate_authority: Option<PathBuf>,
    /// Client certificate
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    client_certificate: Option<String>,
    /// Key of the client certificate
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    client_key: Option<String>,
    /// Name that the server's certificate must have
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    tls_server_name: Option<String>,
    /// Accepted for scripts that set it; nothing is cached
    #[arg(long, global = true, value_name = "FOLDER", hide = true)]
    cache_dir: Option<PathBuf>,
}

impl ConnectionFlags {
    /// A kubeconfig, and no other flag.
    #[cfg(test)]
    pub(super) fn of_file(path: &Path) -> Self {
        ConnectionFlags { kubeconfig: Some(path.to_owned()), ..Self::default() }
    }

    /// As a person connects: with the kubeconfig, else as the pod we run in. The server need not be
    /// there.
    pub async fn of_person(&self) -> Result<Connection, ConnectError> {
        client(self.adjusted(self.config_of_person().await?)?)
    }

    /// As a controller connects: with the kubeconfig that a flag names or chooses from, else as the
    /// pod we run in, else with the kubeconfig of the environment. The server need not be there.
    pub async fn of_controller(&self) -> Result<Connection, ConnectError> {
        let is_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        let names_file = self.kubeconfig.is_some() || self.is_of_kubeconfig();
        let config =
            if is_pod && !names_file { in_cluster()? } else { self.config_of_person().await? };
        client(self.adjusted(config)?)
    }

    /// The namespace that a flag names.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|namespace| !namespace.is_empty())
    }

    /// How long one request may take, as it was written.
    pub fn request_timeout(&self) -> Option<&str> {
        self.request_timeout.as_deref()
    }

    /// The configuration of the kubeconfig, else of the pod we run in.
    async fn config_of_person(&self) -> Result<Config, ConnectError> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
        };
        if let Some(path) = &self.kubeconfig {
            let file = Kubeconfig::read_from(path).map_err(|error| in_file(path, &error))?;
            self.check_user(&file)?;
            let config = Config::from_custom_kubeconfig(file, &options).await;
            return config.map_err(|error| in_file(path, &error));
        }
        let found = match kubeconfig() {
            Ok(file) => {
                self.check_user(&file)?;
                Config::from_custom_kubeconfig(file, &options).await
            }
            Err(error) => Err(error),
        };
        match found {
            Ok(config) => Ok(config),
            // Who names a context means a kubeconfig, not the cluster this pod happens to be in.
            Err(error) if self.is_of_kubeconfig() || !names_no_cluster(&error) => {
                Err(ConnectError::Nowhere(one_line(&error)))
            }
            Err(_) if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => in_cluster(),
            Err(_) if self.server.is_some() => Ok(Config::new(http::Uri::default())),
            Err(error) => Err(ConnectError::Nowhere(one_line(&error))),
        }
    }

    /// Do flags name something that only a kubeconfig can hold?
    fn is_of_kubeconfig(&self) -> bool {
        self.context.is_some() || self.cluster.is_some() || self.user.is_some()
    }

    /// A user that a flag names must be there: without it, requests would be nobody's.
    fn check_user(&self, file: &Kubeconfig) -> Result<(), ConnectError> {
        let Some(user) = &self.user else { return Ok(()) };
        let names: Vec<String> = file.auth_infos.iter().map(|known| known.name.clone()).collect();
        if names.contains(user) {
            return Ok(());
        }
        Err(ConnectError::User { user: user.clone(), known: names.join(", ") })
    }

    /// The configuration with everything that flags say otherwise.
    fn adjusted(&self, mut config: Config) -> Result<Config, ConnectError> {
        if let Some(server) = &self.server {
            config.cluster_url = address(server, server, "--server ")?;
        }
        if config.cluster_url.scheme().is_none() {
            config.cluster_url = self.with_scheme(&config)?;
        }
        if let Some(proxy) = &self.proxy_url {
            config.proxy_url = Some(address(proxy, proxy, "--proxy-url ")?);
        } else if config
            .proxy_url
            .as_ref()
            .is_some_and(|one| is_passed_over(one, &config.cluster_url))
        {
            config.proxy_url = None;
        }
        if let Some(path) = &self.certificate_authority {
            config.root_cert_file = Some(path.clone());
            config.root_cert = None;
        }
        config.accept_invalid_certs |= self.insecure_skip_tls_verify;
        config.disable_compression |= self.disable_compression;
        config.tls_server_name = self.tls_server_name.clone().or(config.tls_server_name);
        let user = &mut config.auth_info;
        if let Some(token) = &self.token {
            user.token = Some(token.clone().into());
            user.token_file = None;
        }
        if self.username.is_some() || self.password.is_some() {
            user.username = self.username.clone().or(user.username.take());
            user.password = self.password.clone().map(Into::into).or(user.password.take());
        }
        user.client_certificate =
            self.client_certificate.clone().or(user.client_certificate.take());
        user.client_key = self.client_key.clone().or(user.client_key.take());
        user.impersonate = self.as_user.clone().or(user.impersonate.take());
        user.impersonate_uid = self.as_uid.clone().or(user.impersonate_uid.take());
        if !self.as_group.is_empty() {
            user.impersonate_groups = Some(self.as_group.clone());
        }
        Ok(config)
    }

    /// An address without a scheme is one of HTTPS if anything is said about certificates.
    fn with_scheme(&self, config: &Config) -> Result<http::Uri, ConnectError> {
        let text = config.cluster_url.to_string();
        let user = &config.auth_info;
        let is_secured = self.certificate_authority.is_some()
            || self.insecure_skip_tls_verify
            || self.client_certificate.is_some()
            || config.accept_invalid_certs
            || config.root_cert.is_some()
            || config.root_cert_file.is_some()
            || user.client_certificate.is_some()
            || user.client_certificate_data.is_some();
        let scheme = if is_secured { "https" } else { "http" };
        address(&format!("{scheme}://{}", text.trim_start_matches('/')), &text, "the server ")
    }
}

fn address(text: &str, named: &str, what: &'static str) -> Result<http::Uri, ConnectError> {
    let refused = |error: http::uri::InvalidUri| ConnectError::Address {
        what: format!("{what}{named}"),
        reason: error.to_string(),
    };
    text.parse().map_err(refused)
}

fn in_cluster() -> Result<Config, ConnectError> {
    Config::incluster().map_err(|error| ConnectError::InCluster(one_line(&error)))
}

/// Is there simply no kubeconfig, or none that chooses a cluster?
fn names_no_cluster(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath | KubeconfigError::CurrentContextNotSet => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

fn in_file(path: &Path, error: &KubeconfigError) -> ConnectError {
    ConnectError::File { path: path.to_owned(), reason: one_line(error) }
}
