//! User and password of a URL: they are sent as a header and never shown, not even to libraries, which
//! log addresses.

use gradus_engine::ask::http::HttpError;
use http::Uri;
use http::uri::Authority;

use super::invalid;

/// An address without its user, and `user:password` as they are meant.
pub(super) fn apart(uri: Uri) -> Result<(Uri, Option<String>), HttpError> {
    let written = uri.authority().map_or("", Authority::as_str);
    let Some((user, host)) = written.rsplit_once('@') else { return Ok((uri, None)) };
    let (user, host) = (pair(user), host.parse().map_err(|_| invalid("the address"))?);
    let mut parts = uri.into_parts();
    parts.authority = Some(host);
    let uri = Uri::from_parts(parts).map_err(|_| invalid("the address"))?;
    Ok((uri, Some(user)))
}

/// `user:password` of a URL, as they are meant; `None` where it has none.
pub(in crate::ask) fn of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map(|(user, _)| pair(user))
}

fn pair(written: &str) -> String {
    let (user, password) = written.split_once(':').unwrap_or((written, ""));
    format!("{}:{}", decoded(user), decoded(password))
}

/// Without percent signs.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digit = |at: usize| behind.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_an_address_is_taken_out_of_it() {
        let cases = [
            ("http://host:1/a?b=c@d", "http://host:1/a?b=c@d", None),
            ("http://me@host/", "http://host/", Some("me:")),
            ("https://me:p%40%2f%@host:1/a", "https://host:1/a", Some("me:p@/%")),
            ("http://a:b:c@[::1]:9/", "http://[::1]:9/", Some("a:b:c")),
        ];
        for (url, bare, user) in cases {
            let found = apart(url.parse().unwrap()).unwrap();
            assert_eq!(found, (bare.parse().unwrap(), user.map(str::to_owned)), "{url}");
            assert_eq!(of(url).as_deref(), user, "{url}");
        }
    }
}
