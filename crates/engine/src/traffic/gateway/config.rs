//! The configuration of the Gateway API plugin: which routes, and how they are marked.

use std::sync::Arc;

use gradus_api::names::label;
use serde_json::Value;

use super::super::{NOT_YET, RouteFault};
use super::Kind;

/// The label that marks a route while a canary has traffic, unless the configuration says otherwise.
const LABEL: (&str, &str) = (label::GATEWAY_CANARY, "in-progress");
const GROUP: &str = "gateway.networking.k8s.io";
const NOTHING: &str = "No routes configured. At least one of 'httpRoutes', 'grpcRoutes', \
                       'tcpRoutes', 'tlsRoutes', 'httpRoute', 'grpcRoute', 'tcpRoute' or \
                       'tlsRoute' must be set";

/// The kinds of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteFamily {
    /// HTTPRoute.
    Http,
    /// GRPCRoute.
    Grpc,
    /// TCPRoute.
    Tcp,
    /// TLSRoute.
    Tls,
}

impl RouteFamily {
    /// In the order in which they are served.
    const ALL: [RouteFamily; 4] =
        [RouteFamily::Http, RouteFamily::Grpc, RouteFamily::Tcp, RouteFamily::Tls];

    /// The kind of its objects.
    pub const fn kind(self) -> Kind {
        match self {
            RouteFamily::Http => Kind::new(GROUP, "v1", "HTTPRoute", "httproutes"),
            RouteFamily::Grpc => Kind::new(GROUP, "v1", "GRPCRoute", "grpcroutes"),
            RouteFamily::Tcp => Kind::new(GROUP, "v1alpha2", "TCPRoute", "tcproutes"),
            RouteFamily::Tls => Kind::new(GROUP, "v1alpha2", "TLSRoute", "tlsroutes"),
        }
    }

    /// The field that names one route of it.
    pub fn field(self) -> &'static str {
        match self {
            RouteFamily::Http => "httpRoute",
            RouteFamily::Grpc => "grpcRoute",
            RouteFamily::Tcp => "tcpRoute",
            RouteFamily::Tls => "tlsRoute",
        }
    }
}

/// What a configuration asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// The routes, each once.
    pub wanted: Vec<NamedRoute>,
    /// Their namespace; `None` means the Rollout's.
    pub namespace: Option<Arc<str>>,
    /// The label that marks them; `None` where none is wanted.
    pub label: Option<(String, String)>,
}

/// One route.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRoute {
    /// What it is.
    pub family: RouteFamily,
    /// Its name.
    pub name: Arc<str>,
    /// May steps add rules to it?
    pub uses_header_routes: bool,
    /// The field that names it.
    pub field: String,
}

/// Reads a configuration that stands at this path.
pub fn read(config: &Value, path: &str) -> Result<GatewayConfig, RouteFault> {
    let mut wanted: Vec<NamedRoute> = Vec::new();
    for family in RouteFamily::ALL {
        for route in of_family(config, path, family)? {
            let is_same =
                |known: &&mut NamedRoute| known.family == family && known.name == route.name;
            match wanted.iter_mut().find(is_same) {
                Some(known) => known.uses_header_routes |= route.uses_header_routes,
                None => wanted.push(route),
            }
        }
    }
    if wanted.is_empty() {
        return Err(RouteFault::configuration(path, NOTHING));
    }
    let is_marked = config["disableInProgressLabel"] != true;
    let or = |field: &str, default: &str| match text(config, path, field)? {
        "" => Ok(default.to_owned()),
        text => Ok(text.to_owned()),
    };
    let label = (or("inProgressLabelKey", LABEL.0)?, or("inProgressLabelValue", LABEL.1)?);
    let namespace = text(config, path, "namespace")?;
    Ok(GatewayConfig {
        wanted,
        namespace: (!namespace.is_empty()).then(|| namespace.into()),
        label: is_marked.then_some(label),
    })
}

/// The routes of one kind: the list, and the single one at its end.
fn of_family(
    config: &Value,
    path: &str,
    family: RouteFamily,
) -> Result<Vec<NamedRoute>, RouteFault> {
    let (one, several) = (family.field(), format!("{}s", family.field()));
    let selector = format!("{one}Selector");
    if config.get(&selector).is_some_and(|selector| !selector.is_null()) {
        return Err(RouteFault::configuration(format!("{path}.{selector}"), NOT_YET));
    }
    let list = match &config[several.as_str()] {
        Value::Null => &[][..],
        Value::Array(list) => list,
        _ => {
            let message = "Invalid value: expected a list of routes";
            return Err(RouteFault::configuration(format!("{path}.{several}"), message));
        }
    };
    let mut found = Vec::new();
    for (at, entry) in list.iter().enumerate() {
        let place = format!("{path}.{several}[{at}]");
        let name = text(entry, &place, "name")?;
        let field = format!("{place}.name");
        if name.is_empty() {
            return Err(RouteFault::configuration(field, "Required value: the name of a route"));
        }
        let uses_header_routes = entry["useHeaderRoutes"] == true;
        found.push(NamedRoute { family, name: name.into(), uses_header_routes, field });
    }
    let name = text(config, path, one)?;
    if !name.is_empty() {
        let field = format!("{path}.{one}");
        found.push(NamedRoute { family, name: name.into(), uses_header_routes: true, field });
    }
    Ok(found)
}

/// A text, empty where there is none.
fn text<'v>(config: &'v Value, path: &str, field: &str) -> Result<&'v str, RouteFault> {
    match &config[field] {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text),
        other => {
            let message = format!("Invalid value: {other}: expected a text");
            Err(RouteFault::configuration(format!("{path}.{field}"), message))
        }
    }
}
