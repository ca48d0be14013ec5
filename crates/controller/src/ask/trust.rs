//! Whose certificates a metric request trusts: the system's, or Mozilla's where the system has none;
//! those a request brings along; or any.

use std::sync::Arc;

use gradus_engine::ask::http::HttpError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

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
    let mut roots = roots(rustls_native_certs::load_native_certs().certs);
    for certificate in CertificateDer::pem_slice_iter(ca.unwrap_or_default().as_bytes()) {
        let wrong = |error: &dyn std::fmt::Display| {
            HttpError::Invalid(format!("the CA certificate cannot be used: {error}"))
        };
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The authorities of the system. An image of nothing but this program has none: there it is those that
/// Mozilla trusts, as of the build.
fn roots(of_system: Vec<CertificateDer<'static>>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(of_system);
    if roots.is_empty() {
        let built_in = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
        roots.add_parsable_certificates(built_in.iter().cloned());
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

#[test]
fn without_authorities_of_the_system_those_of_mozilla_are_trusted() {
    let built_in = roots(Vec::new());
    assert!(built_in.len() > 50, "{}", built_in.len());
    let one = webpki_root_certs::TLS_SERVER_ROOT_CERTS[0].clone();
    assert_eq!(roots(vec![one]).len(), 1, "who names authorities means no others");
    let broken = CertificateDer::from(vec![0; 8]);
    assert_eq!(roots(vec![broken]).len(), built_in.len(), "one that cannot be read is none");
}
