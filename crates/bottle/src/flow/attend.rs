//! Waits for an agent's box, with a watchdog: an agent that signalled completion may leave, one without a sign of life
//! for too long is frozen, and a sidecar that died is noticed.

use std::time::{Duration, Instant};

use engine::agent_run::AgentExit;
use engine::launch;
use engine::run::Product;
use jiff::Timestamp;

use super::run::BottleRun;
use super::run_record::{SidecarEnd, WatchdogReason};
use super::sidecar::SidecarPlace;
use crate::exit::{Failure, OrGeneral};

/// Interval between two checks: short while much may go wrong, then long, because hundreds of agents must not keep a
/// processor busy.
const PAUSE: Duration = Duration::from_millis(250);
const LATER_PAUSE: Duration = Duration::from_secs(2);
const EARLY: Duration = Duration::from_secs(20);

/// Time for an agent to leave after its completion signal: it saves its conversation.
const LEAVE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Watch {
    died: Option<Timestamp>,
    timed_out: bool,
    /// The last sign of life, and when it was observed on the monotonic clock: wall clocks are set back and forth.
    last_sign: Option<(Timestamp, Instant)>,
    done_since: Option<Instant>,
    frozen: bool,
}

impl BottleRun<'_> {
    /// Waits for the box, and records the end of the sidecar.
    pub(super) async fn attend_with_watchdog(&mut self) -> Result<AgentExit, Failure> {
        let mut watch = Watch::default();
        let place = SidecarPlace::of(&self.run.dir)?;
        let terminal = self.run.terminal.take();
        let done = {
            let mut attended = std::pin::pin!(self.run.attend(terminal, self.context.ui));
            let begun = host::clock::monotonic();
            loop {
                let pause = if begun.elapsed() < EARLY { PAUSE } else { LATER_PAUSE };
                let looked = tokio::time::timeout(pause, &mut attended).await;
                match looked {
                    Ok(done) => break done.map_err(Self::failure)?,
                    Err(_) if self.access.is_some() => self.check_signs(&place, &mut watch)?,
                    Err(_) => {}
                }
            }
        };
        if self.run.record.forge.is_some() {
            self.part_with_sidecar(&place, &watch).await?;
        }
        Ok(done)
    }

    /// Checks the sidecar, its queue and the clock once.
    fn check_signs(&self, place: &SidecarPlace, watch: &mut Watch) -> Result<(), Failure> {
        let at_terminal = self.run.plan.terminal.is_some();
        if watch.died.is_none() && place.has_died()? {
            watch.died = Some(host::clock::now());
            if !at_terminal {
                self.context.ui.note("the forge sidecar died: the agent goes on without a forge");
            }
        }
        let (sign, now) = (self.last_sign()?, host::clock::monotonic());
        let since = match watch.last_sign {
            Some((known, since)) if known == sign => since,
            _ => {
                watch.last_sign = Some((sign, now));
                match self.context.rows.touch(&self.record) {
                    // The loss ends the box, which is waited for.
                    Err(_) if self.context.rows.has_lost_lease() => {}
                    touched => touched?,
                }
                now
            }
        };
        let limit = self.run.record.forge.as_ref().map_or(u64::MAX, |env| env.watchdog_secs);
        if place.done()?.is_some() {
            watch.done_since.get_or_insert(now);
        }
        let leaves = watch.done_since.is_some_and(|since| since.elapsed() >= LEAVE);
        let silent = watch.done_since.is_none() && since.elapsed() >= Duration::from_secs(limit);
        // A user at the terminal decides when it is over.
        if (leaves || silent) && !watch.frozen && !at_terminal {
            watch.frozen = true;
            watch.timed_out = silent;
            self.context.ui.note(if silent {
                "nothing was heard for too long: freezing"
            } else {
                "done: freezing"
            });
            launch::freeze(&self.run.agent_run().map_err(Self::failure)?.box_dir()).or_general()?;
        }
        Ok(())
    }

    /// Time of the agent's last sign of life: a call to the forge, output, traffic, computing. It comes from files, so it
    /// survives this process.
    fn last_sign(&self) -> Result<Timestamp, Failure> {
        let called = std::fs::metadata(self.run.dir.operations()).and_then(|it| it.modified()).ok();
        let agent_run = self.run.agent_run().map_err(Self::failure)?;
        let lived = agent_run.box_dir().last_sign(agent_run.spec().output);
        let signs = called.into_iter().chain(lived).filter_map(|at| Timestamp::try_from(at).ok());
        Ok(signs.max().unwrap_or(self.run.record.started_at))
    }

    /// Ends the sidecar, and records its end and the agent's report.
    async fn part_with_sidecar(
        &mut self,
        place: &SidecarPlace,
        watch: &Watch,
    ) -> Result<(), Failure> {
        place.stop().await?;
        let died = place.has_died()?;
        self.run.record.sidecar = Some(match died {
            true => SidecarEnd::Died { seen_at: watch.died.unwrap_or_else(host::clock::now) },
            false => SidecarEnd::Stopped,
        });
        self.run.record.done = place.done()?;
        let is_stopped = self.context.stop_words().is_some();
        self.run.record.watchdog = match (&self.run.record.done, died, watch.timed_out) {
            // An agent that a person stopped had no time to report.
            (None, false, _) if is_stopped => None,
            (Some(_), _, _) => None,
            (None, true, _) => Some(WatchdogReason::SidecarDied),
            (None, false, true) => Some(WatchdogReason::TimedOut),
            (None, false, false) => Some(WatchdogReason::EndedWithoutSignal),
        };
        Ok(())
    }
}
