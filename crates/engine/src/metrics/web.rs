//! Any HTTP endpoint that answers with JSON, of which a JSONPath selects the value.

use gradus_api::metrics::{OAuth2, WebMetric};
use gradus_jsonpath::{JsonPath, PathError};
use serde_json::Value;

use super::format::{floats, go_json};
use super::{Call, MetricFault, MetricValue, Next, Observed, Provider, Reading, seconds, shown};
use crate::ask::Effect;
use crate::ask::http::{Auth, HttpReply, HttpRequest, Method, Tls};
use crate::ask::secret::{Encoding, SecretText};

/// An HTTP endpoint.
pub struct Web<'a>(pub &'a WebMetric);

/// How long an answer may take, in seconds, where the metric does not say.
const TIMEOUT: i64 = 10;
const EXPECTED: &str = "a 2xx answer with the value at the jsonPath";

impl Provider for Web<'_> {
    fn kind(&self) -> &'static str {
        "Web"
    }

    fn address(&self) -> String {
        shown(&SecretText::from_marked(&self.0.url))
    }

    fn query(&self) -> String {
        SecretText::from_marked(self.path()).to_string()
    }

    fn next(&self, _: Call<'_>, seen: &Observed<'_>) -> Next {
        let request = match self.request() {
            Ok(request) => request,
            Err(message) => return Next::refused(message),
        };
        match seen.replies {
            [] => {
                let is_read = request.method == Method::Get;
                let effect = if is_read { Effect::Reads } else { Effect::Acts };
                Next::Send(Box::new(request), effect)
            }
            [Err(error), ..] => {
                Next::Done(Reading::Error(MetricFault::unanswered(&request, error, EXPECTED)))
            }
            [Ok(reply), ..] => self.read(reply),
        }
    }
}

impl Web<'_> {
    /// Where the value is in the answer.
    fn path(&self) -> &str {
        if self.0.json_path.is_empty() { "{$}" } else { &self.0.json_path }
    }

    fn request(&self) -> Result<HttpRequest, String> {
        let spec = self.0;
        let method = match &*spec.method {
            "" | "GET" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            other => return Err(format!("unsupported method {other:?}: use GET, POST or PUT")),
        };
        let (has_text, has_json) = (!spec.body.is_empty(), spec.json_body.is_some());
        if has_text && has_json {
            let message = "use either Body or JSONBody; both cannot exists for WebMetric payload";
            return Err(message.to_owned());
        }
        if (has_text || has_json) && method == Method::Get {
            let message = "Body/JSONBody can only be used with POST or PUT WebMetric Method types";
            return Err(message.to_owned());
        }
        if let Err(PathError::Syntax(message)) = JsonPath::parse(self.path()) {
            return Err(message);
        }
        let timeout = if spec.timeout_seconds > 0 { spec.timeout_seconds } else { TIMEOUT };
        let url = SecretText::from_marked(&spec.url);
        let mut request = HttpRequest { method, ..HttpRequest::get(url, seconds(timeout)) };
        for header in &spec.headers {
            request = request.header(&header.key, SecretText::from_marked(&header.value));
        }
        if let Some(json) = &spec.json_body {
            request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            request = request.header("Content-Type", "application/json");
            request.body = Some(json_text(json));
        } else if has_text {
            request.body = Some(SecretText::from_marked(&spec.body));
        }
        let authentication = &spec.authentication.oauth2;
        if !authentication.token_url.is_empty() {
            let (id, secret) = (&authentication.client_id, &authentication.client_secret);
            if id.is_empty() || secret.is_empty() {
                return Err("missing mandatory parameter in metric for OAuth2 setup".to_owned());
            }
            request.auth = oauth2(authentication);
        }
        request.tls = Tls { insecure: spec.insecure, ca: None };
        Ok(request)
    }

    fn read(&self, reply: &HttpReply) -> Next {
        if !(200..=299).contains(&reply.status) {
            let message = format!("received non 2xx response code: {}", reply.status);
            return Next::bad(message, EXPECTED);
        }
        let body = match serde_json::from_str::<Value>(&reply.body) {
            Ok(body) => floats(body),
            // Not JSON: the text itself is the value, whatever the path says.
            Err(_) => {
                let text = reply.body.to_string();
                return Next::value(MetricValue::Text(text.clone()), text);
            }
        };
        match JsonPath::parse(self.path()).and_then(|path| path.first(&body)) {
            Ok(Some(value)) => {
                let text = go_json(&value);
                let result = match value {
                    Value::Null => MetricValue::Nil,
                    value => MetricValue::Json(value),
                };
                Next::value(result, text)
            }
            Ok(None) => Next::bad("result of web metric produced no value", EXPECTED),
            Err(PathError::Syntax(message)) => Next::refused(message),
            Err(error) => Next::bad(format!("Could not find JSONPath in body: {error}"), EXPECTED),
        }
    }
}

/// Client credentials, for Prometheus too.
pub(super) fn oauth2(spec: &OAuth2) -> Auth {
    let text = |text: &String| SecretText::from_marked(text);
    Auth::OAuth2 {
        token_url: text(&spec.token_url),
        client_id: text(&spec.client_id),
        client_secret: text(&spec.client_secret),
        scopes: spec.scopes.iter().map(text).collect(),
    }
}

/// JSON as text, with secrets inside its strings.
fn json_text(json: &Value) -> SecretText {
    // Markers are not escaped by JSON, and what replaces them is.
    SecretText::from_marked(&json.to_string()).with_secrets(Encoding::Json)
}
