//! A turn as a response: chosen from the script, rendered for the API, performed on the connection.

use std::sync::PoisonError;
use std::time::Duration;

use serde_json::json;

use super::record::Ask;
use super::route::Route;
use super::script::{LAST_TEXT, ModelScript, Turn};
use super::tool::{Call, choose_shell, choose_tool};
use super::wire::{Reply, Say};
use super::{Stage, Wire};
use crate::http::{Connection, Performed, Whole, render_chunk, render_stream_head, render_whole};

/// Interval between the comments in a hanging stream.
const COMMENT_EVERY: Duration = Duration::from_millis(200);
const COMMENT: &str = ": still thinking\n\n";

/// Position of a [`Turn::FailFirst`]: its script, the number of its turn, and its depth there.
pub(super) type Place = (String, usize, usize);

/// Response to a client, and the delay before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    delay: Duration,
    act: Act,
}

#[derive(Debug, PartialEq, Eq)]
enum Act {
    Whole(Whole),
    Events(Vec<String>),
    /// Neither answers nor hangs up.
    Hang(Silence),
    /// Sends a part of a response and hangs up.
    Cut {
        part: Vec<u8>,
        rst: bool,
    },
}

/// Kind of silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    NotEvenAHead,
    OpenStream,
    Comments,
}

impl Stage {
    pub(super) fn answer(&self, ask: &Ask) -> Answer {
        let at_once = |act| Answer { delay: Duration::ZERO, act };
        let wire = match ask.route {
            Route::Greeting => return at_once(Act::Whole(Whole::json(200, ""))),
            Route::Models => return at_once(Act::Whole(Whole::json(200, &models()))),
            Route::CountTokens => {
                let count = json!({ "input_tokens": 100 });
                return at_once(Act::Whole(Whole::json(200, &count.to_string())));
            }
            Route::Unknown => {
                let message = format!("nothing is served at {}", ask.log.path);
                return at_once(refuse(Wire::Other, 404, &message));
            }
            Route::Turn(wire) => wire,
        };
        if let Some(complaint) = &ask.complaint {
            return at_once(refuse(wire, 400, complaint));
        }
        let Some(script) = self.scripts.get(&ask.log.script) else {
            return at_once(refuse(wire, 404, &format!("no script is named {:?}", ask.log.script)));
        };
        let Some(index) = ask.log.turn else {
            let say = Say::Text(script.side_call_text.clone());
            return at_once(speak(ask, wire, script, say));
        };
        let last = Turn::text(LAST_TEXT);
        let (delay, turn) = self.settle(ask, index, script.turns.get(index).unwrap_or(&last));
        Answer { delay, act: play(ask, wire, script, turn) }
    }

    /// Peels off what decides between turns or puts them off. Counts the request.
    fn settle<'a>(&self, ask: &Ask, index: usize, mut turn: &'a Turn) -> (Duration, &'a Turn) {
        let mut delay = Duration::ZERO;
        for depth in 0.. {
            turn = match turn {
                Turn::Delay { ms, then } => {
                    delay += Duration::from_millis(*ms);
                    then
                }
                Turn::FailFirst { n, with, then } => {
                    let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                    let count = asked.entry((ask.log.script.clone(), index, depth)).or_default();
                    *count += 1;
                    if *count <= *n { with } else { then }
                }
                Turn::Shell(_)
                | Turn::Tool { .. }
                | Turn::Text(_)
                | Turn::Status { .. }
                | Turn::Quota { .. }
                | Turn::Hang { .. }
                | Turn::Drop { .. } => break,
            };
        }
        (delay, turn)
    }
}

/// Renders a turn. Those that [`Stage::settle`] peels off do not come here.
fn play(ask: &Ask, wire: Wire, script: &ModelScript, turn: &Turn) -> Act {
    let call = |chosen: Result<Call, String>| match chosen {
        Ok(call) => speak(ask, wire, script, Say::Call(call)),
        // 400 is what makes every agent give up at once, and the message says why.
        Err(complaint) => refuse(wire, 400, &complaint),
    };
    match turn {
        Turn::Shell(command) => call(choose_shell(&ask.offers, command)),
        Turn::Tool { name_suffix, input } => call(choose_tool(&ask.offers, name_suffix, input)),
        Turn::Text(text) => speak(ask, wire, script, Say::Text(text.clone())),
        Turn::Status { code, body, headers } => {
            Act::Whole(Whole { headers: headers.clone(), ..error(wire, *code, body) })
        }
        Turn::Quota { status, retry_after_secs, body } => {
            let headers = vec![("retry-after".to_owned(), retry_after_secs.to_string())];
            Act::Whole(Whole { headers, ..error(wire, *status, body) })
        }
        Turn::Hang { comments } => Act::Hang(match (ask.log.stream, comments) {
            (false, _) => Silence::NotEvenAHead,
            (true, false) => Silence::OpenStream,
            (true, true) => Silence::Comments,
        }),
        Turn::Drop { rst, after_bytes } => {
            let mut part =
                render(&speak(ask, wire, script, Say::Text(LAST_TEXT.to_owned()))).concat();
            part.truncate(*after_bytes);
            Act::Cut { part, rst: *rst }
        }
        Turn::FailFirst { .. } | Turn::Delay { .. } => unreachable!("peeled off before"),
    }
}

fn speak(ask: &Ask, wire: Wire, script: &ModelScript, say: Say) -> Act {
    let reply = Reply {
        turn: ask.log.turn,
        model: ask.log.model.clone().unwrap_or_else(|| "scripted".to_owned()),
        say,
        usage: script.usage,
    };
    if ask.log.stream {
        Act::Events(wire.render_events(&reply))
    } else {
        Act::Whole(Whole::json(200, &wire.render_whole(&reply).to_string()))
    }
}

fn refuse(wire: Wire, status: u16, message: &str) -> Act {
    Act::Whole(Whole::json(status, &wire.render_error(status, message).to_string()))
}

/// A scripted error: the body of the script, or else that of the API.
fn error(wire: Wire, status: u16, body: &str) -> Whole {
    if body.is_empty() {
        let message = format!("scripted status {status}");
        Whole::json(status, &wire.render_error(status, &message).to_string())
    } else {
        Whole::json(status, body)
    }
}

/// One list for every client: those of the OpenAI kind read `data`, Codex reads `models`.
fn models() -> String {
    let model = json!({ "id": "scripted", "object": "model", "type": "model", "owned_by": "test" });
    json!({ "object": "list", "data": [model], "has_more": false, "models": [] }).to_string()
}

/// The pieces of a response, each to be flushed on its own.
fn render(act: &Act) -> Vec<Vec<u8>> {
    match act {
        Act::Whole(whole) => vec![render_whole(whole)],
        Act::Events(events) => {
            let chunks = events.iter().map(|event| render_chunk(event));
            let last = render_chunk("");
            std::iter::once(render_stream_head()).chain(chunks).chain([last]).collect()
        }
        Act::Hang(Silence::NotEvenAHead) => Vec::new(),
        Act::Hang(Silence::OpenStream | Silence::Comments) => vec![render_stream_head()],
        Act::Cut { part, .. } => vec![part.clone()],
    }
}

impl Answer {
    pub(super) fn perform(&self, connection: &mut Connection<'_>) -> std::io::Result<Performed> {
        connection.wait(self.delay)?;
        for piece in render(&self.act) {
            connection.send(&piece)?;
        }
        match &self.act {
            Act::Whole(_) | Act::Events(_) => Ok(Performed::Answered),
            Act::Hang(silence) => loop {
                connection.wait(COMMENT_EVERY)?;
                if *silence == Silence::Comments {
                    connection.send(&render_chunk(COMMENT))?;
                }
            },
            Act::Cut { rst, .. } => {
                if *rst {
                    connection.reset_on_close()?;
                }
                Ok(Performed::Ended)
            }
        }
    }
}
