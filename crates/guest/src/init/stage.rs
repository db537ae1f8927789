//! The end of a box: pure decisions on events.
//!
//! There are two stages. While the command runs the init waits; once the end has begun, all processes have been
//! signalled, and the init exits as soon as none is left or the time is up. The kernel kills the rest when pid 1 exits.

use std::time::{Duration, Instant};

use guest::{EXIT_BACKSTOP, EXIT_GUEST_FAILED, EXIT_STOPPED};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitStage {
    Running,
    /// All processes were signalled to end.
    Ending {
        /// The status of the box, already decided.
        status: i32,
        /// Deadline for the remaining processes.
        until: Instant,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitEvent {
    CommandEnded(i32),
    /// No child is left, and for pid 1 that means no other process.
    NobodyLeft,
    StopAsked,
    BackstopReached,
    TimeUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitAction {
    Wait,
    TerminateAll,
    Leave(i32),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct EndTimeouts {
    /// For leftovers, once the command has ended.
    pub(crate) linger: Duration,
    /// For all processes, after a stop request.
    pub(crate) grace: Duration,
}

/// Decides the reaction to an event.
pub(crate) fn next_stage(
    stage: InitStage,
    event: InitEvent,
    now: Instant,
    timeouts: EndTimeouts,
) -> (InitStage, InitAction) {
    let end = |status, time: Duration| {
        (InitStage::Ending { status, until: now + time }, InitAction::TerminateAll)
    };
    match (stage, event) {
        (InitStage::Running, InitEvent::CommandEnded(status)) => end(status, timeouts.linger),
        (InitStage::Running, InitEvent::StopAsked) => end(EXIT_STOPPED, timeouts.grace),
        (InitStage::Running, InitEvent::BackstopReached) => end(EXIT_BACKSTOP, timeouts.grace),
        // The end of the command always comes first; if it was lost, the wait would never end.
        (InitStage::Running, InitEvent::NobodyLeft) => {
            (stage, InitAction::Leave(EXIT_GUEST_FAILED))
        }
        (InitStage::Running, InitEvent::TimeUp) => (stage, InitAction::Wait),
        // The grace was for the command. Its leftovers get no more of it than after any other end.
        (InitStage::Ending { status, until }, InitEvent::CommandEnded(_)) => (
            InitStage::Ending { status, until: until.min(now + timeouts.linger) },
            InitAction::Wait,
        ),
        (InitStage::Ending { status, .. }, InitEvent::NobodyLeft | InitEvent::TimeUp) => {
            (stage, InitAction::Leave(status))
        }
        // The first reason for an end is the one that counts, and all processes have been signalled already.
        (InitStage::Ending { .. }, InitEvent::StopAsked | InitEvent::BackstopReached) => {
            (stage, InitAction::Wait)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: EndTimeouts =
        EndTimeouts { linger: Duration::from_millis(200), grace: Duration::from_secs(5) };

    #[test]
    fn the_status_of_the_command_is_the_status_of_the_box() {
        check(&[(0, InitEvent::CommandEnded(7)), (0, InitEvent::NobodyLeft)], InitAction::Leave(7));
    }

    #[test]
    fn leftovers_are_told_and_waited_for() {
        check(&[(0, InitEvent::CommandEnded(7))], InitAction::TerminateAll);
        check(&[(0, InitEvent::CommandEnded(7)), (200, InitEvent::TimeUp)], InitAction::Leave(7));
    }

    #[test]
    fn a_stopped_box_says_so_whatever_the_command_made_of_it() {
        check(&[(0, InitEvent::StopAsked)], InitAction::TerminateAll);
        check(&[(0, InitEvent::StopAsked), (9, InitEvent::CommandEnded(0))], InitAction::Wait);
        check(
            &[
                (0, InitEvent::StopAsked),
                (9, InitEvent::CommandEnded(0)),
                (9, InitEvent::NobodyLeft),
            ],
            InitAction::Leave(143),
        );
    }

    #[test]
    fn leftovers_of_a_stopped_command_do_not_use_up_its_grace() {
        let base = Instant::now();
        let stage = play(base, &[(0, InitEvent::StopAsked), (9, InitEvent::CommandEnded(0))]).0;
        assert_eq!(
            stage,
            InitStage::Ending { status: 143, until: base + Duration::from_millis(209) }
        );
    }

    #[test]
    fn a_late_end_does_not_prolong_the_grace() {
        let base = Instant::now();
        let stage = play(base, &[(0, InitEvent::StopAsked), (4_900, InitEvent::CommandEnded(0))]).0;
        assert_eq!(stage, InitStage::Ending { status: 143, until: base + PATIENCE.grace });
    }

    #[test]
    fn the_first_reason_for_the_end_counts() {
        let events = [
            (0, InitEvent::CommandEnded(3)),
            (1, InitEvent::StopAsked),
            (2, InitEvent::NobodyLeft),
        ];
        check(&events, InitAction::Leave(3));
        let events =
            [(0, InitEvent::BackstopReached), (1, InitEvent::StopAsked), (2, InitEvent::TimeUp)];
        check(&events, InitAction::Leave(124));
    }

    #[test]
    fn a_box_without_processes_never_waits_for_ever() {
        check(&[(0, InitEvent::NobodyLeft)], InitAction::Leave(125));
    }

    fn check(events: &[(u64, InitEvent)], act: InitAction) {
        assert_eq!(play(Instant::now(), events).1, act);
    }

    fn play(base: Instant, events: &[(u64, InitEvent)]) -> (InitStage, InitAction) {
        let start = (InitStage::Running, InitAction::Wait);
        events.iter().fold(start, |(stage, _), (at_ms, event)| {
            next_stage(stage, *event, base + Duration::from_millis(*at_ms), PATIENCE)
        })
    }
}
