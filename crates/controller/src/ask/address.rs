//! Which addresses metric requests may go to. A template author chooses the address, so what is only
//! reachable from the controller's own host or pod is refused unless the operator allows it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower::Service;

/// What may be reached: everything but loopback, link-local, multicast and unspecified addresses and
/// the API server, and of those what is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Networks that are allowed all the same.
    pub allow: Vec<Network>,
    /// Addresses of the API server.
    pub api_server: Vec<IpAddr>,
}

/// A network, as `10.0.0.0/8`; an address alone is a network of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// A text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no network: expected an address and a prefix, as 10.0.0.0/8 or fd00::/8")]
pub struct NoNetwork(String);

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let wrong = || NoNetwork(text.to_owned());
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(longest), str::parse).map_err(|_| wrong())?;
        (prefix <= longest).then_some(Network { address, prefix }).ok_or_else(wrong)
    }
}

impl Network {
    /// Is an address in it?
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(four) => u128::from(u32::from(four)) << 96,
            IpAddr::V6(six) => u128::from(six),
        };
        let same = (bits(self.address) ^ bits(address)).leading_zeros();
        self.address.is_ipv4() == address.is_ipv4() && u32::from(self.prefix) <= same
    }
}

impl AddressPolicy {
    /// May a request go there?
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allow.iter().any(|network| network.contains(address))
            || !(is_of_this_host(address) || self.api_server.contains(&address))
    }

    /// Why a request may not go there.
    pub fn refusal(host: &str) -> String {
        format!(
            "{host} leads to an address that metric requests may not go to \
             (--metric-allow permits networks)"
        )
    }
}

/// Loopback, link-local (where clouds serve credentials), multicast and no address at all.
fn is_of_this_host(address: IpAddr) -> bool {
    let is_special = match address {
        IpAddr::V4(four) => four.is_link_local() || four.is_broadcast() || four.octets()[0] == 0,
        // fd00:ec2::254 is where AWS serves credentials over IPv6.
        IpAddr::V6(six) => {
            six.is_unicast_link_local() || six.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        }
    };
    is_special || address.is_loopback() || address.is_multicast() || address.is_unspecified()
}

/// Resolves names to the addresses that may be reached. A connection is made to exactly these.
#[derive(Clone)]
pub(super) struct CheckedResolver(pub(super) Arc<AddressPolicy>);

/// Addresses a name leads to.
type Found = Result<std::vec::IntoIter<SocketAddr>, io::Error>;

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Found> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let policy = Arc::clone(&self.0);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let permitted: Vec<SocketAddr> =
                found.filter(|address| policy.permits(address.ip())).collect();
            if permitted.is_empty() {
                let refusal = AddressPolicy::refusal(name.as_str());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal));
            }
            Ok(permitted.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_reachable_from_elsewhere_too_may_be_asked() {
        let policy = AddressPolicy {
            allow: vec!["127.0.0.2".parse().unwrap(), "fe80::/16".parse().unwrap()],
            api_server: vec!["10.96.0.1".parse().unwrap()],
        };
        let cases = [
            ("an address of the cluster", "10.96.0.7", true),
            ("the API server", "10.96.0.1", false),
            ("this host", "127.0.0.1", false),
            ("this host over IPv6", "::1", false),
            ("this host, mapped", "::ffff:127.0.0.1", false),
            ("credentials of a cloud", "169.254.169.254", false),
            ("credentials of a cloud over IPv6", "fd00:ec2::254", false),
            ("nowhere", "0.0.0.0", false),
            ("everybody", "224.0.0.1", false),
            ("what is allowed", "127.0.0.2", true),
            ("a network that is allowed", "fe80::1", true),
        ];
        for (what, address, expected) in cases {
            assert_eq!(policy.permits(address.parse().unwrap()), expected, "{what}");
        }
    }

    #[test]
    fn a_network_is_an_address_and_a_prefix() {
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/-1", "web"] {
            assert_eq!(Network::from_str(bad), Err(NoNetwork(bad.to_owned())));
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("9.9.9.9".parse().unwrap()), "every address of its family");
        assert!(!all.contains("::1".parse().unwrap()), "and none of the other");
    }
}
