//! In which version does the server have a routing kind? The versions of one kind have the same shape but
//! for what is adapted here. Which of them is used a flag may say; of those that the server does not have,
//! discovery says what it has instead.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// The groups whose kinds are the same in every version, but for what is adapted.
const GROUPS: [&str; 6] = [
    "appmesh.k8s.aws",
    "gateway.networking.k8s.io",
    "getambassador.io",
    "networking.istio.io",
    SMI,
    "traefik.io",
];

const SMI: &str = "split.smi-spec.io";
/// The one version of a TrafficSplit whose weights are quantities, written as text.
const WITH_QUANTITIES: &str = "v1alpha1";

/// Where the server has a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// Its group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its name in paths.
    pub plural: String,
    /// Its name in manifests, where that is another one than usual.
    pub kind: Option<&'static str>,
}

/// Kinds whose place was said or found, by the group and plural that are asked for.
pub type ServedKinds = BTreeMap<(String, String), ServedKind>;

/// The same client. A kind that the server does not have in the version asked for is used in the one that
/// it has.
pub fn served(client: Client) -> Client {
    let found: Arc<Mutex<ServedKinds>> = Arc::default();
    through(client, move |client, path, request| {
        let (client, found) = (client.clone(), Arc::clone(&found));
        async move { send(&client, &found, path, request).await }
    })
}

/// The same client, for which kinds are where somebody says they are.
pub fn placed(client: Client, places: &ServedKinds) -> Client {
    if places.is_empty() {
        return client;
    }
    let places = Arc::new(places.clone());
    through(client, move |client, path, request| {
        let (client, places) = (client.clone(), Arc::clone(&places));
        async move {
            match places.get(&path.key()) {
                Some(place) => client.send(path.request(&read(request).await?, place)).await,
                None => client.send(request).await,
            }
        }
    })
}

/// A client that does this with requests for routing kinds.
fn through<F>(
    client: Client,
    does: impl Fn(&Client, ResourcePath, Request<Body>) -> F + Send + Sync + 'static,
) -> Client
where
    F: Future<Output = Result<Response<Body>, kube::Error>> + Send + 'static,
{
    let default_namespace = client.default_namespace().to_owned();
    let does = Arc::new(does);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, does) = (client.clone(), Arc::clone(&does));
        async move {
            match ResourcePath::of(request.uri()) {
                Some(path) => does(&client, path, request).await,
                None => client.send(request).await,
            }
        }
    });
    Client::new(service, default_namespace)
}

async fn send(
    client: &Client,
    found: &Mutex<ServedKinds>,
    path: ResourcePath,
    request: Request<Body>,
) -> Result<Response<Body>, kube::Error> {
    let known = found.lock().unwrap_or_else(PoisonError::into_inner).get(&path.key()).cloned();
    let used = known.unwrap_or_else(|| path.place.clone());
    let whole = read(request).await?;
    let answer = client.send(path.request(&whole, &used)).await?;
    if !is_unknown_path(&answer) {
        return Ok(answer);
    }
    let version = discover(client, &path.place).await;
    let Some(version) = version.filter(|version| *version != used.version) else {
        return Ok(answer);
    };
    tracing::info!(
        "{}.{} is used in version {version}: the API server does not have {}",
        path.place.plural,
        path.place.group,
        used.version
    );
    let other = ServedKind { version, ..path.place.clone() };
    found.lock().unwrap_or_else(PoisonError::into_inner).insert(path.key(), other.clone());
    client.send(path.request(&whole, &other)).await
}

/// A request with its body at hand.
async fn read(request: Request<Body>) -> Result<(Parts, Bytes), kube::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|error| kube::Error::Service(error.into()))?;
    Ok((head, body.to_bytes()))
}

/// Does the server not know the path itself? Of an object that is not there it says so in a Status.
fn is_unknown_path(answer: &Response<Body>) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    answer.status() == StatusCode::NOT_FOUND && !kind.is_some_and(|kind| kind.contains("json"))
}

/// The version in which the server has the kind: of several the one that it prefers.
async fn discover(client: &Client, place: &ServedKind) -> Option<String> {
    let group = listed(client, &format!("/apis/{}", place.group)).await?;
    let versions = group["versions"].as_array()?.iter();
    for version in versions.filter_map(|known| known["version"].as_str()) {
        let Some(listed) = listed(client, &format!("/apis/{}/{version}", place.group)).await else {
            continue;
        };
        let mut resources = listed["resources"].as_array().into_iter().flatten();
        if resources.any(|resource| resource["name"] == *place.plural) {
            return Some(version.to_owned());
        }
    }
    None
}

/// What the server says there; whoever may not ask, or gets no answer, goes on as before.
async fn listed(client: &Client, path: &str) -> Option<Value> {
    let request = Request::get(path).body(Body::empty()).ok()?;
    let answer = client.send(request).await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    let body = answer.into_body().collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}

/// The path of an object or a list of a routing kind.
struct ResourcePath {
    place: ServedKind,
    /// Which part of the path the plural is.
    plural_at: usize,
}

impl ResourcePath {
    fn of(uri: &Uri) -> Option<Self> {
        let parts: Vec<&str> = uri.path().split('/').collect();
        let ["", "apis", group, version, third, ..] = parts[..] else { return None };
        let plural_at = if third == "namespaces" { 6 } else { 4 };
        let plural = parts.get(plural_at).filter(|_| GROUPS.contains(&group))?;
        let [group, version, plural] = [group, version, *plural].map(str::to_owned);
        Some(ResourcePath { place: ServedKind { group, version, plural, kind: None }, plural_at })
    }

    fn key(&self) -> (String, String) {
        (self.place.group.clone(), self.place.plural.clone())
    }

    /// The same request for the kind at another place.
    fn request(&self, (head, body): &(Parts, Bytes), place: &ServedKind) -> Request<Body> {
        if *place == self.place {
            return Request::from_parts(head.clone(), Body::from(body.to_vec()));
        }
        let mut head = head.clone();
        head.uri = self.uri(&head.uri, place);
        head.headers.remove(header::CONTENT_LENGTH);
        Request::from_parts(head, Body::from(self.body(body, place)))
    }

    /// The same address at another place.
    fn uri(&self, uri: &Uri, place: &ServedKind) -> Uri {
        let mut parts: Vec<&str> = uri.path().split('/').collect();
        (parts[2], parts[3]) = (&*place.group, &*place.version);
        parts[self.plural_at] = &*place.plural;
        let path = parts.join("/");
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{path}{query}").parse().unwrap_or_else(|_| uri.clone())
    }

    /// A manifest or a patch as it is at another place.
    fn body(&self, body: &Bytes, place: &ServedKind) -> Vec<u8> {
        let Ok(mut value) = serde_json::from_slice::<Value>(body) else { return body.to_vec() };
        if value.get("apiVersion").is_some() {
            value["apiVersion"] = format!("{}/{}", place.group, place.version).into();
        }
        if let (Some(kind), Some(_)) = (place.kind, value.get("kind")) {
            value["kind"] = kind.into();
        }
        if place.group == SMI && place.version != WITH_QUANTITIES {
            with_numbers(&mut value);
        }
        value.to_string().into_bytes()
    }
}

/// The weights of a TrafficSplit as numbers.
fn with_numbers(split: &mut Value) {
    let backends = split.pointer_mut("/spec/backends").and_then(Value::as_array_mut);
    for backend in backends.into_iter().flatten() {
        let number = backend["weight"].as_str().and_then(|text| text.parse::<i64>().ok());
        if let Some(number) = number {
            backend["weight"] = number.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde_json::json;

    use super::*;

    /// A server with one version of TLSRoute, and the paths it was asked for.
    fn server(version: &'static str) -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().to_string();
            heard.lock().unwrap().push(path.clone());
            let group = "/apis/gateway.networking.k8s.io";
            let route = format!("{group}/{version}/namespaces/shop/tlsroutes/web?x=/apis/y");
            let known = match &*path {
                _ if path == group => Some(json!({ "versions": [
                    { "version": "v1beta1" }, { "version": version }
                ] })),
                _ if path == format!("{group}/{version}") => {
                    Some(json!({ "resources": [{ "name": "tlsroutes" }] }))
                }
                _ if path == format!("{group}/v1beta1") => {
                    Some(json!({ "resources": [{ "name": "httproutes" }] }))
                }
                _ if path == route => Some(json!({ "metadata": { "name": "web" } })),
                _ => None,
            };
            let kind = if known.is_some() { "application/json" } else { "text/plain" };
            let status = if known.is_some() { 200 } else { 404 };
            let text = known.map_or_else(|| "404 page not found".to_owned(), |it| it.to_string());
            let answer = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
            let answer = answer.body(axum::body::Body::from(text)).unwrap();
            std::future::ready(Ok::<_, Infallible>(answer))
        });
        (served(Client::new(service, "default")), asked)
    }

    async fn ask(client: &Client, plural: &str) -> u16 {
        let path = format!(
            "/apis/gateway.networking.k8s.io/v1alpha2/namespaces/shop/{plural}/web?x=/apis/y"
        );
        let request = Request::patch(path).body(Body::from(b"{}".to_vec())).unwrap();
        client.send(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn a_kind_is_used_in_the_version_that_the_server_has() {
        let (client, asked) = server("v1");
        assert_eq!(ask(&client, "tlsroutes").await, 200);
        assert_eq!(asked.lock().unwrap().len(), 5, "once, three of discovery, again");
        assert_eq!(ask(&client, "tlsroutes").await, 200);
        assert_eq!(asked.lock().unwrap().len(), 6, "what was found is remembered");
        assert_eq!(ask(&client, "tcproutes").await, 404, "the server has none in any version");
    }

    #[tokio::test]
    async fn a_kind_that_is_there_costs_no_discovery() {
        let (client, asked) = server("v1alpha2");
        assert_eq!(ask(&client, "tlsroutes").await, 200);
        assert_eq!(asked.lock().unwrap().len(), 1);
    }

    #[test]
    fn paths_of_other_groups_are_left_alone() {
        let cases = [
            ("/api/v1/namespaces/shop/services", None),
            ("/apis/argoproj.io/v1alpha1/rollouts", None),
            ("/apis/networking.istio.io", None),
            ("/apis/networking.istio.io/v1alpha3", None),
            ("/apis/networking.istio.io/v1alpha3/virtualservices?watch=1", Some("virtualservices")),
            (
                "/apis/networking.istio.io/v1/namespaces/a/destinationrules",
                Some("destinationrules"),
            ),
        ];
        for (path, plural) in cases {
            let found = ResourcePath::of(&path.parse().unwrap()).map(|path| path.place.plural);
            assert_eq!(found.as_deref(), plural, "{path}");
        }
    }

    /// Kind that is asked for | where it is | the path and the body that the server gets.
    #[tokio::test]
    async fn a_kind_is_where_somebody_says_it_is() {
        let split = json!({
            "apiVersion": "split.smi-spec.io/v1alpha1", "kind": "TrafficSplit",
            "spec": { "backends": [{ "service": "a", "weight": "20" }] },
        });
        let patch = json!({ "spec": { "backends": [{ "service": "a", "weight": "5" }] } });
        let mapping = json!({ "apiVersion": "getambassador.io/v2", "kind": "Mapping" });
        let split_in = |group: &str, version: &str| ServedKind {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: "trafficsplits".to_owned(),
            kind: None,
        };
        let old = ServedKind {
            group: "x.getambassador.io".to_owned(),
            version: "v3alpha1".to_owned(),
            plural: "ambassadormappings".to_owned(),
            kind: Some("AmbassadorMapping"),
        };
        let cases = [
            (
                "split.smi-spec.io/v1alpha1/namespaces/shop/trafficsplits?a=b",
                split_in(SMI, "v1alpha2"),
                split.to_string(),
                "split.smi-spec.io/v1alpha2/namespaces/shop/trafficsplits?a=b",
                r#"{"apiVersion":"split.smi-spec.io/v1alpha2","kind":"TrafficSplit","spec":{"backends":[{"service":"a","weight":20}]}}"#,
            ),
            (
                "split.smi-spec.io/v1alpha1/namespaces/shop/trafficsplits/x",
                split_in(SMI, "v1alpha3"),
                patch.to_string(),
                "split.smi-spec.io/v1alpha3/namespaces/shop/trafficsplits/x",
                r#"{"spec":{"backends":[{"service":"a","weight":5}]}}"#,
            ),
            (
                "getambassador.io/v2/mappings",
                old,
                mapping.to_string(),
                "x.getambassador.io/v3alpha1/ambassadormappings",
                r#"{"apiVersion":"x.getambassador.io/v3alpha1","kind":"AmbassadorMapping"}"#,
            ),
        ];
        for (asked, place, body, path, expected) in cases {
            let heard = Arc::new(Mutex::new(Vec::new()));
            let hears = Arc::clone(&heard);
            let service = tower::service_fn(move |request: Request<Body>| {
                let hears = Arc::clone(&hears);
                async move {
                    let (head, body) = read(request).await?;
                    let body = String::from_utf8(body.to_vec()).unwrap();
                    hears.lock().unwrap().push((head.uri.to_string(), body));
                    Ok::<_, kube::Error>(Response::new(axum::body::Body::empty()))
                }
            });
            let uri: Uri = format!("/apis/{asked}").parse().unwrap();
            let key = ResourcePath::of(&uri).unwrap().key();
            let client =
                placed(Client::new(service, "default"), &ServedKinds::from([(key, place)]));
            let request = Request::post(uri).body(Body::from(body.into_bytes())).unwrap();
            client.send(request).await.unwrap();
            let wanted = (format!("/apis/{path}"), expected.to_owned());
            assert_eq!(*heard.lock().unwrap(), [wanted], "{asked}");
        }
    }
}
