//! This host in a shared database: its name belongs to one home at a time, and others see what it does and how much room it
//! has.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use model::exit::BottleExit;
use orchestrator_db::{HostClaim, HostReport};

use super::Service;
use crate::exit::{Failure, OrGeneral};
use crate::flow::fleet::LOCAL_HOST;
use crate::flow::home::Home;
use crate::flow::lease::LeaseHolder;

/// Characters of the id of the running system that a name has.
const BOOT_CHARS: usize = 8;

/// A holder of leases that no earlier process was: its host, the running system, and a random number.
pub(super) fn new_holder(service: &Service) -> Result<LeaseHolder, Failure> {
    let random = model::digest::hex(&host::random::bytes::<8>().or_general()?);
    let boot: String = host::proc::boot_id().chars().take(BOOT_CHARS).collect();
    let host = service.host.clone();
    Ok(LeaseHolder { name: format!("{host}/{boot}-{random}"), is_shared: host != LOCAL_HOST, host })
}

/// Reports this host for the length of a lease. The inner error says that another home has its name.
pub(super) fn report_host(
    service: &Service,
    holder: &LeaseHolder,
    busy: usize,
    lease: Duration,
) -> Result<Result<(), Failure>, Failure> {
    let slots = match service.duties.runs {
        true => service.settings().max_bottles,
        false => 0,
    };
    let whole = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let report = HostReport {
        name: holder.host.clone(),
        process: holder.process().to_owned(),
        place: place_of(&service.home)?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: service.duties.name().to_owned(),
        slots: whole(slots),
        busy: whole(busy),
        disk_free_bytes: host::file::free_space(&service.home.root).ok(),
    };
    Ok(match service.store.report_host(&report, lease).or_general()? {
        HostClaim::Held => Ok(()),
        HostClaim::Taken { process, until } => {
            let id = service.home.host_id.display();
            let text = format!(
                "another home has the name {} in the database, and its process {process} is alive until {until}",
                report.name
            );
            let remedy = format!(
                "if this home is a copy, remove {id} and start again; if that process is gone, wait until then"
            );
            Err(Failure::new(BottleExit::NotFound, text).with_remedy(remedy))
        }
    })
}

/// Takes this host off the list of those that are alive.
pub(super) fn leave_host(service: &Service, holder: &LeaseHolder) -> Result<(), Failure> {
    service.store.leave_host(&holder.host, holder.process()).or_general()
}

/// Failure of a report that was refused; the one that ends the process says more.
pub(super) fn name_is_taken() -> Failure {
    Failure::new(BottleExit::NotFound, "the name of this host is taken")
}

/// The running system and the folder of this home there: a copy has another folder, and another machine another system.
fn place_of(home: &Home) -> Result<String, Failure> {
    host::file::create_dirs(&home.root).or_general()?;
    let folder = std::fs::metadata(&home.root).or_general()?;
    Ok(format!("{}:{}:{}", host::proc::boot_id(), folder.dev(), folder.ino()))
}
