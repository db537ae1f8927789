//! A forge with TLS must prove who it is.

use std::path::Path;
use std::sync::Arc;

use forge::{Forge, ForgeOptions};
use model::secret::Secret;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::world::{address, options};

const VERSION: &str =
    "HTTP/1.1 200 OK\r\ncontent-length: 20\r\nconnection: close\r\n\r\n{\"version\":\"1.27.2\"}";

/// Answers as the fake server would, and only that it is a Gitea. Writes its certificate to `path`; returns its port.
async fn serve(path: &Path) -> u16 {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(path, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust us goes away in the middle.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut bytes = [0; 4096];
            if stream.read(&mut bytes).await.is_ok() {
                stream.write_all(VERSION.as_bytes()).await.unwrap_or_default();
                stream.shutdown().await.unwrap_or_default();
            }
        }
    });
    port
}

#[tokio::test]
async fn only_a_certificate_that_is_trusted_opens_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    let port = serve(&ca_file).await;
    let trusting = ForgeOptions { ca_file: Some(ca_file), ..options() };
    let named = address(&format!("https://localhost:{port}/alice/hooks"));
    let token = || Secret::new("some-token");
    Forge::open(&named, &token(), &trusting).await.unwrap();
    let error = Forge::open(&named, &token(), &options()).await.unwrap_err();
    assert!(error.to_string().contains("it did not prove who it is (TLS)"), "{error}");
    let other = address(&format!("https://127.0.0.1:{port}/alice/hooks"));
    let error = Forge::open(&other, &token(), &trusting).await.unwrap_err();
    assert!(error.to_string().contains("it did not prove who it is (TLS)"), "{error}");
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_an_error_before_anything_is_sent() {
    let missing = ForgeOptions { ca_file: Some("/nowhere/ca.pem".into()), ..options() };
    let named = address("https://localhost:1/alice/hooks");
    let error = Forge::open(&named, &Secret::new("t"), &missing).await.unwrap_err();
    assert_eq!(error.to_string(), "could not prepare TLS; check the certificates of this machine");
    let cause = std::error::Error::source(&error).unwrap();
    assert!(cause.to_string().contains("/nowhere/ca.pem"));
}
