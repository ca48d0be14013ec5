//! What stands behind the question mark of a URL.

/// The decoded parameters of a query, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads `a=b&c=d`.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name, true), decode(value, true))
        });
        Self { pairs: pairs.collect() }
    }

    /// The first value of a parameter; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(key, _)| key == name)?;
        Some(found.1.as_str()).filter(|value| !value.is_empty())
    }

    /// True if the parameter says so.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1" | "True" | "TRUE" | "t"))
    }
}

/// Undoes percent encoding; in a query `+` stands for a space.
pub fn decode(text: &str, is_query: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' if is_query => bytes.push(b' '),
            b'%' => match hexadecimal(after) {
                Some(byte) => {
                    bytes.push(byte);
                    rest = &after[2..];
                }
                None => bytes.push(b'%'),
            },
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hexadecimal(text: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(text.get(..2)?).ok()?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch=1&empty=&x");
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert!(query.flag("watch"));
        assert_eq!(query.get("empty"), None);
        assert!(!query.flag("x"));
        assert_eq!(decode("a+b%2Fc%zz%4", false), "a+b/c%zz%4");
    }
}
