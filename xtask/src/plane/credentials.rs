//! Who talks to the API server, with which token and which rights?

use std::path::Path;

use serde_json::json;

/// One user for each part, so that the audit log tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Whoever runs kubectl: an administrator.
    Person,
    /// Gradus, with nothing but the rights of `manifests/rbac.yaml`.
    Controller,
    /// Gradus in one namespace, with nothing but the rights of `manifests/namespace-install.yaml`.
    Tenant,
    /// Another controller beside ours.
    Peer,
    /// The example operator, with the rights that lie beside it.
    Operator,
    /// Our kubelet without containers.
    Kubelet,
    /// The built-in controllers.
    ControllerManager,
}

impl User {
    pub const ALL: [Self; 7] = [
        Self::Person,
        Self::Controller,
        Self::Tenant,
        Self::Peer,
        Self::Operator,
        Self::Kubelet,
        Self::ControllerManager,
    ];

    /// As the API server and its audit log call this user. The controller has the name of the
    /// service account it has when installed, so the very binding that is shipped applies.
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Controller => "system:serviceaccount:argo-rollouts:gradus",
            Self::Tenant => "system:serviceaccount:tenant:gradus",
            Self::Peer => "system:serviceaccount:argo-rollouts:argo-rollouts",
            Self::Operator => "system:serviceaccount:database-operator:database-operator",
            Self::Kubelet => "kubelet",
            Self::ControllerManager => "controller-manager",
        }
    }

    /// The token that logs this user in. The server listens on loopback and dies with the run.
    pub fn token(self) -> &'static str {
        match self {
            Self::Person => "person-token",
            Self::Controller => "controller-token",
            Self::Tenant => "tenant-token",
            Self::Peer => "peer-token",
            Self::Operator => "operator-token",
            Self::Kubelet => "kubelet-token",
            Self::ControllerManager => "controller-manager-token",
        }
    }

    /// File name of this user's kubeconfig.
    pub(super) fn kubeconfig(self) -> &'static str {
        match self {
            Self::Person => "kubeconfig",
            Self::Controller => "controller.kubeconfig",
            Self::Tenant => "tenant.kubeconfig",
            Self::Peer => "peer.kubeconfig",
            Self::Operator => "operator.kubeconfig",
            Self::Kubelet => "kubelet.kubeconfig",
            Self::ControllerManager => "controller-manager.kubeconfig",
        }
    }

    fn group(self) -> &'static str {
        match self {
            // Who has all rights by its group is not held back by the server: it would have it easier.
            Self::Controller | Self::Tenant | Self::Peer | Self::Operator => {
                "system:serviceaccounts"
            }
            Self::Person | Self::Kubelet | Self::ControllerManager => "system:masters",
        }
    }
}

/// The API server's `--token-auth-file`: token, user, uid, group.
pub(super) fn token_file() -> String {
    let line = |user: User| format!("{},{},{1},{}\n", user.token(), user.name(), user.group());
    User::ALL.into_iter().map(line).collect()
}

/// A kubeconfig; JSON is YAML.
pub(super) fn kubeconfig(user: User, server: &str, certificate: &Path) -> String {
    let mut cluster = json!({ "server": server });
    if server.starts_with("https:") {
        cluster["certificate-authority"] = json!(certificate);
    }
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "real", "cluster": cluster }],
        "users": [{ "name": user.name(), "user": { "token": user.token() } }],
        "contexts": [{
            "name": "real",
            "context": { "cluster": "real", "user": user.name(), "namespace": "default" },
        }],
        "current-context": "real",
    });
    format!("{document:#}\n")
}
