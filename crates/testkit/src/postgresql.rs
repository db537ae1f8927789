//! Servers of PostgreSQL, on sockets in folders of their own: a primary, standbys of it, and a pooler before it. They end with
//! their owner, and with its process.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::part::{Part, require};
use crate::program;
use crate::wait::wait_until;

/// A server that runs.
#[derive(Debug)]
pub struct PostgresServer {
    dir: TempDir,
    programs: PathBuf,
    /// More for its command line.
    settings: Vec<String>,
    server: Child,
}

/// A pooler that gives a connection of its server to a client for one transaction.
#[derive(Debug)]
pub struct Pgbouncer {
    dir: TempDir,
    pooler: Child,
}

impl PostgresServer {
    /// Starts a server; `None` after saying that PostgreSQL is missing.
    ///
    /// # Panics
    /// When the server cannot be set up or started.
    pub fn start() -> Option<Self> {
        let (dir, programs) = create()?;
        Some(Self::running(dir, programs, Vec::new()))
    }

    /// Starts a server that a role `bottles` reaches over TLS alone, with this password, as `localhost` at the port that is
    /// returned. Its certificate is in the file that is returned.
    ///
    /// # Panics
    /// When the server cannot be set up or started.
    pub fn start_with_tls(password: &str) -> Option<(Self, u16, PathBuf)> {
        let openssl = require(Part::Openssl)?;
        let (dir, programs) = create()?;
        let (key, certificate) =
            (dir.path().join("data/server.key"), dir.path().join("server.crt"));
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
                     -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
        let mut make = as_user(&dir, openssl);
        run(make
            .args(words.split_whitespace())
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate));
        let access = "local all all trust\nhostssl all bottles 127.0.0.1/32 scram-sha-256\n";
        fs::write(dir.path().join("data/pg_hba.conf"), access).expect("the rules of access");
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let certificate_file = format!("ssl_cert_file={}", certificate.display());
        let port_setting = format!("port={port}");
        let settings = ["listen_addresses=127.0.0.1", "ssl=on", &certificate_file, &port_setting];
        let settings = settings.iter().flat_map(|it| ["-c".to_owned(), (*it).to_owned()]).collect();
        let server = Self::running(dir, programs, settings);
        server.sql(&format!("CREATE ROLE bottles LOGIN PASSWORD '{password}'"));
        Some((server, port, certificate))
    }

    /// Starts a standby of this server, and has every commit from now on wait for it.
    ///
    /// # Panics
    /// When the standby cannot be set up or started.
    pub fn start_synchronous_standby(&self) -> Self {
        let standby = self.start_standby();
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("SELECT pg_reload_conf()");
        wait_until("a synchronous standby", || {
            self.sql("SELECT sync_state FROM pg_stat_replication") == "sync"
        });
        standby
    }

    /// Starts a standby of this server, for which no commit waits.
    ///
    /// # Panics
    /// When the standby cannot be set up or started.
    pub fn start_standby(&self) -> Self {
        let dir = own_dir();
        let words = ["-R", "-X", "stream", "-c", "fast", "-U", "postgres", "-h"];
        let mut copy = as_user(&dir, self.programs.join("pg_basebackup"));
        run(copy.args(words).arg(self.dir.path()).arg("-D").arg(dir.path().join("data")));
        let standby = Self::running(dir, self.programs.clone(), Vec::new());
        wait_until("the standby's link", || {
            self.sql("SELECT state FROM pg_stat_replication") == "streaming"
        });
        standby
    }

    /// Has a standby become a server that accepts writes.
    ///
    /// # Panics
    /// When it does not.
    pub fn promote(&self) {
        self.sql("SELECT pg_promote()");
        wait_until("a primary", || self.sql("SELECT pg_is_in_recovery()") == "f");
    }

    /// Kills the server, as a power failure does, and waits until nothing of it answers.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn kill(&mut self) {
        self.server.kill().expect("a kill");
        self.server.wait().expect("the end of the server");
    }

    /// Starts the server again after [`Self::kill`].
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_again(&mut self) {
        // The processes of the one that was killed end by themselves, and until then no other one starts.
        wait_until("the server", || {
            self.server = serve(&self.dir, &self.programs, &self.settings);
            !self.is_over() && self.answers_or_ends()
        });
    }

    /// Creates a database, and returns its address.
    ///
    /// # Panics
    /// When it cannot be created.
    pub fn create_database(&self, name: &str) -> String {
        self.sql(&format!("CREATE DATABASE {name}"));
        self.address(name)
    }

    /// Address of a database on this server.
    pub fn address(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database}", self.dir.path().display())
    }

    /// Address of a database on this server or on another one, whichever accepts writes.
    pub fn address_with(&self, other: &Self, database: &str) -> String {
        let (one, other) = (self.dir.path().display(), other.dir.path().display());
        format!("host={one},{other} user=postgres dbname={database}")
    }

    /// Executes statements as the superuser, and returns the rows as text.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn sql(&self, sql: &str) -> String {
        self.sql_in("postgres", sql)
    }

    /// Executes statements in a database, and returns the rows as text.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn sql_in(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database, sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A program of PostgreSQL, as the user that the server runs as, with the folder of the socket in `PGHOST`.
    pub fn program(&self, name: &str) -> Command {
        let mut command = as_user(&self.dir, self.programs.join(name));
        command.env("PGHOST", self.dir.path()).env("PGUSER", "postgres").env("PGPORT", self.port());
        command
    }

    fn psql(&self, database: &str, sql: &str) -> std::process::Output {
        let words = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql];
        self.program("psql").args(words).output().expect("psql")
    }

    fn port(&self) -> &str {
        let port = self.settings.iter().find_map(|it| it.strip_prefix("port="));
        port.unwrap_or("5432")
    }

    fn running(dir: TempDir, programs: PathBuf, settings: Vec<String>) -> Self {
        let server = serve(&dir, &programs, &settings);
        let mut server = Self { dir, programs, settings, server };
        assert!(server.answers_or_ends(), "the server ended: {}", server.log());
        server
    }

    /// Waits until the server answers; false if it ends before.
    fn answers_or_ends(&mut self) -> bool {
        let mut answers = false;
        wait_until("the server", || {
            answers = self.psql("postgres", "SELECT 1").status.success();
            answers || self.is_over()
        });
        answers
    }

    fn is_over(&mut self) -> bool {
        self.server.try_wait().expect("a status").is_some()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

impl Pgbouncer {
    /// Starts a pooler before a server, with few connections for many clients; `None` after saying that it is missing.
    ///
    /// # Panics
    /// When the pooler cannot be set up or started.
    pub fn start(server: &PostgresServer) -> Option<Self> {
        let program = require(Part::Pgbouncer)?;
        let dir = own_dir();
        let settings = dir.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host={} user=postgres\n[pgbouncer]\npool_mode = transaction\n\
             auth_type = any\nlisten_addr =\nunix_socket_dir = {}\nlisten_port = 5432\n\
             default_pool_size = 3\nmax_client_conn = 200\n",
            server.dir.path().display(),
            dir.path().display(),
        );
        fs::write(&settings, text).expect("the settings of the pooler");
        let mut command = as_user(&dir, program);
        command.arg("-q").arg(&settings);
        let pooler = quiet(&dir, &mut command).spawn().expect("a pooler");
        let pooler = Self { dir, pooler };
        wait_until("the pooler", || pooler.dir.path().join(".s.PGSQL.5432").exists());
        Some(pooler)
    }

    /// Address of a database, through this pooler.
    pub fn address(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database}", self.dir.path().display())
    }
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        drop(self.pooler.kill());
        drop(self.pooler.wait());
    }
}

/// The folder of a new server, and that of its programs; `None` after saying that PostgreSQL is missing.
fn create() -> Option<(TempDir, PathBuf)> {
    let programs = require(Part::Postgresql)?.parent()?.to_path_buf();
    let dir = own_dir();
    let words = ["-N", "-A", "trust", "--locale=C", "-E", "UTF8", "-U", "postgres", "-D"];
    run(as_user(&dir, programs.join("initdb")).args(words).arg(dir.path().join("data")));
    Some((dir, programs))
}

/// Starts the server of a folder.
fn serve(dir: &TempDir, programs: &Path, settings: &[String]) -> Child {
    let mut command = as_user(dir, programs.join("postgres"));
    command.arg("-D").arg(dir.path().join("data")).arg("-k").arg(dir.path());
    // Another transaction of the same server, such as that of a cleaner, holds up the reading of events.
    let usual = ["listen_addresses=", "max_connections=250", "autovacuum=off"];
    command.args(usual.iter().flat_map(|it| ["-c", it])).args(settings);
    quiet(dir, &mut command).spawn().expect("a server")
}

/// A folder of the user that PostgreSQL runs as.
fn own_dir() -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    if is_root(&dir) {
        chown(dir.path(), Some(id_of("-u")), Some(id_of("-g"))).expect("PostgreSQL's folder");
    }
    dir
}

fn is_root(dir: &TempDir) -> bool {
    dir.path().metadata().expect("the folder").uid() == 0 || id_of_caller() == 0
}

/// A program that ends with this process; PostgreSQL refuses to be root.
fn as_user(dir: &TempDir, program: PathBuf) -> Command {
    let mut command = program::command("/usr/bin/setpriv");
    command.args(["--pdeathsig", "KILL"]).current_dir(dir.path()).stdin(Stdio::null());
    if id_of_caller() == 0 {
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    }
    command.env("PATH", program::SYSTEM_PATH).arg(program);
    command
}

/// A command whose output goes to the log of its folder.
fn quiet<'a>(dir: &TempDir, command: &'a mut Command) -> &'a mut Command {
    let log = dir.path().join("log");
    let log = fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
    let same = log.try_clone().expect("the log");
    command.stdout(log).stderr(same)
}

fn run(command: &mut Command) {
    let output = command.output().expect("a program of PostgreSQL");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn id_of_caller() -> u32 {
    number(program::command("/usr/bin/id").arg("-u"))
}

/// The user or the group of PostgreSQL.
fn id_of(flag: &str) -> u32 {
    number(program::command("/usr/bin/id").args([flag, "postgres"]))
}

fn number(command: &mut Command) -> u32 {
    let text = String::from_utf8(command.output().expect("an id").stdout).expect("a number");
    text.trim().parse().expect("a number")
}
