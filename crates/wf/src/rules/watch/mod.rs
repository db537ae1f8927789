//! Contents, order and key bindings of `wf watch`, without the terminal.

mod key;
mod page;

use jiff::Timestamp;
use model::id::{ClarificationId, WorkstreamId};

use super::status::WorkstreamStatus;

pub(crate) use key::{BoardAction, KeyPress, press};
pub(crate) use page::{BoardLine, BoardPage, Tone, render_page};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingQuestion {
    pub(crate) id: ClarificationId,
    pub(crate) text: String,
    pub(crate) options: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActiveStage {
    pub(crate) stage: String,
    pub(crate) since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkstreamView {
    pub(crate) id: WorkstreamId,
    pub(crate) title: String,
    pub(crate) status: WorkstreamStatus,
    /// Micro-commits done and planned; none if the plan cannot be read.
    pub(crate) progress: Option<(usize, usize)>,
    pub(crate) active_stage: Option<ActiveStage>,
    pub(crate) questions: Vec<PendingQuestion>,
    pub(crate) awaits_approval: bool,
}

impl WorkstreamView {
    /// Next step for a person, if any. During a run only a question needs one.
    pub(crate) fn need(&self) -> Option<String> {
        if let Some(question) = self.questions.first() {
            return Some(format!("answer {}", question.id));
        }
        if self.active_stage.is_some() {
            return None;
        }
        if self.awaits_approval {
            return Some("approve or reject".to_owned());
        }
        self.status.needs().map(str::to_owned)
    }

    /// The same as a line to type from, with the workstream's name.
    pub(crate) fn next(&self) -> Option<String> {
        match self.questions.is_empty() && !self.awaits_approval {
            true => self.need().and_then(|_| self.status.needs_of(&self.id)),
            false => self.need(),
        }
    }

    /// Sort key: workstreams that need a person first, then active ones, then the others.
    fn rank(&self) -> u8 {
        match (self.need().is_some(), &self.active_stage, self.status) {
            // An unwritten plan is not urgent.
            (true, _, WorkstreamStatus::Planning) => 2,
            (true, _, _) => 0,
            (false, Some(_), _) => 1,
            (false, None, WorkstreamStatus::Done) => 4,
            (false, None, _) => 3,
        }
    }
}

/// Line that is being typed about a workstream: an answer to its question, or the reason of a rejection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedLine {
    pub(crate) workstream: WorkstreamId,
    pub(crate) question: Option<ClarificationId>,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Board {
    pub(crate) project: String,
    pub(crate) rows: Vec<WorkstreamView>,
    pub(crate) selected: usize,
    /// Without one, keys choose.
    pub(crate) typed: Option<TypedLine>,
    pub(crate) message: String,
}

impl Board {
    /// Replaces the rows. The selected workstream stays selected in its new place.
    pub(crate) fn update(&mut self, mut found: Vec<WorkstreamView>) {
        let chosen = self.chosen().map(|view| view.id.clone());
        found.sort_by(|one, other| (one.rank(), &one.id).cmp(&(other.rank(), &other.id)));
        let place = chosen.and_then(|id| found.iter().position(|view| view.id == id));
        self.selected = place.unwrap_or(self.selected).min(found.len().saturating_sub(1));
        self.rows = found;
    }

    pub(crate) fn chosen(&self) -> Option<&WorkstreamView> {
        self.rows.get(self.selected)
    }
}

pub(crate) fn new_needs(before: &[WorkstreamView], now: &[WorkstreamView]) -> Vec<String> {
    let had = |view: &WorkstreamView| {
        before.iter().find(|old| old.id == view.id).is_some_and(|old| old.need() == view.need())
    };
    let is_new = |view: &&WorkstreamView| view.rank() == 0 && !had(view);
    let words = |view: &WorkstreamView| Some(format!("{} needs you: {}", view.id, view.need()?));
    now.iter().filter(is_new).filter_map(words).collect()
}

#[cfg(test)]
pub(crate) mod sample {
    //! Workstreams for tests.

    use super::*;

    pub(crate) fn view(id: &str, status: WorkstreamStatus) -> WorkstreamView {
        WorkstreamView {
            id: WorkstreamId::parse(id).unwrap(),
            title: format!("About {id}"),
            status,
            progress: Some((1, 3)),
            active_stage: None,
            questions: Vec::new(),
            awaits_approval: false,
        }
    }

    pub(crate) fn asking(id: &str, options: &[&str]) -> WorkstreamView {
        let waiting = PendingQuestion {
            id: ClarificationId::numbered(1),
            text: "Which?".to_owned(),
            options: options.iter().map(|&word| word.to_owned()).collect(),
        };
        WorkstreamView {
            questions: vec![waiting],
            ..view(id, WorkstreamStatus::BlockedClarification)
        }
    }

    pub(crate) fn working(id: &str) -> WorkstreamView {
        let active_stage = ActiveStage { stage: "test".to_owned(), since: Timestamp::UNIX_EPOCH };
        WorkstreamView {
            active_stage: Some(active_stage),
            ..view(id, WorkstreamStatus::BlockedTest)
        }
    }

    pub(crate) fn board(rows: Vec<WorkstreamView>) -> Board {
        let mut board = Board { project: "app".to_owned(), ..Board::default() };
        board.update(rows);
        board
    }
}

#[cfg(test)]
mod tests {
    use super::sample::{asking, board, view, working};
    use super::*;
    use WorkstreamStatus as S;

    #[test]
    fn what_needs_a_person_comes_first_then_what_runs() {
        let rows = vec![
            view("done", S::Done),
            view("idle", S::Implement),
            view("plan", S::Planning),
            working("busy"),
            view("ready", S::MergeReady),
            asking("asks", &[]),
        ];
        let board = board(rows);
        let ids: Vec<&str> = board.rows.iter().map(|view| view.id.as_str()).collect();
        assert_eq!(ids, ["asks", "ready", "busy", "plan", "idle", "done"]);
    }

    #[test]
    fn a_run_that_is_on_needs_nobody_unless_it_asks() {
        assert_eq!(working("a").need(), None);
        assert_eq!(view("a", S::BlockedTest).need().unwrap(), "look at the last run: wf show");
        let both = WorkstreamView { active_stage: working("a").active_stage, ..asking("a", &[]) };
        assert_eq!(both.need().unwrap(), "answer CLQ-001");
        let supervised = WorkstreamView { awaits_approval: true, ..view("a", S::Implement) };
        assert_eq!(supervised.need().unwrap(), "approve or reject");
    }

    #[test]
    fn the_chosen_workstream_stays_chosen_when_the_order_changes() {
        let mut board = board(vec![view("a", S::Implement), view("b", S::Implement)]);
        board.selected = 1;
        board.update(vec![view("a", S::Implement), asking("b", &[])]);
        assert_eq!((board.selected, board.chosen().unwrap().id.as_str()), (0, "b"));
        board.update(vec![view("a", S::Implement)]);
        assert_eq!(board.chosen().unwrap().id.as_str(), "a");
        board.update(Vec::new());
        assert_eq!(board.chosen(), None);
    }

    #[test]
    fn only_a_need_that_is_new_is_told() {
        let (before, now) = ([view("a", S::Implement)], [asking("a", &[])]);
        assert_eq!(new_needs(&before, &now), ["a needs you: answer CLQ-001"]);
        assert_eq!(new_needs(&now, &now), Vec::<String>::new());
        assert_eq!(new_needs(&now, &before), Vec::<String>::new());
    }
}
