//! The first line that a plugin prints: where it listens, and what it speaks.

use crate::HANDSHAKE_LIMIT;

/// Where a plugin listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket, by its path.
    Unix(String),
    /// A host and a port.
    Tcp(String),
}

/// Why a line is no handshake. The texts are those of Argo Rollouts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// It is something else.
    #[error("Unrecognized remote plugin message: {0}: expected 1|1|unix|PATH|netrpc")]
    Unrecognized(String),
    /// go-plugin itself is of another version.
    #[error("incompatible core API version with plugin. Plugin version: {0}, Core version: 1")]
    Core(String),
    /// The interface is of another version.
    #[error("incompatible API version with plugin. Plugin version: {0}, Client versions: [1]")]
    Version(String),
    /// It listens elsewhere.
    #[error("Unknown address type: {0}: expected unix or tcp")]
    Network(String),
    /// It does not speak net/rpc.
    #[error("unsupported plugin protocol {0:?}. Supported: [netrpc]")]
    Protocol(String),
    /// It wants TLS.
    #[error("the plugin asks for TLS, which no plugin of Argo Rollouts does")]
    Tls,
}

/// Reads the line `CORE|APP|NETWORK|ADDRESS|PROTOCOL|CERTIFICATE`.
pub fn parse_handshake(line: &str) -> Result<Address, HandshakeError> {
    let line = line.trim();
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let unrecognized = || HandshakeError::Unrecognized(quoted(line));
    let [core, app, network, address, rest @ ..] = parts.as_slice() else {
        return Err(unrecognized());
    };
    if line.len() > HANDSHAKE_LIMIT || core.parse::<u32>().is_err() || address.is_empty() {
        return Err(unrecognized());
    }
    if *core != "1" {
        return Err(HandshakeError::Core(quoted(core)));
    }
    if *app != "1" {
        return Err(HandshakeError::Version(quoted(app)));
    }
    match rest.first() {
        None | Some(&"" | &"netrpc") => {}
        Some(other) => return Err(HandshakeError::Protocol(quoted(other))),
    }
    if rest.get(1).is_some_and(|certificate| !certificate.is_empty()) {
        return Err(HandshakeError::Tls);
    }
    match *network {
        "unix" => Ok(Address::Unix((*address).to_owned())),
        "tcp" => Ok(Address::Tcp((*address).to_owned())),
        other => Err(HandshakeError::Network(quoted(other))),
    }
}

/// The beginning of what was read, for people.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 120;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_the_plugin_listens_or_what_is_wrong() {
        let cases = [
            ("as Go prints it", "1|1|unix|/tmp/plugin1|netrpc|", "Unix(\"/tmp/plugin1\")"),
            ("with multiplexing", "1|1|unix|/tmp/p|netrpc||false\n", "Unix(\"/tmp/p\")"),
            ("an old one", "1|1|tcp|127.0.0.1:10000", "Tcp(\"127.0.0.1:10000\")"),
            ("gRPC", "1|1|unix|/p|grpc|", "unsupported plugin protocol \"grpc\""),
            ("another version", "1|2|unix|/p|netrpc|", "incompatible API version"),
            ("another core", "2|1|unix|/p|netrpc|", "incompatible core API version"),
            ("words", "This binary is a plugin.", "Unrecognized remote plugin message: This"),
            ("no address", "1|1|unix||netrpc|", "Unrecognized"),
            ("a pipe", "1|1|pipe|x|netrpc|", "Unknown address type: pipe"),
            ("a certificate", "1|1|unix|/p|netrpc|abc", "asks for TLS"),
            ("nothing", "", "Unrecognized"),
        ];
        for (what, line, expected) in cases {
            let said = match parse_handshake(line) {
                Ok(address) => format!("{address:?}"),
                Err(error) => error.to_string(),
            };
            assert!(said.contains(expected), "{what}: {said}");
        }
    }
}
