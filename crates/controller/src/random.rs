//! Where do random bytes come from? From the operating system, through the library that encrypts.

use gradus_engine::ask::Class;
use rustls::crypto::aws_lc_rs::default_provider;

use crate::cluster::WriteError;

/// So many bytes that nobody can guess.
pub fn bytes(count: usize) -> Result<Vec<u8>, WriteError> {
    let mut bytes = vec![0; count];
    match default_provider().secure_random.fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(WriteError {
            class: Class::Unreachable,
            message: "the operating system has no random bytes".to_owned(),
            retry_after_secs: None,
        }),
    }
}

#[test]
fn no_two_draws_are_the_same() {
    let (one, other) = (bytes(16).unwrap(), bytes(16).unwrap());
    assert_eq!((one.len(), other.len()), (16, 16));
    assert_ne!(one, other);
}
