//! The cluster behind HTTP paths, as one tower service.

mod body;
mod options;
mod protobuf;
mod query;
mod render;
mod reviews;
mod route;
mod twice;
mod watch;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use serde_json::Value;

use crate::error::ApiError;
use crate::kinds::{KindId, Kinds};
use crate::request::{Reply, Request as Call, Subresource, Verb};
use crate::server::Shared;
use crate::{discovery, openapi};

use query::Query;
use render::Shape;
use route::{Route, RouteTarget};

pub(crate) use reviews::REVIEWS;
pub(crate) use route::Discovery;

/// The largest body that is read, as a real API server has it.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// What answers carry: a document, or the stream of a watch.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What a hook is told about a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestInfo<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The path, without the query.
    pub path: &'a str,
    /// The query, empty if there is none.
    pub query: &'a str,
    /// The `User-Agent` header, empty if there is none.
    pub user_agent: &'a str,
    /// The `Authorization` header, empty if there is none.
    pub authorization: &'a str,
    /// The body as sent.
    pub body: &'a [u8],
}

/// What a hook wants to happen to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAction {
    /// Carry it out.
    Pass,
    /// Carry it out after a while.
    Delay(Duration),
    /// Answer so, and do nothing.
    Refuse(ApiError),
    /// Do nothing and close the connection.
    Drop,
    /// Carry it out, but close the connection instead of answering.
    LoseAnswer,
}

/// Sees every request before it is carried out.
pub type Hook = dyn Fn(&RequestInfo<'_>) -> HookAction + Send + Sync;

/// The connection was closed instead of an answer, because a hook said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was closed before an answer was sent")]
pub struct NoAnswer;

/// The HTTP side of a cluster. Clones are the same server.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
}

impl Service {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = NoAnswer;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, NoAnswer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = self.shared.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match Limited::new(body, MAX_BODY_BYTES).collect().await {
                Ok(body) => answer(&shared, &parts, &body.to_bytes()).await,
                Err(_) => Ok(refusal(&too_large())),
            }
        })
    }
}

async fn answer(
    shared: &Arc<Shared>,
    parts: &Parts,
    body: &Bytes,
) -> Result<Response<Body>, NoAnswer> {
    match shared.hook().map_or(HookAction::Pass, |hook| hook(&seen(parts, body))) {
        HookAction::Pass => Ok(respond(shared, parts, body)),
        HookAction::Delay(wait) => {
            tokio::time::sleep(wait).await;
            Ok(respond(shared, parts, body))
        }
        HookAction::Refuse(error) => Ok(refusal(&error)),
        HookAction::Drop => Err(NoAnswer),
        HookAction::LoseAnswer => {
            drop(respond(shared, parts, body));
            Err(NoAnswer)
        }
    }
}

fn seen<'a>(parts: &'a Parts, body: &'a [u8]) -> RequestInfo<'a> {
    RequestInfo {
        method: &parts.method,
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        user_agent: header_text(parts, header::USER_AGENT),
        authorization: header_text(parts, header::AUTHORIZATION),
        body,
    }
}

fn respond(shared: &Arc<Shared>, parts: &Parts, body: &Bytes) -> Response<Body> {
    let response = whole_response(shared, parts, body);
    if parts.method == Method::HEAD {
        return response.map(|_| Full::default().boxed_unsync());
    }
    response
}

fn whole_response(shared: &Arc<Shared>, parts: &Parts, body: &Bytes) -> Response<Body> {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let kinds = shared.with(|cluster, _| cluster.kinds().clone());
    let accept = header_text(parts, header::ACCEPT);
    let host = header_text(parts, header::HOST);
    let route = route::route(&kinds, parts.uri.path());
    if route.method(&kinds).is_some_and(|method| method != parts.method) {
        return refusal(&method_not_allowed());
    }
    match route {
        Route::Healthy => text(StatusCode::OK, "ok"),
        Route::NoPage => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        Route::NoResource => refusal(&no_such_resource()),
        Route::NoSide(kind, name) => refusal(&ApiError::not_found(kinds.get(kind), &name)),
        Route::Container(namespace, name) => {
            let pod =
                shared.with(|cluster, _| cluster.get(KindId::POD, &namespace, &name).cloned());
            refusal(&match pod {
                Some(_) => no_container(),
                None => ApiError::not_found(kinds.get(KindId::POD), &name),
            })
        }
        Route::Version => json(StatusCode::OK, &discovery::version()),
        Route::Discovery(what) => match discovery::document(&kinds, &what, accept, host) {
            Some((content_type, document)) => typed(StatusCode::OK, content_type, &document),
            None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        },
        Route::OpenApiV2 => response(
            StatusCode::OK,
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            Full::new(Bytes::from(openapi::version_2())).boxed_unsync(),
        ),
        Route::OpenApiIndex => json(StatusCode::OK, &openapi::index(&kinds)),
        Route::OpenApi(path) => match openapi::document(&kinds, &path) {
            Some(document) => json(StatusCode::OK, &document),
            None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        },
        Route::Review(review) => {
            let user = user(parts);
            let reply = body::object(parts, body, None).map(|body| review.answer(body, &user));
            match reply {
                Ok(document) => json(StatusCode::CREATED, &document),
                Err(error) => refusal(&error),
            }
        }
        Route::Resource(target) => {
            let mut asked =
                ObjectRequest { shared, kinds: &kinds, parts, body, query: &query, target };
            asked.answer().unwrap_or_else(|error| refusal(&error))
        }
    }
}

/// A request for objects, on its way to the cluster.
struct ObjectRequest<'a> {
    shared: &'a Arc<Shared>,
    kinds: &'a Arc<Kinds>,
    parts: &'a Parts,
    body: &'a Bytes,
    query: &'a Query,
    target: RouteTarget,
}

impl ObjectRequest<'_> {
    fn answer(&mut self) -> Result<Response<Body>, ApiError> {
        let shape = Shape::negotiate(header_text(self.parts, header::ACCEPT), self.query)?;
        let verb = self.verb()?;
        if verb == Verb::List && self.query.flag("watch") {
            let watch = watch::Watch::new(self.shared.clone(), &self.target, self.query, shape)?;
            return Ok(stream(watch));
        }
        let mut call = Call::new(verb, self.target.kind, &self.target.namespace, &self.target.name)
            .on(self.target.subresource);
        options::read(&mut call, self.query)?;
        call.options.user = user(self.parts).into();
        let warnings = body::read(&mut call, self.kinds, self.parts, self.body)?;
        let reply = self.shared.with(|cluster, now| {
            let mut reply = cluster.call(&call, now)?;
            reply.warnings.extend(warnings);
            let document = shape.render(&reply, cluster.kinds(), now);
            Ok::<_, ApiError>((reply, document))
        });
        let (reply, document) = reply?;
        Ok(success(&reply, &document, shape))
    }

    fn verb(&self) -> Result<Verb, ApiError> {
        let RouteTarget { kind, namespace, name, subresource } = &self.target;
        let has_name = !name.is_empty();
        // A namespaced kind can be listed over all namespaces, but nothing else.
        let is_everywhere = self.kinds.get(*kind).namespaced && namespace.is_empty();
        if is_everywhere && has_name {
            return Err(no_such_resource());
        }
        let is_made_by_post = matches!(subresource, Subresource::Eviction | Subresource::Binding);
        match self.parts.method {
            // Only custom kinds can be asked for their heads.
            Method::HEAD if !self.kinds.get(*kind).custom => Err(method_not_allowed()),
            Method::GET | Method::HEAD if has_name && !is_made_by_post => Ok(Verb::Get),
            Method::GET | Method::HEAD if !has_name => Ok(Verb::List),
            Method::POST if is_made_by_post => Ok(Verb::Create),
            Method::POST if !has_name && !is_everywhere => Ok(Verb::Create),
            Method::PUT if has_name && !is_made_by_post => Ok(Verb::Update),
            Method::PATCH if has_name && !is_made_by_post => {
                body::patch_kind(self.parts, self.kinds.get(*kind)).map(Verb::Patch)
            }
            Method::DELETE if has_name && *subresource == Subresource::None => Ok(Verb::Delete),
            Method::DELETE if !has_name && !is_everywhere && *kind != KindId::NAMESPACE => {
                Ok(Verb::DeleteCollection)
            }
            _ => Err(method_not_allowed()),
        }
    }
}

fn success(reply: &Reply, document: &Value, shape: Shape) -> Response<Body> {
    let status = if reply.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = typed(status, shape.content_type(), document);
    for warning in &reply.warnings {
        let text = format!("299 - {warning:?}");
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

fn refusal(error: &ApiError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &error.to_json());
    let wait = error.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if wait > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
    }
    response
}

fn json(status: StatusCode, document: &Value) -> Response<Body> {
    typed(status, "application/json", document)
}

fn typed(status: StatusCode, content_type: &'static str, document: &Value) -> Response<Body> {
    let mut text = document.to_string();
    text.push('\n');
    response(status, content_type, Full::new(Bytes::from(text)).boxed_unsync())
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let body = Full::new(Bytes::from_static(text.as_bytes())).boxed_unsync();
    response(status, "text/plain; charset=utf-8", body)
}

fn stream(watch: watch::Watch) -> Response<Body> {
    response(StatusCode::OK, "application/json", watch.into_body())
}

fn response(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn no_such_resource() -> ApiError {
    let message = "the server could not find the requested resource".into();
    ApiError { code: 404, reason: "NotFound", message, details: Some(Box::default()) }
}

/// Pods are played: there is nothing to read from, to run in or to connect to.
fn no_container() -> ApiError {
    let message = "no containers run in this cluster, its pods are played: there are no logs, and \
                   nothing to execute, attach or connect to";
    ApiError { code: 501, reason: "NotImplemented", message: message.into(), details: None }
}

fn method_not_allowed() -> ApiError {
    let message = "the server does not allow this method on the requested resource".into();
    ApiError { code: 405, reason: "MethodNotAllowed", message, details: Some(Box::default()) }
}

fn too_large() -> ApiError {
    let message = format!("Request entity too large: limit is {MAX_BODY_BYTES}");
    ApiError { code: 413, reason: "RequestEntityTooLarge", message, details: None }
}

/// Who asks: the bearer token, or else the program's name.
fn user(parts: &Parts) -> String {
    let token = header_text(parts, header::AUTHORIZATION).strip_prefix("Bearer ");
    let agent = header_text(parts, header::USER_AGENT);
    token.unwrap_or_else(|| agent.split(['/', ' ']).next().unwrap_or_default()).to_owned()
}

fn header_text(parts: &Parts, name: header::HeaderName) -> &str {
    parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
