//! `wf clarify`: lists, shows, answers and asks questions.

use std::path::Path;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use host::process::run_attached;
use model::command::{CommandExit, CommandSpec};
use serde_json::json;

use super::queue::{find_entry, list_entries, show_entry};
use super::{App, person};
use crate::cli::Which;
use crate::commands::complete::{question_ids, workstream_ids};
use crate::disk::queue::{QueueEntry, move_entry, save_entry};
use crate::disk::{ProjectDirs, Workstream, question};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::gate::update_status;
use crate::rules::clarification::{
    AnswerOption, Clarification, ClarificationStatus, NewQuestion, Urgency, render_clarification,
};
use crate::rules::status::WorkstreamStatus;

/// Questions that wait for a person.
#[derive(Debug, Subcommand)]
pub(crate) enum ClarifyCommand {
    /// List pending questions
    List {
        /// Only those of this workstream
        #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
        workstream: Option<String>,
        /// Include answered ones
        #[arg(long)]
        all: bool,
    },
    /// Show a question
    Show(QueueArg),
    /// Answer a question: with an option's number, in words, or in your editor
    Answer {
        #[command(flatten)]
        which: QueueArg,
        /// The number or id of an option, or words [default: $EDITOR opens]
        answer: Option<String>,
    },
    /// Ask a question of your own
    Ask {
        #[command(flatten)]
        which: Which,
        /// The question
        #[arg(long, value_name = "TEXT")]
        question: String,
        /// An answer to choose from (repeatable)
        #[arg(long = "option", value_name = "TEXT")]
        options: Vec<String>,
        /// Urgency of the question
        #[arg(long, value_enum, default_value_t)]
        urgency: Urgency,
    },
}

/// A question.
#[derive(Debug, Clone, Args)]
pub(crate) struct QueueArg {
    /// The question, such as CLQ-001
    #[arg(add = ArgValueCandidates::new(question_ids))]
    pub(crate) id: String,
    /// Its workstream, if the id alone is ambiguous
    #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    pub(crate) workstream: Option<String>,
}

pub(crate) async fn cmd_clarify(app: &App, command: ClarifyCommand) -> Outcome {
    match command {
        ClarifyCommand::List { workstream, all } => list(app, workstream.as_deref(), all),
        ClarifyCommand::Show(which) => {
            show_entry::<Clarification>(app, &which.id, which.workstream.as_deref())
        }
        ClarifyCommand::Answer { which, answer: typed } => {
            answer(app, &which, typed.as_deref()).await
        }
        ClarifyCommand::Ask { which, question, options, urgency } => {
            ask(app, &which, question, options, urgency).await
        }
    }
}

fn list(app: &App, workstream: Option<&str>, all: bool) -> Outcome {
    let statuses: &[ClarificationStatus] = if all {
        &[ClarificationStatus::Pending, ClarificationStatus::Answered]
    } else {
        &[ClarificationStatus::Pending]
    };
    let mut entries = list_entries::<Clarification>(app, workstream, statuses)?;
    entries.sort_by_key(|(.., entry)| match entry {
        QueueEntry::Good(question) => (!question.is_blocking(), question.id.to_string()),
        QueueEntry::Bad { name, .. } => (false, name.clone()),
    });
    if app.ui.is_json() {
        let rows: Vec<_> = entries
            .iter()
            .map(|(id, _, entry)| match entry {
                QueueEntry::Good(question) => json!({"workstream": id, "question": question}),
                QueueEntry::Bad { name, problem } => {
                    json!({"workstream": id, "id": name, "problem": problem})
                }
            })
            .collect();
        app.ui.document(&rows);
        return Ok(WfExit::Success);
    }
    if entries.is_empty() {
        app.ui.line("No pending questions.");
        return Ok(WfExit::Success);
    }
    let rows: Vec<Vec<String>> = entries
        .into_iter()
        .map(|(id, _, entry)| match entry {
            QueueEntry::Good(question) => {
                let first = question.question.lines().next().unwrap_or_default().to_owned();
                vec![question.id.to_string(), id.to_string(), question.urgency, first]
            }
            QueueEntry::Bad { name, problem } => vec![
                name,
                id.to_string(),
                "blocking".to_owned(),
                format!("cannot be read: {problem}"),
            ],
        })
        .collect();
    app.ui.table(&["ID", "WORKSTREAM", "URGENCY", "QUESTION"], rows);
    Ok(WfExit::Success)
}

/// Answers a question. It takes only the global lock, so that a person can answer during a run.
pub(super) async fn answer(app: &App, which: &QueueArg, typed: Option<&str>) -> Outcome {
    let dirs = app.dirs()?;
    if let Some(typed) = typed
        && repeat_answer(app, &dirs, which, typed).await?
    {
        return Ok(WfExit::Success);
    }
    let (_, question) = find_pending(app, &dirs, which)?;
    let typed = match typed {
        Some(typed) => typed.to_owned(),
        None => ask_editor(&question).await?,
    };
    let answer = question.choose_answer(&typed).or_exit(WfExit::Config)?;
    let _lock = dirs.lock_global(&format!("answer {}", question.id)).await?;
    // Another answer may have arrived while the editor was open.
    let (mut workstream, question) = find_pending(app, &dirs, which)?;
    let question = question.answered(answer, person(), host::clock::now());
    move_entry(&workstream.dir, ClarificationStatus::Pending, &question)?;
    let status = update_status(&mut workstream)?;
    show_answered(app, &question, &workstream, status);
    Ok(WfExit::Success)
}

fn show_answered(
    app: &App,
    question: &Clarification,
    workstream: &Workstream,
    status: WorkstreamStatus,
) {
    let (id, answer) = (&question.id, question.answer.as_deref().unwrap_or_default());
    app.ui.line(&format!("Answered {id}: {answer}"));
    app.ui.line(&format!("  {} is {status}", workstream.meta.id));
    app.ui.document(
        &json!({"question": question, "workstream": workstream.meta.id, "status": status}),
    );
}

/// Takes the same answer again, which completes what a killed command left; false if it is another one.
async fn repeat_answer(
    app: &App,
    dirs: &ProjectDirs,
    which: &QueueArg,
    typed: &str,
) -> WfResult<bool> {
    let answered = |status| match status {
        ClarificationStatus::Answered => Ok(()),
        ClarificationStatus::Pending => Err(Failure::usage("it is pending")),
    };
    let find = || find_entry(app, dirs, &which.id, which.workstream.as_deref(), answered);
    let Ok((_, old)): WfResult<(Workstream, Clarification)> = find() else { return Ok(false) };
    if old.choose_answer(typed).ok() != old.answer {
        return Ok(false);
    }
    let _lock = dirs.lock_global(&format!("answer {}", which.id)).await?;
    let (mut workstream, question): (Workstream, Clarification) = find()?;
    move_entry(&workstream.dir, ClarificationStatus::Pending, &question)?;
    let status = update_status(&mut workstream)?;
    show_answered(app, &question, &workstream, status);
    Ok(true)
}

async fn ask(
    app: &App,
    which: &Which,
    text: String,
    options: Vec<String>,
    urgency: Urgency,
) -> Outcome {
    if text.trim().is_empty() {
        return Err(Failure::usage("the question is empty"));
    }
    let (dirs, mut workstream) = app.open(which)?;
    let options = options.into_iter().enumerate().map(|(at, label)| AnswerOption {
        id: format!("option-{}", at + 1),
        label,
        tradeoffs: String::new(),
    });
    let question = NewQuestion {
        text,
        options: options.collect(),
        urgency,
        source_stage: "manual",
        blocks: Vec::new(),
    };
    let _lock = dirs.lock_global("ask").await?;
    let question = match question::find_same(&workstream.dir, &question)? {
        Some(asked) => {
            save_entry(&workstream.dir, &asked)?;
            asked
        }
        None => question::ask(&dirs, &workstream, question, host::clock::now())?,
    };
    let status = update_status(&mut workstream)?;
    app.ui.line(&format!("Asked {}; {} is {status}", question.id, workstream.meta.id));
    app.ui.document(&question);
    Ok(WfExit::Success)
}

fn find_pending(
    app: &App,
    dirs: &ProjectDirs,
    which: &QueueArg,
) -> WfResult<(Workstream, Clarification)> {
    find_entry(app, dirs, &which.id, which.workstream.as_deref(), |status| match status {
        ClarificationStatus::Pending => Ok(()),
        ClarificationStatus::Answered => {
            Err(Failure::usage(format!("{} was answered already", which.id)))
        }
    })
}

/// Opens the person's editor with the question in comments; what is not a comment is the answer.
async fn ask_editor(question: &Clarification) -> WfResult<String> {
    let editor = editor().map_err(|_unset| {
        Failure::usage(format!(
            "give the answer, as in: wf clarify answer {} \"...\", or set EDITOR",
            question.id
        ))
    })?;
    let file = tempfile::Builder::new().suffix(".md").tempfile().or_exit(WfExit::General)?;
    let page = render_clarification(question);
    let quoted: Vec<String> =
        page.lines().map(|line| format!("; {line}").trim_end().to_owned()).collect();
    let text = format!(
        "\n; Write the answer above: an option's number, or words. Lines with ; are left out.\n;\n{}\n",
        quoted.join("\n")
    );
    std::fs::write(file.path(), text).or_exit(WfExit::General)?;
    open_editor(&editor, file.path()).await?;
    let written = std::fs::read_to_string(file.path()).or_exit(WfExit::General)?;
    Ok(written.lines().filter(|line| !line.starts_with(';')).collect::<Vec<_>>().join("\n"))
}

pub(super) fn editor() -> WfResult<String> {
    let set = ["VISUAL", "EDITOR"].iter().find_map(|name| host::env::var(name));
    set.filter(|editor| !editor.trim().is_empty())
        .ok_or_else(|| Failure::usage("there is no editor; set EDITOR"))
}

/// Opens it on a file and waits until it is closed.
pub(super) async fn open_editor(editor: &str, path: &Path) -> WfResult<()> {
    let mut spec = command_line(editor, "editor")?.arg(path);
    spec.env = host::env::vars_os();
    match run_attached(&spec).await.or_exit(WfExit::General)? {
        CommandExit::Exited(0) => Ok(()),
        exit => {
            let message = format!("the editor failed ({exit:?}); nothing was changed");
            Err(Failure::new(WfExit::General, message))
        }
    }
}

/// The program and the arguments of a variable such as EDITOR.
pub(super) fn command_line(text: &str, noun: &str) -> WfResult<CommandSpec> {
    let mut words = text.split_whitespace();
    let program = words.next().unwrap_or_default();
    let found = host::tool::which(program).ok_or_else(|| {
        let variable = noun.to_ascii_uppercase();
        Failure::usage(format!("the {noun} '{program}' was not found; set {variable}"))
    })?;
    Ok(CommandSpec::new(found).args(words))
}
