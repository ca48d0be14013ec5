//! In which version does the server have a routing kind? The versions of one kind have the same shape, and
//! which of them is served depends on the release that was installed: discovery says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// The groups whose kinds are the same in every version. Objects of these are never created by us.
const GROUPS: [&str; 2] = ["gateway.networking.k8s.io", "networking.istio.io"];

/// The versions that were found, by group and plural, where they are not the ones that are asked for.
type Found = Arc<Mutex<BTreeMap<(String, String), String>>>;

/// The same client. A kind that the server does not have in the version asked for is used in the one that
/// it has.
pub fn served(client: Client) -> Client {
    let (default_namespace, found) = (client.default_namespace().to_owned(), Found::default());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, found) = (client.clone(), Arc::clone(&found));
        async move {
            match ResourcePath::of(request.uri()) {
                Some(path) => send(&client, &found, path, request).await,
                None => client.send(request).await,
            }
        }
    });
    Client::new(service, default_namespace)
}

async fn send(
    client: &Client,
    found: &Found,
    path: ResourcePath,
    request: Request<Body>,
) -> Result<Response<Body>, kube::Error> {
    let key = (path.group.clone(), path.plural.clone());
    let known = found.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    let used = known.unwrap_or_else(|| path.version.clone());
    let again = request.body().try_clone();
    let (mut head, body) = request.into_parts();
    head.uri = path.in_version(&used, &head.uri);
    let answer = client.send(Request::from_parts(head.clone(), body)).await?;
    let Some(body) = again.filter(|_| is_unknown_path(&answer)) else { return Ok(answer) };
    let Some(version) = discover(client, &path).await.filter(|version| *version != used) else {
        return Ok(answer);
    };
    tracing::info!(
        "{}.{} is used in version {version}: the API server does not have {used}",
        path.plural,
        path.group
    );
    head.uri = path.in_version(&version, &head.uri);
    found.lock().unwrap_or_else(PoisonError::into_inner).insert(key, version);
    client.send(Request::from_parts(head, body)).await
}

/// Does the server not know the path itself? Of an object that is not there it says so in a Status.
fn is_unknown_path(answer: &Response<Body>) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    answer.status() == StatusCode::NOT_FOUND && !kind.is_some_and(|kind| kind.contains("json"))
}

/// The version in which the server has the kind: of several the one that it prefers.
async fn discover(client: &Client, path: &ResourcePath) -> Option<String> {
    let group = read(client, &format!("/apis/{}", path.group)).await?;
    let versions = group["versions"].as_array()?.iter();
    for version in versions.filter_map(|known| known["version"].as_str()) {
        let Some(listed) = read(client, &format!("/apis/{}/{version}", path.group)).await else {
            continue;
        };
        let mut resources = listed["resources"].as_array().into_iter().flatten();
        if resources.any(|resource| resource["name"] == *path.plural) {
            return Some(version.to_owned());
        }
    }
    None
}

/// What the server says there; whoever may not ask, or gets no answer, goes on as before.
async fn read(client: &Client, path: &str) -> Option<Value> {
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
    group: String,
    version: String,
    plural: String,
}

impl ResourcePath {
    fn of(uri: &Uri) -> Option<Self> {
        let mut parts = uri.path().split('/').skip(1);
        let (root, group, version) = (parts.next()?, parts.next()?, parts.next()?);
        if root != "apis" || !GROUPS.contains(&group) {
            return None;
        }
        let plural = match parts.next()? {
            "namespaces" => parts.nth(1)?,
            plural => plural,
        };
        let [group, version, plural] = [group, version, plural].map(str::to_owned);
        Some(ResourcePath { group, version, plural })
    }

    /// The same address in another version.
    fn in_version(&self, version: &str, uri: &Uri) -> Uri {
        let head = format!("/apis/{}/", self.group);
        let text = uri.to_string();
        let Some((before, after)) = text.split_once(&head) else { return uri.clone() };
        let Some((_, rest)) = after.split_once('/') else { return uri.clone() };
        format!("{before}{head}{version}/{rest}").parse().unwrap_or_else(|_| uri.clone())
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
            let found = ResourcePath::of(&path.parse().unwrap()).map(|path| path.plural);
            assert_eq!(found.as_deref(), plural, "{path}");
        }
    }
}
