//! `wf watch`: all workstreams on one screen, and keys for what needs a person.
//!
//! The files are authoritative. They are checked twice a second, and the screen is drawn only when it changes.

mod pager;
mod screen;

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use host::signal::Cancel;
use model::error_chain;
use tokio::time::{MissedTickBehavior, interval};

use self::pager::{Paper, open_paper};
use self::screen::{Screen, parse_key};
use super::App;
use super::clarify::QueueArg;
use super::verdict::RejectArgs;
use crate::cli::Which;
use crate::disk::{ProjectDirs, ProjectEffects};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::board::{BoardStamp, observe_board, observe_stamp};
use crate::flow::notify::notify;
use crate::rules::watch::{Board, BoardAction, BoardPage, new_needs, press, render_page};

const LOOK: Duration = Duration::from_millis(500);

pub(crate) async fn cmd_watch(app: &App) -> Outcome {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::usage("wf watch needs a terminal; elsewhere use: wf list --json"));
    }
    // Such a terminal shows the commands that move its cursor as text.
    if host::env::var_os("TERM").is_some_and(|name| name == "dumb") {
        let text =
            "wf watch needs a terminal that can move its cursor, and TERM is dumb; use: wf list";
        return Err(Failure::usage(text));
    }
    let dirs = app.dirs()?;
    let cancel = host::signal::cancel_on_signals().or_exit(WfExit::General)?;
    let mut watch = WatchScreen::new(app, dirs)?;
    let outcome = watch.go_on(&cancel).await;
    // The terminal is restored before anything is printed.
    watch.screen.leave();
    outcome.map(|()| WfExit::Success)
}

struct WatchScreen {
    /// The commands behind the keys print nothing.
    silent: App,
    dirs: ProjectDirs,
    board: Board,
    stamp: BoardStamp,
    drawn: Option<BoardPage>,
    screen: Screen,
}

impl WatchScreen {
    fn new(app: &App, dirs: ProjectDirs) -> WfResult<Self> {
        let mut board = Board { project: dirs.project.name.to_string(), ..Board::default() };
        // Taken before the read: a change in between is seen at the next check.
        let stamp = observe_stamp(&dirs)?;
        let (rows, _) = observe_board(&dirs)?;
        board.update(rows);
        let screen = Screen::enter().or_exit(WfExit::General)?;
        Ok(Self { silent: app.silent(), dirs, board, stamp, drawn: None, screen })
    }

    async fn go_on(&mut self, cancel: &Cancel) -> WfResult<()> {
        let mut keys = EventStream::new();
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.draw()?;
            let next = tokio::select! {
                _ = cancel.cancelled() => ControlFlow::Break(()),
                _ = ticks.tick() => { self.look()?; ControlFlow::Continue(()) }
                event = keys.next() => match event {
                    Some(Ok(Event::Key(key))) => match parse_key(key) {
                        Some(key) => {
                            let action = press(&mut self.board, key);
                            self.act(action, &mut keys).await?
                        }
                        None => ControlFlow::Continue(()),
                    },
                    // Another size is seen when the page is made for it.
                    Some(Ok(_)) => { self.drawn = None; ControlFlow::Continue(()) }
                    Some(Err(error)) => return Err(error).or_exit(WfExit::General),
                    None => ControlFlow::Break(()),
                },
            };
            if next.is_break() {
                return Ok(());
            }
        }
    }

    fn draw(&mut self) -> WfResult<()> {
        let (columns, rows) = self.screen.size().or_exit(WfExit::General)?;
        let page = render_page(&self.board, host::clock::now(), columns, rows);
        if self.drawn.as_ref() != Some(&page) {
            self.screen.draw(&page).or_exit(WfExit::General)?;
            self.drawn = Some(page);
        }
        Ok(())
    }

    fn look(&mut self) -> WfResult<()> {
        let stamp = observe_stamp(&self.dirs)?;
        if stamp == self.stamp {
            return Ok(());
        }
        self.stamp = stamp;
        let (rows, faults) = observe_board(&self.dirs)?;
        let needs = new_needs(&self.board.rows, &rows);
        self.board.update(rows);
        if let Some(fault) = faults.first() {
            self.board.message = error_chain(fault);
        }
        self.notify(needs);
        Ok(())
    }

    fn notify(&mut self, needs: Vec<String>) {
        if needs.is_empty() {
            return;
        }
        let (profile, effects) = match (self.dirs.load_profile(), ProjectEffects::of(&self.dirs)) {
            (Ok((profile, _)), Ok(effects)) => (profile, effects),
            (Err(error), _) => return self.board.message = error_chain(&error),
            (_, Err(failure)) => return self.board.message = failure.to_string(),
        };
        let message = needs.join("; ");
        // The board shows the same message, so the result is ignored.
        drop(tokio::spawn(async move { notify(&effects, &profile, None, &message).await }));
    }

    async fn act(
        &mut self,
        action: BoardAction,
        keys: &mut EventStream,
    ) -> WfResult<ControlFlow<()>> {
        let done = match action {
            BoardAction::Stay => return Ok(ControlFlow::Continue(())),
            BoardAction::Quit => return Ok(ControlFlow::Break(())),
            BoardAction::Answer { workstream, question, words } => {
                let which =
                    QueueArg { id: question.to_string(), workstream: Some(workstream.to_string()) };
                let outcome = super::clarify::answer(&self.silent, &which, Some(&words)).await;
                outcome.map(|_| format!("Answered {question}; continue: wf run {workstream}"))
            }
            BoardAction::Approve(id) => {
                let outcome = super::verdict::cmd_approve(&self.silent, &named(&id)).await;
                outcome.map(|_| format!("Approved; continue: wf run {id}"))
            }
            BoardAction::Reject { workstream, words } => {
                let args = RejectArgs { which: named(&workstream), message: words };
                let outcome = super::verdict::cmd_reject(&self.silent, &args).await;
                outcome.map(|_| format!("Rejected; repeat it: wf run {workstream}"))
            }
            BoardAction::ShowDiff(id) => self.read(id.as_str(), Paper::Diff, keys).await,
            BoardAction::ShowLog(id) => self.read(id.as_str(), Paper::Log, keys).await,
        };
        self.look()?;
        self.board.message = done.unwrap_or_else(|failure| failure.to_string());
        Ok(ControlFlow::Continue(()))
    }

    /// Hands the terminal to a pager, which must be the only reader of the keys.
    async fn read(&mut self, id: &str, paper: Paper, keys: &mut EventStream) -> WfResult<String> {
        let path = paper.find(&self.dirs, id)?;
        self.screen.leave();
        // The old stream would go on reading beside the pager.
        *keys = EventStream::new();
        let outcome = open_paper(&path).await;
        self.screen = Screen::enter().or_exit(WfExit::General)?;
        self.drawn = None;
        outcome.map(|()| String::new())
    }
}

fn named(id: &model::id::WorkstreamId) -> Which {
    Which { id: Some(id.to_string()) }
}
