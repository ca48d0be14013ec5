//! Which loopback ports are free?

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

/// Ports nobody listens on. All are held until all are known, so they differ.
pub fn free<const COUNT: usize>() -> io::Result<[u16; COUNT]> {
    let mut held = Vec::with_capacity(COUNT);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

#[test]
fn ports_differ() {
    let [one, other] = free().unwrap();
    assert_ne!(one, other);
}
