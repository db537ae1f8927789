//! The patch of a run, from the host's own repository, as far as a person reads.

use host::git::{ObjectFormat, SealedRepo};
use maud::{Markup, html};
use model::id::Sha;
use model::redact::Redactor;

use super::super::Web;
use super::super::facts::run::FoundRun;
use super::super::problem::Problem;
use super::super::rules::diff::parse_patch;
use super::line;

/// Largest shown part.
const DIFF_MAX_BYTES: usize = 200 << 10;

/// The shown part of a patch.
pub(super) struct Patch {
    text: String,
    is_whole: bool,
}

/// Loads the patch from the run's start to its result; `None` without commits.
pub(super) async fn load(web: &Web, found: &FoundRun) -> Result<Option<Patch>, Problem> {
    let tip = found.meta.evidence.as_ref().and_then(|evidence| evidence.tip.clone());
    let path = found.dir.repo();
    let Some(tip) = tip.filter(|_| path.join("HEAD").exists()) else { return Ok(None) };
    let Ok(_place) = web.diffs.acquire().await else { return Ok(None) };
    let start = &found.meta.pins.start;
    let repo = SealedRepo::open(&path, format_of(&tip));
    let capped = repo.diff(start, &tip, DIFF_MAX_BYTES).await;
    let capped = capped.map_err(|error| Problem::failed(&model::error_chain(&error)))?;
    let text = String::from_utf8_lossy(&capped.bytes).into_owned();
    let text = Redactor::new([]).redact(&text).into_owned();
    Ok(Some(Patch { text, is_whole: !capped.truncated }))
}

fn format_of(sha: &Sha) -> ObjectFormat {
    if sha.as_str().len() == 64 { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 }
}

pub(super) fn render(patch: &Patch) -> Markup {
    html! {
        pre.diff tabindex="0" {
            @for (class, text) in parse_patch(&patch.text) {
                span class=(class) { (line(text)) "\n" }
            }
        }
        @if !patch.is_whole { p.hint { "Only its beginning is shown." } }
    }
}
