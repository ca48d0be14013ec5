//! The configuration of the Gateway API plugin: which routes, and how they are marked.

use std::sync::Arc;

use gradus_api::names::label;
use gradus_api::rollout::LabelSelector;
use serde_json::Value;

use super::super::RouteFault;
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
    pub const ALL: [RouteFamily; 4] =
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

    /// The field that selects routes of it.
    pub fn selector_field(self) -> String {
        format!("{}Selector", self.field())
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
    /// The routes that are named, each once.
    pub named: Vec<NamedRoute>,
    /// Those that are selected.
    pub selected: Vec<SelectedRoutes>,
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

/// All routes of a kind with certain labels.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectedRoutes {
    /// What they are.
    pub family: RouteFamily,
    /// Their labels.
    pub selector: LabelSelector,
    /// The field that selects them.
    pub field: String,
}

/// Nothing is named, and nothing that is there is selected.
pub fn nothing(path: &str) -> RouteFault {
    RouteFault::configuration(path, NOTHING)
}

/// Reads a configuration that stands at this path.
pub fn read(config: &Value, path: &str) -> Result<GatewayConfig, RouteFault> {
    let mut named: Vec<NamedRoute> = Vec::new();
    let mut selected = Vec::new();
    for family in RouteFamily::ALL {
        selected.extend(selection(config, path, family)?);
        for route in of_family(config, path, family)? {
            let is_same =
                |known: &&mut NamedRoute| known.family == family && known.name == route.name;
            match named.iter_mut().find(is_same) {
                Some(known) => known.uses_header_routes |= route.uses_header_routes,
                None => named.push(route),
            }
        }
    }
    if named.is_empty() && selected.is_empty() {
        return Err(nothing(path));
    }
    let is_marked = config["disableInProgressLabel"] != true;
    let or = |field: &str, default: &str| match text(config, path, field)? {
        "" => Ok(default.to_owned()),
        text => Ok(text.to_owned()),
    };
    let label = (or("inProgressLabelKey", LABEL.0)?, or("inProgressLabelValue", LABEL.1)?);
    let namespace = text(config, path, "namespace")?;
    Ok(GatewayConfig {
        named,
        selected,
        namespace: (!namespace.is_empty()).then(|| namespace.into()),
        label: is_marked.then_some(label),
    })
}

/// What selects routes of one kind, if something does.
fn selection(
    config: &Value,
    path: &str,
    family: RouteFamily,
) -> Result<Option<SelectedRoutes>, RouteFault> {
    let field = family.selector_field();
    let Some(given) = config.get(&field).filter(|given| !given.is_null()) else { return Ok(None) };
    let field = format!("{path}.{field}");
    let wrong = |message: String| RouteFault::configuration(&*field, message);
    let selector: LabelSelector = serde_json::from_value(given.clone())
        .map_err(|error| wrong(format!("Invalid value: {given}: {error}")))?;
    let known = ["In", "NotIn", "Exists", "DoesNotExist"];
    let mut requirements = selector.match_expressions.iter();
    if let Some(one) = requirements.find(|one| !known.contains(&one.operator.as_str())) {
        let expected = known.join(", ");
        let operator = &one.operator;
        return Err(wrong(format!("Invalid value: {operator:?}: expected one of {expected}")));
    }
    Ok(Some(SelectedRoutes { family, selector, field }))
}

/// The routes of one kind: the list, and the single one at its end.
fn of_family(
    config: &Value,
    path: &str,
    family: RouteFamily,
) -> Result<Vec<NamedRoute>, RouteFault> {
    let (one, several) = (family.field(), format!("{}s", family.field()));
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
