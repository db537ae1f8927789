//! Connections: a few for each process, made when they are needed, to the host of the address that accepts writes.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use postgres::config::{Host, SslMode, TargetSessionAttrs};
use postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresOptions;
use crate::error::DbError;

const CONNECTIONS_MAX: usize = 4;
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Time after which a link that answers nothing is given up: less than a third of the usual lease.
const LINK_LIMIT: Duration = Duration::from_secs(10);
/// Time after which the server gives up a statement, so that a lock that is never released holds up no renewal for ever.
const STATEMENT_LIMIT: &str = "15s";

/// Form of an address.
const ADDRESS_RULE: &str = "write it as postgres://user@host[:port][,host[:port]]/database, or as host=... user=... dbname=...";

pub(super) struct ConnectionPool {
    config: Config,
    tls: MakeRustlsConnect,
    name: String,
    state: Mutex<PoolState>,
    returned: Condvar,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<Client>,
    /// Connections that exist, idle or not.
    open: usize,
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").field("database", &self.name).finish_non_exhaustive()
    }
}

impl ConnectionPool {
    /// A pool without connections yet.
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, DbError> {
        let unnamed = "the address of the database";
        // The cause of a failed parse may quote a part of the address, and somebody may have put a password there.
        let parsed: Result<Config, _> = options.address.parse();
        let Ok(mut config) = parsed else {
            return Err(refused(unnamed, "find a server", ADDRESS_RULE));
        };
        if config.get_password().is_some() {
            let why = "give it by a file, a command or a variable";
            return Err(refused(unnamed, "take a password", why));
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(refused(unnamed, "find a server", ADDRESS_RULE));
        }
        if let Some(password) = &options.password {
            config.password(password.expose());
        }
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(usual_ssl_mode(&config));
        }
        config
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .application_name("bot-bottle")
            .connect_timeout(CONNECT_LIMIT)
            .tcp_user_timeout(LINK_LIMIT)
            .keepalives_idle(LINK_LIMIT);
        let name = name_of(&config);
        let tls = host::tls::read_client_config(options.ca_file.as_deref()).map_err(|source| {
            let source = Box::new(source);
            DbError::Database { action: "set up TLS", database: name.clone(), source }
        })?;
        let tls = MakeRustlsConnect::new(tls);
        Ok(Self { config, tls, name, state: Mutex::default(), returned: Condvar::new() })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn failed(&self, action: &'static str) -> impl FnOnce(postgres::Error) -> DbError {
        let database = self.name.clone();
        move |source| DbError::Database { action, database, source: Box::new(source) }
    }

    /// An error that the database does not know of.
    pub(super) fn refused(&self, action: &'static str, why: &str) -> DbError {
        refused(&self.name, action, why)
    }

    fn connect(&self) -> Result<Client, DbError> {
        self.config.connect(self.tls.clone()).map_err(self.failed("begin a session"))
    }

    /// Opens a connection that belongs to no pool, and listens on it.
    pub(super) fn connect_to_listen(&self) -> Result<Client, DbError> {
        let mut client = self.connect()?;
        client.batch_execute("LISTEN bot_bottle_news").map_err(self.failed("listen"))?;
        Ok(client)
    }

    /// Opens a connection that belongs to no pool, also to a server that accepts no writes.
    pub(super) fn connect_to_any(&self) -> Result<Client, DbError> {
        match self.connect() {
            Ok(client) => Ok(client),
            Err(error) => {
                let mut config = self.config.clone();
                config.target_session_attrs(TargetSessionAttrs::Any);
                config.connect(self.tls.clone()).or(Err(error))
            }
        }
    }

    /// Does something that is safe to repeat; once more on another connection if the idle ones turn out to be dead.
    pub(super) fn retry<T>(
        &self,
        act: impl Fn(&mut Client) -> Result<T, postgres::Error>,
    ) -> Result<Result<T, postgres::Error>, DbError> {
        let mut tries = 0;
        loop {
            let mut client = self.take()?;
            let done = act(client.get());
            tries += 1;
            if done.is_ok() {
                client.keep();
            }
            if !client.get().is_closed() || tries > CONNECTIONS_MAX {
                return Ok(done);
            }
        }
    }

    /// Begins a transaction. Whoever ends it well calls [`Pooled::keep`].
    pub(super) fn begin(&self) -> Result<Pooled<'_>, DbError> {
        for _ in 0..CONNECTIONS_MAX {
            let mut client = self.take()?;
            if client.begin().is_ok() {
                return Ok(client);
            }
        }
        let mut client = self.take()?;
        client.begin().map_err(self.failed("begin"))?;
        Ok(client)
    }

    fn take(&self) -> Result<Pooled<'_>, DbError> {
        let mut state = self.lock();
        loop {
            if let Some(client) = state.idle.pop() {
                return Ok(Pooled { pool: self, client: Some(client), is_sound: false });
            }
            if state.open < CONNECTIONS_MAX {
                state.open += 1;
                drop(state);
                return match self.connect() {
                    Ok(client) => Ok(Pooled { pool: self, client: Some(client), is_sound: false }),
                    Err(error) => {
                        self.lock().open -= 1;
                        self.returned.notify_one();
                        Err(error)
                    }
                };
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPool {
    /// A connection says goodbye, for which it waits.
    fn drop(&mut self) {
        let idle = std::mem::take(&mut self.lock().idle);
        outside_runtime(|| drop(idle));
    }
}

/// A connection of the pool; one in an unknown state is closed and not returned.
pub(super) struct Pooled<'a> {
    pool: &'a ConnectionPool,
    /// There until it is dropped.
    client: Option<Client>,
    is_sound: bool,
}

impl Pooled<'_> {
    #[expect(clippy::expect_used, reason = "it is taken when this is dropped, and not before")]
    pub(super) fn get(&mut self) -> &mut Client {
        self.client.as_mut().expect("a connection until it is dropped")
    }

    /// Says that the connection may be used again.
    pub(super) fn keep(&mut self) {
        self.is_sound = true;
    }

    /// The limit is part of the transaction, because a pooler keeps no settings of a session.
    fn begin(&mut self) -> Result<(), postgres::Error> {
        let sql = format!("BEGIN; SET LOCAL statement_timeout = '{STATEMENT_LIMIT}'");
        self.get().batch_execute(&sql)
    }
}

impl Drop for Pooled<'_> {
    fn drop(&mut self) {
        let client = self.client.take().filter(|client| self.is_sound && !client.is_closed());
        let mut state = self.pool.lock();
        match client {
            Some(client) => state.idle.push(client),
            None => state.open -= 1,
        }
        drop(state);
        self.pool.returned.notify_one();
    }
}

/// Does what waits for a connection: outside of the caller's runtime, because a connection brings its own, which cannot wait
/// inside another one.
pub(super) fn outside_runtime<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if tokio::runtime::Handle::try_current().is_err() {
        return work();
    }
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn refused(database: &str, action: &'static str, why: &str) -> DbError {
    DbError::Database { action, database: database.to_owned(), source: why.into() }
}

/// Encryption where the address says nothing: a link to another machine is encrypted and its certificate checked.
fn usual_ssl_mode(config: &Config) -> SslMode {
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
        Host::Unix(_) => true,
    };
    let addresses = config.get_hostaddrs();
    let are_local = match addresses {
        [] => config.get_hosts().iter().all(is_local),
        addresses => addresses.iter().all(std::net::IpAddr::is_loopback),
    };
    if are_local { SslMode::Disable } else { SslMode::Require }
}

/// Name of a database in messages, without a password.
fn name_of(config: &Config) -> String {
    let host = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    };
    let mut hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
    if hosts.is_empty() {
        hosts = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("the database '{database}' on {}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(address: &str) -> Result<ConnectionPool, DbError> {
        ConnectionPool::new(&PostgresOptions {
            address: address.to_owned(),
            password: Some(model::secret::Secret::new("geheim")),
            ca_file: None,
        })
    }

    #[test]
    fn a_password_is_in_no_name_and_no_error() {
        let named = pool("postgres://bot@one.example,two.example:5433/bottles").unwrap();
        assert_eq!(named.name(), "the database 'bottles' on one.example,two.example");
        assert!(!format!("{named:?}").contains("geheim"));
        for address in [
            "postgres://bot:geheim@one.example/bottles",
            "postgres://bot:geheim@one.example:none/bottles",
            "postgres://bot:ge?geheim@one.example/bottles",
            "host=one.example password=geheim",
            "host=one.example password='geheim",
        ] {
            let error = pool(address).unwrap_err();
            assert!(!model::error_chain(&error).contains("geheim"), "{error}");
        }
    }

    #[test]
    fn a_link_to_another_machine_is_encrypted_unless_the_address_says_otherwise() {
        for (address, mode) in [
            ("postgres://bot@db.example/bottles", SslMode::Require),
            ("postgres://bot@db.example/bottles?sslmode=prefer", SslMode::Require),
            ("postgres://bot@db.example/bottles?sslmode=disable", SslMode::Disable),
            (
                "postgres://bot@db.example/bottles?application_name=sslmode%3Ddisable",
                SslMode::Require,
            ),
            ("postgres://bot@127.0.0.1/bottles", SslMode::Disable),
            ("postgres://bot@127.0.0.1/bottles?sslmode=require", SslMode::Require),
            ("postgres://bot@127.0.0.1,db.example/bottles", SslMode::Require),
            ("host=localhost hostaddr=10.0.0.5 user=bot", SslMode::Require),
            ("host=/run/postgresql user=bot", SslMode::Disable),
        ] {
            let config = pool(address).unwrap().config.clone();
            assert_eq!(config.get_ssl_mode(), mode, "{address}");
            assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        }
    }
}
