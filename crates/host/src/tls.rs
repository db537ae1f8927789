//! TLS client configuration: the trusted authorities. Behind the feature `tls`, for the crates that use it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// A TLS configuration that could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    #[error("could not read certificates from {path}", path = path.display())]
    CaFile { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("{path} holds something that is no certificate", path = path.display())]
    Certificate { path: PathBuf, source: rustls::Error },
    #[error("could not set up TLS")]
    Setup(#[from] rustls::Error),
    #[error("stopped while reading certificates")]
    GaveUp,
}

/// Gives libraries that set up TLS by themselves the cryptography of this program; without one they fail.
pub fn install_cryptography() {
    // A second call changes nothing.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// Loads the trust store: the system's authorities, or the well-known ones where the system has none, and the
/// certificates of `ca_file`. Reads files, so it must not run on a thread that others wait for.
pub async fn load_client_config(ca_file: Option<PathBuf>) -> Result<Arc<ClientConfig>, TlsError> {
    let loading = tokio::task::spawn_blocking(move || read_client_config(ca_file.as_deref()));
    let mut config = loading.await.unwrap_or(Err(TlsError::GaveUp))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The same for a protocol other than HTTP, on a thread that may wait for files.
pub fn read_client_config(ca_file: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(path) = ca_file {
        let unreadable = |source| TlsError::CaFile { path: path.to_path_buf(), source };
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            let certificate = certificate.map_err(unreadable)?;
            roots
                .add(certificate)
                .map_err(|source| TlsError::Certificate { path: path.to_path_buf(), source })?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
