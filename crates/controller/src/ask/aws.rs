//! Signs requests with AWS credentials (Signature Version 4). The secret key is used here and sent
//! nowhere.

mod chain;
mod profile;

use aws_lc_rs::{digest, hmac};
use gradus_engine::ask::http::HttpError;
use http::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Uri};
use jiff::Timestamp;

pub(super) use chain::WantedCredentials;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// Who the controller is for AWS. It is never printed.
#[derive(Clone)]
pub(super) struct Credentials {
    key_id: String,
    secret: String,
    session: Option<String>,
    /// When they end, if they do.
    expires: Option<Timestamp>,
}

/// What a signature holds for.
pub(super) struct SigningScope<'s> {
    pub(super) region: &'s str,
    pub(super) service: &'s str,
    pub(super) now: Timestamp,
}

/// A request that is to be signed.
pub(super) struct Unsigned<'r> {
    pub(super) method: &'r str,
    pub(super) uri: &'r Uri,
    pub(super) headers: &'r HeaderMap,
    pub(super) body: &'r [u8],
}

impl Credentials {
    /// The credentials that variables of the environment name.
    fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let value = |name: &str| variable(name).filter(|value| !value.is_empty());
        Some(Credentials {
            key_id: value("AWS_ACCESS_KEY_ID")?,
            secret: value("AWS_SECRET_ACCESS_KEY")?,
            session: value("AWS_SESSION_TOKEN"),
            expires: None,
        })
    }

    /// What no answer and no error may show.
    pub(super) fn hidden(&self) -> impl Iterator<Item = &String> {
        [&self.key_id, &self.secret].into_iter().chain(&self.session)
    }
}

/// The region that a request names, or else that of the environment.
pub(super) fn region(
    named: String,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, HttpError> {
    let of_environment = ["AWS_REGION", "AWS_DEFAULT_REGION"].into_iter().filter_map(variable);
    let mut known = std::iter::once(named).chain(of_environment);
    known.find(|region| !region.is_empty()).ok_or_else(|| {
        HttpError::Auth("no AWS region is configured for the controller: set AWS_REGION".to_owned())
    })
}

/// The headers that sign a request. Everything that is sent is signed: `request` has all its headers
/// but these, and its query is as [`canonical_query`] writes it.
pub(super) fn signature(
    request: &Unsigned<'_>,
    credentials: &Credentials,
    scope: &SigningScope<'_>,
) -> Result<HeaderMap, HttpError> {
    let value = |text: &str| {
        HeaderValue::from_str(text)
            .map_err(|_| HttpError::Auth("an AWS credential is no text of a header".to_owned()))
    };
    let time = scope.now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut added = HeaderMap::new();
    let host = request.uri.authority().map_or("", |authority| authority.as_str());
    added.insert(HOST, value(host.rsplit('@').next().unwrap_or_default())?);
    added.insert(DATE, value(&time)?);
    if let Some(session) = &credentials.session {
        added.insert(TOKEN, value(session)?);
    }
    let mut headers = request.headers.clone();
    headers.extend(added.clone());
    let (signed, canonical) = canonical(request, &headers);
    let day = time.get(..8).unwrap_or_default();
    let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let text =
        format!("{ALGORITHM}\n{time}\n{place}\n{}", hexadecimal(&hash(canonical.as_bytes())));
    let key = [day, scope.region, scope.service, "aws4_request"]
        .into_iter()
        .fold(format!("AWS4{}", credentials.secret).into_bytes(), |key, part| keyed(&key, part));
    let signature = hexadecimal(&keyed(&key, &text));
    let id = &credentials.key_id;
    added.insert(
        AUTHORIZATION,
        value(&format!(
            "{ALGORITHM} Credential={id}/{place}, SignedHeaders={signed}, Signature={signature}"
        ))?,
    );
    Ok(added)
}

/// A query in the one order and encoding in which it is signed.
pub(super) fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (encoded(&decoded(name), ""), encoded(&decoded(value), ""))
        })
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// The names of the signed headers, and the request in the form that is signed.
fn canonical(request: &Unsigned<'_>, headers: &HeaderMap) -> (String, String) {
    let mut names: Vec<&HeaderName> = headers.keys().collect();
    names.sort_by_key(|name| name.as_str());
    let line = |name: &&HeaderName| {
        let values = headers.get_all(*name).iter().map(|value| {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        });
        format!("{name}:{}\n", values.collect::<Vec<_>>().join(","))
    };
    let lines: String = names.iter().map(line).collect();
    let signed: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    let signed = signed.join(";");
    let path = match request.uri.path() {
        "" => "/".to_owned(),
        path => encoded(path.as_bytes(), "/"),
    };
    let query = canonical_query(request.uri.query().unwrap_or_default());
    let body = hexadecimal(&hash(request.body));
    let canonical = format!("{}\n{path}\n{query}\n{lines}\n{signed}\n{body}", request.method);
    (signed, canonical)
}

/// The bytes that a part of a query stands for.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut found = Vec::new();
    while let Some(byte) = bytes.next() {
        let ahead: Vec<u8> = bytes.clone().take(2).collect();
        let pair = std::str::from_utf8(&ahead).ok().filter(|pair| pair.len() == 2);
        let escaped = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (byte, escaped) {
            (b'%', Some(escaped)) => {
                found.push(escaped);
                bytes.nth(1);
            }
            (b'+', _) => found.push(b' '),
            (byte, _) => found.push(byte),
        }
    }
    found
}

/// Bytes in the encoding of RFC 3986, except for those that stay.
fn encoded(bytes: &[u8], staying: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: &u8| match *byte {
        byte if is_plain(byte) || staying.as_bytes().contains(&byte) => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    bytes.iter().map(one).collect()
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}

fn keyed(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key pair of AWS' published examples.
    fn example(session: Option<&str>) -> Credentials {
        Credentials {
            key_id: "AKIDEXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session: session.map(str::to_owned),
            expires: None,
        }
    }

    fn signed(service: &str, method: &str, uri: &str, headers: &[(&str, &str)]) -> HeaderMap {
        let (uri, now) = (uri.parse().unwrap(), "2015-08-30T12:36:00Z".parse().unwrap());
        let headers = headers.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        });
        let headers: HeaderMap = headers.collect();
        let request = Unsigned { method, uri: &uri, headers: &headers, body: b"" };
        let scope = SigningScope { region: "us-east-1", service, now };
        signature(&request, &example(None), &scope).unwrap()
    }

    #[test]
    fn signatures_are_those_of_the_published_examples() {
        let plain = "https://example.amazonaws.com/";
        let query = "https://example.amazonaws.com/?Param2=value2&Param1=value1";
        let users = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08";
        let form = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");
        let cases = [
            (
                "get-vanilla",
                signed("service", "GET", plain, &[]),
                "host;x-amz-date",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "post-vanilla",
                signed("service", "POST", plain, &[]),
                "host;x-amz-date",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "get-vanilla-query-order-key-case",
                signed("service", "GET", query, &[]),
                "host;x-amz-date",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                "the example of the general reference",
                signed("iam", "GET", users, &[form]),
                "content-type;host;x-amz-date",
                "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
            ),
        ];
        for (what, headers, names, signature) in cases {
            let given = headers[AUTHORIZATION].to_str().unwrap();
            let expected = format!("SignedHeaders={names}, Signature={signature}");
            assert!(given.ends_with(&expected), "{what}: {given}");
            let begins = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/";
            assert!(given.starts_with(begins), "{what}: {given}");
        }
    }

    #[test]
    fn a_query_has_one_form() {
        let cases = [
            ("", ""),
            ("b=2&a=1", "a=1&b=2"),
            ("query=sum(rate(x[5m]))+by", "query=sum%28rate%28x%5B5m%5D%29%29%20by"),
            ("a=%2f%C3%A9&flag", "a=%2F%C3%A9&flag="),
            ("a=100%&b=%zz", "a=100%25&b=%25zz"),
        ];
        for (query, expected) in cases {
            assert_eq!(canonical_query(query), expected, "{query}");
            assert_eq!(canonical_query(expected), expected, "{query}: it stays so");
        }
    }

    #[test]
    fn a_session_is_named_and_signed() {
        let (uri, headers) = (Uri::from_static("https://example.amazonaws.com/"), HeaderMap::new());
        let request = Unsigned { method: "GET", uri: &uri, headers: &headers, body: b"" };
        let now = "2015-08-30T12:36:00Z".parse().unwrap();
        let scope = SigningScope { region: "eu-west-1", service: "aps", now };
        let added = signature(&request, &example(Some("token")), &scope).unwrap();
        assert_eq!(added[TOKEN], "token");
        let given = added[AUTHORIZATION].to_str().unwrap();
        assert!(given.contains("SignedHeaders=host;x-amz-date;x-amz-security-token,"), "{given}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let none = |_: &str| None;
        assert!(Credentials::of_environment(none).is_none());
        assert!(region(String::new(), none).unwrap_err().to_string().contains("AWS_REGION"));
        let some = |name: &str| (name == "AWS_DEFAULT_REGION").then(|| "eu".to_owned());
        assert_eq!(region(String::new(), some).unwrap(), "eu");
        assert_eq!(region("us".to_owned(), some).unwrap(), "us");
    }
}
