//! Reads the secrets that a request refers to. They are used for that request and kept nowhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gradus_api::analysis::Measurement;
use gradus_engine::ask::http::{Auth, HttpError, HttpOutcome, HttpReply, HttpRequest};
use gradus_engine::ask::secret::{
    Encoding, SecretError, SecretPlace, SecretRef, SecretText, has_marker,
};
use gradus_engine::ask::{Class, MetricReply};
use gradus_engine::decision::ObjectRef;
use gradus_engine::kinds;
use serde_json::Value;

use super::http::user;
use crate::cluster::{Cluster, WriteError};
use crate::hidden::Hidden;

/// A request as it would be sent: with its secrets.
pub struct Sent {
    /// Where to.
    pub url: String,
    /// What is sent.
    pub body: String,
    hidden: Hidden,
}

/// A request with its secrets, for whoever answers it in this process. `own` is the namespace of the
/// object that asks, `home` that of the controller.
pub async fn sent<C: Cluster>(
    cluster: &C,
    own: &Arc<str>,
    home: Option<&str>,
    request: &HttpRequest,
) -> Result<Result<Sent, HttpError>, WriteError> {
    let read = Secrets { cluster, own, home }.read(request).await?;
    Ok(read.and_then(|values| {
        let body = request.body.as_ref();
        Ok(Sent {
            url: values.resolve(&request.url)?,
            body: body.map_or(Ok(String::new()), |body| values.resolve(body))?,
            hidden: values.hidden(request),
        })
    }))
}

impl Sent {
    /// An answer in which no secret is left that was sent.
    pub fn cleaned(&self, outcome: HttpOutcome) -> HttpOutcome {
        cleaned(outcome, &self.hidden)
    }
}

/// Where the secrets of one request are.
pub(super) struct Secrets<'e, C> {
    pub(super) cluster: &'e C,
    /// The namespace of the object that asks.
    pub(super) own: &'e Arc<str>,
    /// The namespace of the controller.
    pub(super) home: Option<&'e str>,
}

/// The values of one request.
#[derive(Default)]
pub(super) struct Values {
    secrets: BTreeMap<(SecretPlace, String), Option<Value>>,
}

impl<C: Cluster> Secrets<'_, C> {
    /// Reads every Secret that a request refers to; else why it cannot be sent. An API server that does
    /// not answer says nothing about the request: it is asked again.
    pub(super) async fn read(
        &self,
        request: &HttpRequest,
    ) -> Result<Result<Values, HttpError>, WriteError> {
        self.read_all(&request.references()).await
    }

    /// A JSON value whose texts have their secrets, and what must not be seen of them.
    pub(super) async fn fill(
        &self,
        marked: &Value,
    ) -> Result<Result<(Value, Hidden), HttpError>, WriteError> {
        let mut texts = Vec::new();
        collect(marked, &mut texts);
        let references: Vec<&SecretRef> = texts.iter().flat_map(SecretText::references).collect();
        let values = self.read_all(&references).await?;
        Ok(values.and_then(|values| Ok((values.filled(marked)?, values.hidden_of(&references)))))
    }

    async fn read_all(
        &self,
        references: &[&SecretRef],
    ) -> Result<Result<Values, HttpError>, WriteError> {
        let mut values = Values::default();
        for SecretRef { place, name, .. } in references {
            let at = (*place, name.clone());
            if *place == SecretPlace::Environment || values.secrets.contains_key(&at) {
                continue;
            }
            let invalid = |message: String| Ok(Err(HttpError::Invalid(message)));
            let namespace = match (place, self.home) {
                (SecretPlace::Controller, Some(home)) => home,
                (SecretPlace::Controller, None) => {
                    return invalid("the controller runs in no namespace".to_owned());
                }
                (SecretPlace::Own | SecretPlace::Environment, _) => self.own,
            };
            let target = ObjectRef::new(kinds::SECRET, &namespace.into(), &name.as_str().into());
            match self.cluster.read_whole(&target).await {
                Ok(found) => values.secrets.insert(at, found),
                Err(error) if error.class == Class::Denied => {
                    return invalid(format!("{target}: {}", error.message));
                }
                Err(error) => return Err(error),
            };
        }
        Ok(Ok(values))
    }
}

impl Values {
    /// A text with its secrets.
    pub(super) fn resolve(&self, text: &SecretText) -> Result<String, HttpError> {
        Ok(text.resolve(&mut |reference| self.value(reference))?)
    }

    fn value(&self, reference: &SecretRef) -> Result<Option<String>, SecretError> {
        let SecretRef { place, name, key, along, .. } = reference;
        let variable = |name: &String| std::env::var(name).ok();
        if along.iter().any(|name| variable(name).is_none()) {
            return Ok(None);
        }
        if *place == SecretPlace::Environment {
            return Ok(variable(key));
        }
        let secret = self.secrets.get(&(*place, name.clone())).and_then(Option::as_ref);
        let secret = secret.ok_or_else(|| SecretError::NoSecret(name.clone()))?;
        let bytes = secret["data"][key].as_str().and_then(|text| STANDARD.decode(text).ok());
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn filled(&self, marked: &Value) -> Result<Value, HttpError> {
        Ok(match marked {
            Value::String(text) => Value::String(self.resolve(&SecretText::from_marked(text))?),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.filled(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, one)| Ok((key.clone(), self.filled(one)?)));
                Value::Object(fields.collect::<Result<_, HttpError>>()?)
            }
            other => other.clone(),
        })
    }

    /// Every value that must not be seen: of all references of a request, and the credentials that
    /// are made of them.
    pub(super) fn hidden(&self, request: &HttpRequest) -> Hidden {
        let mut hidden = self.hidden_of(&request.references());
        let pair = match &request.auth {
            Auth::Basic { user, password } => Some((user, password)),
            Auth::OAuth2 { client_id, client_secret, .. } => Some((client_id, client_secret)),
            Auth::None | Auth::Bearer(_) | Auth::SigV4 { .. } => None,
        };
        if let Some((user, password)) = pair
            && !(user.references().is_empty() && password.references().is_empty())
            && let (Ok(user), Ok(password)) = (self.resolve(user), self.resolve(password))
        {
            hidden.add(&format!("{user}:{password}"));
            hidden.add(&form_pair(&user, &password));
        }
        let url = Some(&request.url).filter(|url| !url.references().is_empty());
        let user = url.and_then(|url| user::of(&self.resolve(url).ok()?));
        user.into_iter().for_each(|user| hidden.add(&user));
        hidden
    }

    fn hidden_of(&self, references: &[&SecretRef]) -> Hidden {
        // What a table translates is one of a few words, as the name of a region: no secret.
        let secret = references.iter().filter(|reference| reference.table.is_empty());
        Hidden::of(secret.filter_map(|reference| self.value(reference).ok().flatten()))
    }
}

/// An outcome in which no secret is left.
pub(super) fn cleaned(outcome: HttpOutcome, hidden: &Hidden) -> HttpOutcome {
    let clean = |text: String| hidden.clean(&text);
    match outcome {
        Ok(reply) => Ok(HttpReply {
            headers: reply.headers.into_iter().map(|(name, text)| (name, clean(text))).collect(),
            body: hidden.clean_body(&reply.body).into(),
            ..reply
        }),
        Err(HttpError::Connect(text)) => Err(HttpError::Connect(clean(text))),
        Err(HttpError::Tls(text)) => Err(HttpError::Tls(clean(text))),
        Err(HttpError::Forbidden(text)) => Err(HttpError::Forbidden(clean(text))),
        Err(HttpError::Invalid(text)) => Err(HttpError::Invalid(clean(text))),
        Err(HttpError::Auth(text)) => Err(HttpError::Auth(clean(text))),
        Err(error @ (HttpError::Timeout(_) | HttpError::TooLarge | HttpError::Secret(_))) => {
            Err(error)
        }
    }
}

/// A measurement in which no secret is left.
pub(super) fn cleaned_metric(reply: MetricReply, hidden: &Hidden) -> MetricReply {
    let clean = |text: String| hidden.clean(&text);
    let texts = |all: BTreeMap<String, String>| {
        all.into_iter().map(|(key, text)| (clean(key), clean(text))).collect()
    };
    match reply {
        MetricReply::Measured(measured) => MetricReply::Measured(Box::new(Measurement {
            message: clean(measured.message),
            value: clean(measured.value),
            metadata: texts(measured.metadata),
            ..*measured
        })),
        MetricReply::Metadata(found) => MetricReply::Metadata(texts(found)),
        MetricReply::Broken(why) => MetricReply::Broken(clean(why)),
        MetricReply::Unusable(why) => MetricReply::Unusable(clean(why)),
        reply @ (MetricReply::Done | MetricReply::NoSecret(_)) => reply,
    }
}

/// The texts of a JSON value that refer to secrets.
fn collect(value: &Value, texts: &mut Vec<SecretText>) {
    match value {
        Value::String(text) if has_marker(text) => texts.push(SecretText::from_marked(text)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, texts)),
        _ => {}
    }
}

/// User and password as the Basic header of a token request has them.
pub(super) fn form_pair(user: &str, password: &str) -> String {
    format!("{}:{}", Encoding::Form.apply(user), Encoding::Form.apply(password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_counts_only_where_those_beside_it_are_set() {
        let values = Values::default();
        let of = |reference: SecretRef| values.value(&reference).unwrap();
        let path = || SecretRef::new(SecretPlace::Environment, "", "PATH");
        assert!(of(path()).is_some());
        assert!(of(path().along(&["PATH"])).is_some());
        assert_eq!(of(path().along(&["PATH", "GRADUS_NO_SUCH_VARIABLE"])), None);
    }
}
