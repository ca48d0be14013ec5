//! Which part of the server does a path mean?

use std::sync::Arc;

use http::Method;

use super::query::decode;
use super::reviews::Review;
use crate::kinds::{KindId, Kinds};
use crate::request::Subresource;

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/healthz` and its like.
    Healthy,
    /// `/version`.
    Version,
    /// What kinds are there.
    Discovery(Discovery),
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/...`: the rest of the path.
    OpenApi(String),
    /// A question about rights or identity.
    Review(Review),
    /// Objects.
    Resource(RouteTarget),
    /// The group or version is served, the resource is not.
    NoResource,
    /// The object has no such side; a custom one is said to be absent itself.
    NoSide(KindId, String),
    /// What only a container could answer: the namespace and name of its pod.
    Container(String, String),
    /// Nothing is served there.
    NoPage,
}

impl Route {
    /// The only method a page knows. Others take any, or look at it themselves.
    pub fn method(&self, kinds: &Kinds) -> Option<Method> {
        let is_built_in =
            |group: &str| kinds.served().any(|(_, kind)| *kind.group == *group && !kind.custom);
        match self {
            Self::Version | Self::Discovery(Discovery::Core) => Some(Method::GET),
            Self::Discovery(Discovery::Group(group) | Discovery::Version(group, _)) => {
                is_built_in(group).then_some(Method::GET)
            }
            Self::Review(_) => Some(Method::POST),
            _ => None,
        }
    }
}

/// Which discovery document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/v1`, `/apis/{group}/{version}`.
    Version(String, String),
}

/// Which objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTarget {
    /// Of which kind.
    pub kind: KindId,
    /// Where; empty for all namespaces and for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Which one; empty for all.
    pub name: Arc<str>,
    /// Which side of it.
    pub subresource: Subresource,
}

/// Reads a path.
pub fn route(kinds: &Kinds, path: &str) -> Route {
    let segments: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(|part| decode(part, false)).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match &segments[..] {
        ["healthz" | "livez" | "readyz", ..] => Route::Healthy,
        ["version"] => Route::Version,
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", rest @ ..] => Route::OpenApi(rest.join("/")),
        ["api"] => Route::Discovery(Discovery::Core),
        ["apis"] => Route::Discovery(Discovery::Groups),
        ["api", "v1"] => Route::Discovery(Discovery::Version(String::new(), "v1".into())),
        ["apis", group] => Route::Discovery(Discovery::Group((*group).into())),
        ["api", _] => Route::NoResource,
        ["apis", group, version] if is_foreign(kinds, group, version) => Route::NoResource,
        ["apis", group, version] => {
            Route::Discovery(Discovery::Version((*group).into(), (*version).into()))
        }
        ["api", "v1", rest @ ..] => resource(kinds, "", "v1", rest),
        ["apis", group, version, rest @ ..] => resource(kinds, group, version, rest),
        _ => Route::NoPage,
    }
}

fn resource(kinds: &Kinds, group: &str, version: &str, rest: &[&str]) -> Route {
    if let [resource] = rest
        && let Some(review) = Review::find(group, version, resource)
    {
        return Route::Review(review);
    }
    let is_served =
        |kind: &crate::kinds::KindInfo| *kind.group == *group && *kind.version == *version;
    if is_foreign(kinds, group, version) {
        return Route::NoResource;
    }
    if !kinds.served().any(|(_, kind)| is_served(kind)) {
        return Route::NoPage;
    }
    let (namespace, plural, rest) = match rest {
        // `namespaces/x/status` is a side of the namespace, not a kind within it.
        ["namespaces", namespace, plural, rest @ ..] if *plural != "status" => {
            (*namespace, *plural, rest)
        }
        [plural, rest @ ..] => ("", *plural, rest),
        [] => return Route::NoPage,
    };
    let Some(kind) = kinds.by_plural(group, version, plural) else {
        return Route::NoResource;
    };
    let known = kinds.get(kind);
    if !namespace.is_empty() && !known.namespaced {
        return if known.custom { Route::NoPage } else { Route::NoResource };
    }
    let (name, subresource) = match rest {
        [] => ("", Subresource::None),
        [name] => (*name, Subresource::None),
        [name, "status"] => (*name, Subresource::Status),
        [name, "scale"] => (*name, Subresource::Scale),
        [name, "eviction"] => (*name, Subresource::Eviction),
        [name, "binding"] => (*name, Subresource::Binding),
        [name, "log" | "exec" | "attach" | "portforward"] if kind == KindId::POD => {
            return Route::Container(namespace.to_owned(), (*name).to_owned());
        }
        [name, _] if known.custom => return Route::NoSide(kind, (*name).to_owned()),
        _ => return Route::NoResource,
    };
    if !has(known, kind, subresource) {
        let no_side = Route::NoSide(kind, name.to_owned());
        return if known.custom { no_side } else { Route::NoResource };
    }
    Route::Resource(RouteTarget {
        kind,
        namespace: namespace.into(),
        name: name.into(),
        subresource,
    })
}

/// Is it a version that a built-in group does not have?
fn is_foreign(kinds: &Kinds, group: &str, version: &str) -> bool {
    let mut versions =
        kinds.served().filter(|(_, kind)| *kind.group == *group).map(|(_, kind)| kind).peekable();
    versions.peek().is_some_and(|kind| !kind.custom)
        && !versions.any(|kind| *kind.version == *version)
}

fn has(kind: &crate::kinds::KindInfo, id: KindId, subresource: Subresource) -> bool {
    match subresource {
        Subresource::None => true,
        Subresource::Status => kind.has_status,
        Subresource::Scale => kind.scale.is_some(),
        Subresource::Eviction | Subresource::Binding => id == KindId::POD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_kubernetes_has_them() {
        let kinds = Kinds::default();
        let at = |kind, namespace: &str, name: &str, subresource| {
            let (namespace, name) = (namespace.into(), name.into());
            Route::Resource(RouteTarget { kind, namespace, name, subresource })
        };
        let none = Subresource::None;
        let cases = [
            ("/healthz", Route::Healthy),
            ("/readyz/etcd", Route::Healthy),
            ("/api", Route::Discovery(Discovery::Core)),
            ("/apis/apps", Route::Discovery(Discovery::Group("apps".into()))),
            ("/api/v1/pods", at(KindId::POD, "", "", none)),
            ("/api/v1/namespaces", at(KindId::NAMESPACE, "", "", none)),
            ("/api/v1/namespaces/a", at(KindId::NAMESPACE, "", "a", none)),
            ("/api/v1/namespaces/a/status", at(KindId::NAMESPACE, "", "a", Subresource::Status)),
            ("/api/v1/namespaces/a/pods", at(KindId::POD, "a", "", none)),
            ("/api/v1/namespaces/a/pods/b", at(KindId::POD, "a", "b", none)),
            (
                "/api/v1/namespaces/a/pods/b/eviction",
                at(KindId::POD, "a", "b", Subresource::Eviction),
            ),
            (
                "/apis/apps/v1/namespaces/a/replicasets/b/scale",
                at(KindId::REPLICA_SET, "a", "b", Subresource::Scale),
            ),
            ("/api/v1/namespaces/a/pods/b/log", Route::Container("a".to_owned(), "b".to_owned())),
            ("/api/v1/namespaces/a/configmaps/b/log", Route::NoResource),
            ("/api/v1/namespaces/a/configmaps/b/status", Route::NoResource),
            ("/api/v1/namespaces/a/nodes", Route::NoResource),
            ("/apis/apps/v1/frobs", Route::NoResource),
            ("/apis/frob.dev/v1/frobs", Route::NoPage),
            ("/api/v2", Route::NoResource),
            ("/apis/apps/v9", Route::NoResource),
            ("/apis/apps/v9/deployments", Route::NoResource),
            ("/frob", Route::NoPage),
        ];
        for (path, expected) in cases {
            assert_eq!(route(&kinds, path), expected, "{path}");
        }
    }
}
