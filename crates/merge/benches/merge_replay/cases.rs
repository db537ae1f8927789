//! Every answer of a replay as a line of JSON, to look for better rules outside of the bench.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use merge::resolver::decide::{agrees, best_texts};
use merge::resolver::knowledge::ReplayedConflict;
use merge::resolver::scorer::kind_of;
use serde_json::{Value, json};

/// The file, if one was asked for.
pub(crate) struct CaseFile {
    file: Option<BufWriter<File>>,
    merges: usize,
}

impl CaseFile {
    pub(crate) fn create(path: Option<&Path>) -> Self {
        Self { file: path.map(|path| BufWriter::new(File::create(path).unwrap())), merges: 0 }
    }

    /// Adds the conflicts of one merge, which get its number.
    pub(crate) fn add(&mut self, fork: &str, replayed: &[ReplayedConflict]) {
        self.merges += 1;
        let Some(file) = &mut self.file else { return };
        for one in replayed {
            let path = one.conflict.path.to_string();
            let kind = kind_of(&one.conflict);
            let (merge, answers) = (self.merges, answers(one));
            let case = json!({"fork": fork, "merge": merge, "path": path, "kind": kind, "answers": answers});
            writeln!(file, "{case}").unwrap();
        }
    }
}

fn answers(replayed: &ReplayedConflict) -> Vec<Value> {
    let ReplayedConflict { conflict, human, scored } = replayed;
    let whole = scored.whole.as_ref().map(|answer| {
        json!({
            "basis": answer.basis, "class": answer.answer_class.name, "score": answer.score,
            "confidence": answer.confidence, "features": answer.features,
            "agreed": human.agree_with_choice(conflict, answer.choice),
        })
    });
    let by_hunks = scored.by_hunks.as_ref().map(|answer| {
        let texts: Vec<&[u8]> = best_texts(scored).collect();
        let best = |hunk: &merge::resolver::scorer::ScoredHunk| {
            let best = hunk.candidates.get(hunk.best?)?;
            Some(json!([best.answer_class.name, best.precision]))
        };
        json!({
            "basis": answer.basis, "score": answer.score, "confidence": answer.confidence,
            "features": answer.features, "hunks": scored.hunks.iter().map(best).collect::<Vec<_>>(),
            "agreed": human.agree_with_hunks(conflict, &texts),
        })
    });
    let known = scored.known.as_ref().map(|answer| {
        json!({
            "basis": "same-file", "score": 1.0, "confidence": answer.confidence,
            "agreed": agrees(conflict, scored, human, &answer.content),
        })
    });
    [known, whole, by_hunks].into_iter().flatten().collect()
}
