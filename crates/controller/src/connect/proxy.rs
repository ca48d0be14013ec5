//! Which servers are spoken to without the proxy of the environment? Those of this machine, and those that
//! `NO_PROXY` names, as Go's clients read it.

use std::env;
use std::net::IpAddr;

use crate::ask::Network;

/// Is this the proxy of the environment, and is the server to be spoken to without it?
pub(super) fn is_passed_over(proxy: &http::Uri, server: &http::Uri) -> bool {
    let variable = |names: [&str; 2]| {
        let found = names.into_iter().find_map(|name| env::var(name).ok());
        found.unwrap_or_default()
    };
    let of_environment = variable(["HTTPS_PROXY", "https_proxy"]).parse::<http::Uri>();
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    of_environment.is_ok_and(|named| named == *proxy)
        && is_direct(host, &variable(["NO_PROXY", "no_proxy"]))
}

fn is_direct(host: &str, no_proxy: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    no_proxy.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        let network = entry.parse::<Network>().ok();
        let domain = entry.trim_start_matches('*').trim_start_matches('.');
        match (address, network) {
            (Some(address), Some(network)) => network.contains(address),
            _ if domain.is_empty() => entry == "*",
            _ => host.strip_suffix(domain).is_some_and(|rest| {
                rest.is_empty() && !entry.starts_with(['.', '*']) || rest.ends_with('.')
            }),
        }
    })
}

#[test]
fn no_proxy_is_read_as_go_reads_it() {
    let cases = [
        ("localhost", "", true),
        ("127.0.0.1", "", true),
        ("::1", "", true),
        ("api.example.com", "", false),
        ("api.example.com", "example.com", true),
        ("example.com", "example.com", true),
        ("example.com", ".example.com", false),
        ("api.example.com", "other.com, .example.com", true),
        ("badexample.com", "example.com", false),
        ("api.example.com", "*", true),
        ("10.1.2.3", "10.0.0.0/8", true),
        ("11.1.2.3", "10.0.0.0/8", false),
        ("10.1.2.3", "10.1.2.3", true),
    ];
    for (host, no_proxy, expected) in cases {
        assert_eq!(is_direct(host, no_proxy), expected, "{host} {no_proxy}");
    }
}
