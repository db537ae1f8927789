//! Resolution of names to addresses, with a short-lived cache.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use host::clock;

pub type Resolved<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

pub trait Resolver: Send + Sync + fmt::Debug {
    /// Returns all addresses of `host`, each with `port`.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolved<'a>;
}

#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolved<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// Limit on cached names, since a box can invent any number.
const KEPT_MAX: usize = 1024;

type CachedAddresses = (Instant, Vec<SocketAddr>);

/// A resolver with a cache.
#[derive(Debug)]
pub(crate) struct Addresses {
    resolver: Arc<dyn Resolver>,
    keep: Duration,
    kept: Mutex<HashMap<(String, u16), CachedAddresses>>,
}

impl Addresses {
    pub(crate) fn new(resolver: Arc<dyn Resolver>, keep: Duration) -> Self {
        Self { resolver, keep, kept: Mutex::default() }
    }

    pub(crate) async fn of(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let name = (host.to_owned(), port);
        if let Some(addresses) = self.fresh(&name) {
            return Ok(addresses);
        }
        let addresses = self.resolver.resolve(host, port).await?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(name, (clock::monotonic(), addresses.clone()));
        Ok(addresses)
    }

    fn fresh(&self, name: &(String, u16)) -> Option<Vec<SocketAddr>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, addresses) = kept.get(name).filter(|(since, _)| since.elapsed() < self.keep)?;
        Some(addresses.clone())
    }
}
