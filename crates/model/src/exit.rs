//! Exit statuses of the three programs: one table for each. The tables in the READMEs and in `--help` come from here.
//!
//! Scripts rely on the numbers: a new meaning gets a new number. Headless `bot-bottle start` and `resume` return the
//! agent's own status, and 125 when the failure is ours, as `docker run` does.

use std::fmt::Debug;

/// Exit statuses of one program.
pub trait ExitStatus: Copy + Debug + Eq + 'static {
    /// All statuses, by code.
    const ALL: &'static [Self];
    /// Wrong usage or configuration.
    const USAGE: Self;
    /// A failure of the machine, or one without a status of its own.
    const GENERAL: Self;
    /// A bug in the program.
    const INTERNAL: Self;

    fn row(self) -> ExitRow;

    /// Status of a program that this signal ended: 128 and its number, as a shell has it, if the table has that code.
    fn of_signal(signal: u8) -> Self {
        let code = 128_u8.saturating_add(signal);
        Self::ALL.iter().copied().find(|status| status.row().code == code).unwrap_or(Self::GENERAL)
    }
}

/// One status: a line of the tables in `--help` and in the README.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitRow {
    pub code: u8,
    /// One word, for scripts.
    pub name: &'static str,
    /// One line, for people.
    pub meaning: &'static str,
}

macro_rules! exit_table {
    ($(#[$doc:meta])* $table:ident { usage: $usage:ident, general: $general:ident,
       $($status:ident = $code:literal, $name:literal, $meaning:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $table {
            $(#[doc = $meaning] $status,)+
        }

        impl ExitStatus for $table {
            const ALL: &'static [Self] = &[$(Self::$status),+];
            const USAGE: Self = Self::$usage;
            const GENERAL: Self = Self::$general;
            const INTERNAL: Self = Self::Internal;

            fn row(self) -> ExitRow {
                match self {
                    $(Self::$status => ExitRow { code: $code, name: $name, meaning: $meaning },)+
                }
            }
        }

        impl $table {
            pub fn code(self) -> u8 {
                self.row().code
            }

            pub fn name(self) -> &'static str {
                self.row().name
            }

            pub fn meaning(self) -> &'static str {
                self.row().meaning
            }
        }

        impl From<$table> for u8 {
            fn from(status: $table) -> Self {
                status.code()
            }
        }
    };
}

exit_table! {
    /// Exit statuses of `forklift`.
    ForkliftExit { usage: Usage, general: Machine,
        Success = 0, "success", "pull request opened, or nothing to do";
        Machine = 1, "machine", "git, the network or the disk failed";
        Usage = 2, "usage", "wrong configuration or usage, or a missing remote";
        NotIntegrated = 3, "not-integrated", "upstream not integrated or dropped, work of the fork or tests lost, or refused for what it contains";
        Stuck = 4, "stuck", "the agent is stuck and left a note";
        OutOfTime = 5, "out-of-time", "the clock ran out";
        AgentFailed = 6, "agent-failed", "the agent failed";
        PublishFailed = 7, "publish-failed", "verified, but publishing failed";
        Internal = 9, "internal", "internal error; please report it";
        FixesMissing = 10, "fixes-missing", "the fork lacks security fixes of upstream (forklift security)";
        Superseded = 11, "superseded", "the fork carries changes that upstream has taken (forklift delta check)";
        HungUp = 129, "hung-up", "stopped because its terminal closed (SIGHUP)";
        Interrupted = 130, "interrupted", "stopped by Ctrl-C (SIGINT)";
        Terminated = 143, "terminated", "stopped by SIGTERM";
    }
}

exit_table! {
    /// Exit statuses of `wf`.
    WfExit { usage: Config, general: General,
        Success = 0, "success", "done";
        General = 1, "general", "general error, or ended by a signal";
        Config = 2, "config", "wrong configuration or usage";
        Lock = 3, "lock", "another process held the lock for too long";
        Implement = 4, "implement", "implementation failed, or there was nothing valid to implement";
        Test = 5, "test", "tests failed";
        Review = 6, "review", "review failed or requested changes";
        Qa = 7, "qa", "the QA gate failed";
        Blocked = 8, "blocked", "blocked until a person answers, accepts or resolves";
        Internal = 9, "internal", "internal error; please report it";
    }
}

exit_table! {
    /// Exit statuses of `bot-bottle`.
    BottleExit { usage: Usage, general: General,
        Success = 0, "success", "done";
        General = 1, "general", "general error";
        Usage = 2, "usage", "wrong configuration or usage";
        NotFound = 3, "not-found", "no such bottle, or it is in the wrong state";
        Blocked = 8, "blocked", "waiting for a person";
        Internal = 9, "internal", "internal error; please report it";
        OwnFailure = 125, "own-failure", "start or resume failed before the agent had a status of its own";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes of a table; names differ and meanings are one line.
    fn codes<S: ExitStatus>() -> Vec<u8> {
        let rows: Vec<ExitRow> = S::ALL.iter().map(|status| status.row()).collect();
        let names: std::collections::BTreeSet<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows.len());
        assert!(rows.iter().all(|row| row.meaning.lines().count() == 1));
        rows.iter().map(|row| row.code).collect()
    }

    #[test]
    fn statuses_have_the_documented_codes() {
        assert_eq!(codes::<ForkliftExit>(), [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 129, 130, 143]);
        assert_eq!(codes::<WfExit>(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(codes::<BottleExit>(), [0, 1, 2, 3, 8, 9, 125]);
    }

    #[test]
    fn a_signal_has_its_own_status_where_the_table_has_one() {
        assert_eq!([1, 2, 15].map(|it| ForkliftExit::of_signal(it).code()), [129, 130, 143]);
        assert_eq!(ForkliftExit::of_signal(9), ForkliftExit::Machine);
        assert_eq!(WfExit::of_signal(15), WfExit::General);
    }

    #[test]
    fn every_table_agrees_on_success_usage_and_internal() {
        fn common<S: ExitStatus>() -> [u8; 4] {
            [S::ALL[0], S::GENERAL, S::USAGE, S::INTERNAL].map(|status| status.row().code)
        }
        for codes in [common::<ForkliftExit>(), common::<WfExit>(), common::<BottleExit>()] {
            assert_eq!(codes, [0, 1, 2, 9]);
        }
    }
}
