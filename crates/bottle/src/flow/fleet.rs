//! The database of this home: its file, or the one in PostgreSQL that the configuration names; and the name under which this
//! home is known there.

use std::fs;
use std::io;
use std::sync::Arc;

use model::exit::BottleExit;
use orchestrator_db::{Store, open_file};
use shell::config::{Config, FleetEntry};

use super::home::Home;
use crate::exit::{Failure, OrExit, OrGeneral};

/// Name of the one host whose bottles a database in a file has. It stays the same when the home is copied to another
/// machine.
pub(crate) const LOCAL_HOST: &str = "local";

/// Opens the database.
pub(crate) fn open_store(home: &Home) -> Result<Arc<dyn Store>, Failure> {
    match fleet_of(home)? {
        None => open_file(&home.database).or_general(),
        Some(fleet) => open_shared(&fleet),
    }
}

/// True if there is a database.
pub(crate) fn has_store(home: &Home) -> Result<bool, Failure> {
    Ok(fleet_of(home)?.is_some() || home.database.exists())
}

/// The name of this home in the database: one that no other home has, where several share it.
pub(crate) fn host_name(home: &Home) -> Result<String, Failure> {
    match fleet_of(home)? {
        None => Ok(LOCAL_HOST.to_owned()),
        Some(_) => load_host_id(home),
    }
}

/// The shared database that the configuration names.
pub(crate) fn fleet_of(home: &Home) -> Result<Option<FleetEntry>, Failure> {
    if !home.is_configured {
        return Ok(None);
    }
    let fleet = Config::load().or_exit(BottleExit::Usage)?.fleet;
    Ok(fleet.database.is_some().then_some(fleet))
}

/// True if `serve` runs bottles itself; without a shared database nobody else does.
pub(crate) fn runs_bottles(home: &Home) -> Result<bool, Failure> {
    Ok(fleet_of(home)?.is_none_or(|fleet| fleet.run_bottles.unwrap_or(true)))
}

#[cfg(feature = "postgres")]
fn open_shared(fleet: &FleetEntry) -> Result<Arc<dyn Store>, Failure> {
    orchestrator_db::open_postgres(&postgres_options(fleet)?).or_general()
}

#[cfg(not(feature = "postgres"))]
fn open_shared(_fleet: &FleetEntry) -> Result<Arc<dyn Store>, Failure> {
    Err(Failure::usage("fleet.database needs a bot-bottle that was built with --features postgres"))
}

/// Way to the shared database, with its password.
#[cfg(feature = "postgres")]
pub(crate) fn postgres_options(
    fleet: &FleetEntry,
) -> Result<orchestrator_db::PostgresOptions, Failure> {
    Ok(orchestrator_db::PostgresOptions {
        address: fleet.database.clone().unwrap_or_default(),
        password: fleet.password().or_exit(BottleExit::Usage)?,
        ca_file: fleet.ca_file(),
    })
}

/// The id in the home's file `host-id`, which is made at first use.
fn load_host_id(home: &Home) -> Result<String, Failure> {
    let failed = |error: io::Error| {
        let path = home.host_id.display();
        Failure::new(BottleExit::General, format!("could not use {path}: {error}"))
    };
    loop {
        match fs::read_to_string(&home.host_id) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => return Ok(read.map_err(failed)?.trim().to_owned()),
        }
        fs::create_dir_all(&home.root).map_err(failed)?;
        let id = model::digest::hex(&host::random::bytes::<8>().or_general()?);
        let draft = home.host_id.with_extension(&id);
        fs::write(&draft, format!("{id}\n")).map_err(failed)?;
        // Of two processes that make one at once, the second uses that of the first.
        let linked = fs::hard_link(&draft, &home.host_id);
        fs::remove_file(&draft).map_err(failed)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
    }
}
