//! Whose certificates a metric request trusts: the system's, those a request brings along, or any.

use std::env;
use std::sync::Arc;

use gradus_engine::ask::http::HttpError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

/// How a client checks whom it speaks to.
pub(super) fn config(is_insecure: bool, ca: Option<&str>) -> Result<ClientConfig, HttpError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| HttpError::Tls(error.to_string()))?;
    if is_insecure {
        let any = builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider)));
        return Ok(any.with_no_client_auth());
    }
    let mut roots = system_roots();
    for certificate in CertificateDer::pem_slice_iter(ca.unwrap_or_default().as_bytes()) {
        let wrong = |error: &dyn std::fmt::Display| {
            HttpError::Invalid(format!("the CA certificate cannot be used: {error}"))
        };
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Whom the system trusts. An image of nothing but the program has no list of its own; there those count
/// that browsers trust, unless the environment names a list.
fn system_roots() -> RootCertStore {
    let is_named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().any(|name| env::var_os(name).is_some());
    roots_of(rustls_native_certs::load_native_certs().certs, is_named)
}

fn roots_of(system: Vec<CertificateDer<'static>>, is_named: bool) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system);
    if roots.is_empty() && !is_named {
        roots.add_parsable_certificates(TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    roots
}

/// Trusts every certificate, for a request that says so. Signatures are checked all the same.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_certificates_trusts_what_browsers_trust_unless_a_list_is_named() {
        assert!(roots_of(Vec::new(), false).len() > 50);
        assert!(roots_of(Vec::new(), true).is_empty(), "an empty list trusts nobody");
        let one = TLS_SERVER_ROOT_CERTS[..1].to_vec();
        assert_eq!(roots_of(one, false).len(), 1, "a system with a list is believed");
    }
}
