//! Check of `doctor`: the database that several hosts share.

use shell::config::FleetEntry;
use shell::doctor::Finding;

use super::fleet::fleet_of;
use super::home::Home;

/// Name of the findings.
const NAME: &str = "database";

/// Looks at the shared database; nothing without one.
pub(crate) fn check_database(home: &Home) -> Vec<Finding> {
    match fleet_of(home) {
        Ok(None) => Vec::new(),
        Ok(Some(fleet)) => look(&fleet),
        Err(failure) => vec![Finding::bad(NAME, failure.to_string())],
    }
}

#[cfg(not(feature = "postgres"))]
fn look(_fleet: &FleetEntry) -> Vec<Finding> {
    let why = "fleet.database needs a bot-bottle that was built with --features postgres";
    vec![Finding::bad(NAME, why)]
}

#[cfg(feature = "postgres")]
fn look(fleet: &FleetEntry) -> Vec<Finding> {
    let options = match super::fleet::postgres_options(fleet) {
        Ok(options) => options,
        Err(failure) => return vec![Finding::bad(NAME, failure.to_string())],
    };
    match orchestrator_db::check_postgres(&options) {
        Ok(health) => findings_of(&health),
        Err(error) => vec![Finding::bad(NAME, model::error_chain(&error))],
    }
}

#[cfg(feature = "postgres")]
fn findings_of(health: &orchestrator_db::DatabaseHealth) -> Vec<Finding> {
    vec![server_of(health), replication_of(health), clock_of(health)]
}

#[cfg(feature = "postgres")]
fn server_of(health: &orchestrator_db::DatabaseHealth) -> Finding {
    let server = format!("{}: PostgreSQL {}", health.database, health.version);
    if health.encoding != "UTF8" {
        let encoding = &health.encoding;
        let words = format!("{server}: its encoding is {encoding}: create it with ENCODING 'UTF8'");
        return Finding::bad(NAME, words);
    }
    if !health.accepts_writes {
        return Finding::bad(NAME, format!("{server}: it accepts no writes; name the primary too"));
    }
    let known = health.known_schema;
    let schema = match health.schema {
        Some(found) if found > known => {
            let words = format!(
                "{server}: its schema {found} is of a newer version (this one knows {known}); install that one"
            );
            return Finding::bad(NAME, words);
        }
        Some(found) => format!("schema {found}"),
        None => "without tables, which the first bot-bottle serve makes".to_owned(),
    };
    match health.is_durable {
        true => Finding::good(NAME, format!("{server}, accepts writes, {schema}")),
        false => Finding::odd(
            NAME,
            format!(
                "{server}, {schema}: a power failure may lose what was acknowledged; turn fsync, full_page_writes and synchronous_commit on"
            ),
        ),
    }
}

#[cfg(feature = "postgres")]
fn replication_of(health: &orchestrator_db::DatabaseHealth) -> Finding {
    use orchestrator_db::ReplicationState as State;

    const NAME: &str = "standby";
    match health.replication {
        State::Synchronous => {
            Finding::good(NAME, "synchronous: a fail-over to one that is up to date loses no claim")
        }
        State::Alone => {
            Finding::good(NAME, "none is connected: work waits while the server is down")
        }
        State::Asynchronous => Finding::odd(
            NAME,
            "not synchronous: a fail-over to it loses the newest claims, and two hosts may work on one issue; set synchronous_standby_names",
        ),
        State::Waiting => Finding::odd(
            NAME,
            "commits wait for a standby, and none is connected: nothing is stored until one is",
        ),
        State::Hidden => Finding::odd(
            NAME,
            "whether it is synchronous is hidden from this role; GRANT pg_monitor TO it",
        ),
    }
}

#[cfg(feature = "postgres")]
fn clock_of(health: &orchestrator_db::DatabaseHealth) -> Finding {
    const NAME: &str = "clock";
    let millis = health.clock_difference.as_millis();
    let difference = format!("{} ms", millis.abs());
    match millis {
        -2000..=2000 => Finding::good(NAME, format!("{difference} from the database's")),
        _ => {
            let way = if millis > 0 { "behind" } else { "ahead of" };
            let words = format!(
                "{difference} {way} the database's: leases are not affected, and what waits for a time is early or late by that"
            );
            Finding::odd(NAME, words)
        }
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use jiff::SignedDuration;
    use orchestrator_db::{DatabaseHealth, ReplicationState};

    use super::*;

    fn healthy() -> DatabaseHealth {
        DatabaseHealth {
            database: "the database 'bottles' on db.example".to_owned(),
            version: "15.18".to_owned(),
            schema: Some(1),
            known_schema: 1,
            accepts_writes: true,
            is_durable: true,
            encoding: "UTF8".to_owned(),
            replication: ReplicationState::Synchronous,
            clock_difference: SignedDuration::from_millis(3),
        }
    }

    #[track_caller]
    fn check(health: DatabaseHealth, states: [&str; 3]) {
        let findings = findings_of(&health);
        let found: Vec<_> =
            findings.iter().map(|it| serde_json::json!(it)["state"].clone()).collect();
        assert_eq!(found, states, "{health:?}");
    }

    #[test]
    fn what_may_lose_a_claim_is_not_good() {
        use ReplicationState as State;

        check(healthy(), ["good", "good", "good"]);
        check(DatabaseHealth { schema: None, ..healthy() }, ["good", "good", "good"]);
        check(DatabaseHealth { schema: Some(2), ..healthy() }, ["bad", "good", "good"]);
        check(DatabaseHealth { accepts_writes: false, ..healthy() }, ["bad", "good", "good"]);
        check(DatabaseHealth { is_durable: false, ..healthy() }, ["told", "good", "good"]);
        let encoding = "LATIN1".to_owned();
        check(DatabaseHealth { encoding, ..healthy() }, ["bad", "good", "good"]);
        for (replication, state) in [
            (State::Alone, "good"),
            (State::Asynchronous, "told"),
            (State::Waiting, "told"),
            (State::Hidden, "told"),
        ] {
            check(DatabaseHealth { replication, ..healthy() }, ["good", state, "good"]);
        }
        for (millis, state) in [(-2500, "told"), (-100, "good"), (2500, "told")] {
            let clock_difference = SignedDuration::from_millis(millis);
            check(DatabaseHealth { clock_difference, ..healthy() }, ["good", "good", state]);
        }
    }
}
