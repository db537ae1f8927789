//! Resource limits on this process, which all its children inherit.

use guest::config::RlimitSpec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::GuestError;

/// Sets every given limit, soft and hard, and returns the effective ones.
pub(crate) fn set(wanted: &RlimitSpec) -> Result<RlimitSpec, GuestError> {
    Ok(RlimitSpec {
        nproc: set_one("nproc", Resource::Nproc, wanted.nproc)?,
        nofile: set_one("nofile", Resource::Nofile, wanted.nofile)?,
        fsize: set_one("fsize", Resource::Fsize, wanted.fsize)?,
        core: set_one("core", Resource::Core, Some(wanted.core))?.unwrap_or(wanted.core),
        address_space: set_one("as", Resource::As, wanted.address_space)?,
        msgqueue: set_one("msgqueue", Resource::Msgqueue, wanted.msgqueue)?,
        cpu_secs: set_one("cpu", Resource::Cpu, wanted.cpu_secs)?,
    })
}

/// Splits off the limits that only the command may have. A hard limit on processor time kills even pid 1, and
/// pid 1 out of address space aborts: either would end the box for the agent's use of its network.
pub(crate) fn split_for_init(wanted: &RlimitSpec) -> (RlimitSpec, RlimitSpec) {
    let for_init = RlimitSpec { address_space: None, cpu_secs: None, ..*wanted };
    let for_command = RlimitSpec {
        address_space: wanted.address_space.map(|value| within_hard(Resource::As, value)),
        cpu_secs: wanted.cpu_secs.map(|value| within_hard(Resource::Cpu, value)),
        core: wanted.core,
        ..RlimitSpec::default()
    };
    (for_init, for_command)
}

fn set_one(
    name: &'static str,
    resource: Resource,
    wanted: Option<u64>,
) -> Result<Option<u64>, GuestError> {
    let Some(wanted) = wanted else { return Ok(None) };
    let value = within_hard(resource, wanted);
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
        .map_err(GuestError::could_not(format!("limit {name} to {value}")))?;
    Ok(getrlimit(resource).current)
}

/// Caps a value at the hard limit, which cannot be raised; a lower limit is still within the promise.
fn within_hard(resource: Resource, wanted: u64) -> u64 {
    getrlimit(resource).maximum.map_or(wanted, |hard| hard.min(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_init_bears_no_limit_that_could_kill_it() {
        let wanted = RlimitSpec {
            nproc: Some(9),
            address_space: Some(1 << 40),
            cpu_secs: Some(5),
            ..RlimitSpec::default()
        };
        let (init, command) = split_for_init(&wanted);
        assert_eq!(init, RlimitSpec { nproc: Some(9), ..RlimitSpec::default() });
        assert_eq!(command.cpu_secs, Some(5));
        assert_eq!(command.nproc, None);
    }

    #[test]
    fn a_limit_can_be_lowered_and_never_raised() {
        // Core files are the one limit here that does not affect other tests of this process.
        let first = set(&RlimitSpec { core: 4096, ..RlimitSpec::default() }).unwrap();
        assert!(first.core <= 4096);
        assert_eq!(set(&RlimitSpec { core: 8192, ..RlimitSpec::default() }).unwrap(), first);
    }
}
