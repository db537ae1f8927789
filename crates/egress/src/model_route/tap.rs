//! The tap: reads the usage of a call from the response as it passes, and changes nothing.
//!
//! Responses are one JSON document or a stream of events. Of a stream only the lines with usage are parsed; a
//! document is kept whole, up to a limit. If the server reports no usage, the byte count gives an estimate: a
//! client must not be able to escape a cap by disabling the report.

use model::wire::WireApi;
use serde::Deserialize;

use super::usage::TokenCount;

/// Limit on the kept bytes of one event or one document; the largest carry the model's whole response.
const KEPT_MAX: usize = 16 << 20;
/// Bytes of a request per token, and bytes of event stream per token of a response.
pub(super) const BYTES_PER_TOKEN_UP: u64 = 4;
const BYTES_PER_TOKEN_DOWN: u64 = 32;

#[derive(Debug)]
pub(crate) struct Tap {
    api: WireApi,
    form: Form,
    kept: Vec<u8>,
    overflowed: bool,
    bytes: u64,
    seen: SeenUsage,
    /// The line after which nothing is generated was seen.
    is_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Events,
    Document,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SeenUsage {
    model: String,
    input: Option<u64>,
    output: Option<u64>,
    cache_read: u64,
    cache_write: u64,
    is_final: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tapped {
    pub(super) model: String,
    pub(super) tokens: TokenCount,
    pub(super) estimated: bool,
    /// The response was seen to its last word, perhaps without usage.
    pub(super) is_whole: bool,
}

impl Tap {
    pub(super) fn new(api: WireApi, form: Form) -> Self {
        let (kept, seen) = (Vec::new(), SeenUsage::default());
        Self { api, form, kept, overflowed: false, bytes: 0, seen, is_done: false }
    }

    pub(super) fn push(&mut self, mut piece: &[u8]) {
        self.bytes += piece.len() as u64;
        if self.form == Form::Document {
            self.keep(piece);
            return;
        }
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            if self.kept.is_empty() && !self.overflowed {
                self.read_line(&piece[..end]);
            } else {
                self.keep(&piece[..end]);
                self.read_kept();
            }
            piece = &piece[end + 1..];
        }
        self.keep(piece);
    }

    /// Returns the usage once the response has ended or was cut off. `bytes_up` is the size of the call.
    pub(super) fn finish(mut self, bytes_up: u64) -> Tapped {
        match self.form {
            Form::Events => self.read_kept(),
            Form::Document if !self.overflowed => {
                let document = std::mem::take(&mut self.kept);
                if let Some(answer) = parse(&document) {
                    self.seen.absorb(self.api, answer);
                    self.seen.is_final = self.seen.output.is_some();
                }
            }
            Form::Document => {}
        }
        // A client may ask for usage with every chunk of a chat.
        let may_go_on = self.api == WireApi::Chat && self.form == Form::Events;
        let is_whole = self.is_done || (self.seen.is_final && !may_go_on);
        Tapped { is_whole, ..self.seen.into_tapped(bytes_up, self.bytes) }
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.kept.len() + piece.len() > KEPT_MAX {
            self.overflowed = true;
            self.kept = Vec::new();
        }
        if !self.overflowed {
            self.kept.extend_from_slice(piece);
        }
    }

    fn read_kept(&mut self) {
        let line = std::mem::take(&mut self.kept);
        if !std::mem::take(&mut self.overflowed) {
            self.read_line(&line);
        }
    }

    fn read_line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data:") else { return };
        self.is_done |= data.trim_ascii() == b"[DONE]";
        if contains(data, b"\"usage\"")
            && let Some(answer) = parse(data.trim_ascii())
        {
            self.seen.absorb(self.api, answer);
        }
    }
}

impl SeenUsage {
    /// Merges usage. Later numbers replace earlier ones: within one response they are running totals.
    fn absorb(&mut self, api: WireApi, answer: AnswerUsage) {
        let kind = answer.kind.as_deref();
        self.is_final |= match api {
            WireApi::Messages => kind == Some("message_delta"),
            WireApi::Chat => true,
            WireApi::Responses => {
                let ends = ["response.completed", "response.incomplete", "response.failed"];
                kind.is_some_and(|kind| ends.contains(&kind))
            }
        };
        let (model, usage) = match answer.message.or(answer.response) {
            Some(inner) => (inner.model, inner.usage),
            None => (answer.model, answer.usage),
        };
        if let Some(model) = model {
            self.model = model;
        }
        if let Some(usage) = usage {
            self.absorb_usage(api, &usage);
        } else {
            self.is_final = false;
        }
    }

    fn absorb_usage(&mut self, api: WireApi, usage: &WireUsage) {
        match api {
            WireApi::Messages => {
                self.input = usage.input_tokens.or(self.input);
                self.output = usage.output_tokens.or(self.output);
                self.cache_read = usage.cache_read_input_tokens.unwrap_or(self.cache_read);
                self.cache_write = usage.cache_creation_input_tokens.unwrap_or(self.cache_write);
            }
            WireApi::Chat => {
                self.split_input(usage.prompt_tokens, usage.prompt_tokens_details.as_ref());
                self.output = usage.completion_tokens.or(self.output);
            }
            WireApi::Responses => {
                self.split_input(usage.input_tokens, usage.input_tokens_details.as_ref());
                self.output = usage.output_tokens.or(self.output);
            }
        }
    }

    /// Subtracts the cached tokens where the API includes them in the input.
    fn split_input(&mut self, all: Option<u64>, details: Option<&Details>) {
        let Some(all) = all else { return };
        self.cache_read = details.and_then(|details| details.cached_tokens).unwrap_or(0).min(all);
        self.input = Some(all - self.cache_read);
    }

    fn into_tapped(self, bytes_up: u64, bytes_down: u64) -> Tapped {
        let guessed_output = bytes_down / BYTES_PER_TOKEN_DOWN;
        let output = match self.output {
            Some(output) if self.is_final => output,
            // The stream was cut off: the number reported at its start does not cover what was generated.
            Some(output) => output.max(guessed_output),
            None => guessed_output,
        };
        Tapped {
            model: self.model,
            tokens: TokenCount {
                input: self.input.unwrap_or(bytes_up / BYTES_PER_TOKEN_UP),
                output,
                cache_read: self.cache_read,
                cache_write: self.cache_write,
            },
            estimated: !self.is_final || self.input.is_none() || self.output.is_none(),
            is_whole: self.is_final,
        }
    }
}

/// The parts of any response or event that report usage.
#[derive(Debug, Deserialize)]
struct AnswerUsage {
    #[serde(rename = "type")]
    kind: Option<String>,
    model: Option<String>,
    usage: Option<WireUsage>,
    message: Option<Inner>,
    response: Option<Inner>,
}

#[derive(Debug, Deserialize)]
struct Inner {
    model: Option<String>,
    usage: Option<WireUsage>,
}

#[derive(Debug, Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    input_tokens_details: Option<Details>,
}

#[derive(Debug, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

fn parse(bytes: &[u8]) -> Option<AnswerUsage> {
    serde_json::from_slice(bytes).ok()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a response in chunks of every size and expects the same result each time.
    fn check(api: WireApi, form: Form, answer: &str, expected: (&str, [u64; 4], bool)) {
        for size in [1, 2, 7, 64, answer.len()] {
            let mut tap = Tap::new(api, form);
            answer.as_bytes().chunks(size).for_each(|piece| tap.push(piece));
            let Tapped { model, tokens, estimated, .. } = tap.finish(400);
            let counts = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write];
            assert_eq!((model.as_str(), counts, estimated), expected, "pieces of {size}");
        }
    }

    const MESSAGES: &str = concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":10,"#,
        r#""cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
        "\n\nevent: content_block_delta\n",
        r#"data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"\"usage\""}}"#,
        "\n\nevent: message_delta\r\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}"#,
        "\r\n\r\n",
    );

    #[test]
    fn messages_are_counted_from_start_and_delta() {
        check(WireApi::Messages, Form::Events, MESSAGES, ("m-1", [10, 42, 100, 5], false));
    }

    #[test]
    fn a_stream_that_was_cut_off_is_an_estimate() {
        let cut = &MESSAGES[..MESSAGES.find("event: message_delta").unwrap()];
        let guess = cut.len() as u64 / BYTES_PER_TOKEN_DOWN;
        check(WireApi::Messages, Form::Events, cut, ("m-1", [10, guess, 100, 5], true));
    }

    #[test]
    fn chat_is_counted_from_its_usage_chunk() {
        let answer = concat!(
            r#"data: {"model":"m-2","choices":[{"delta":{"content":"hi"}}],"usage":null}"#,
            "\n\n",
            r#"data: {"model":"m-2","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":7,"#,
            r#""prompt_tokens_details":{"cached_tokens":20}}}"#,
            "\n\ndata: [DONE]\n\n",
        );
        check(WireApi::Chat, Form::Events, answer, ("m-2", [10, 7, 20, 0], false));
    }

    #[test]
    fn chat_without_usage_is_an_estimate_from_the_bytes() {
        let answer = "data: {\"model\":\"m-2\",\"choices\":[]}\n\ndata: [DONE]\n\n".repeat(8);
        let guess = answer.len() as u64 / BYTES_PER_TOKEN_DOWN;
        check(WireApi::Chat, Form::Events, &answer, ("", [100, guess, 0, 0], true));
    }

    #[test]
    fn responses_are_counted_from_their_end() {
        let answer = concat!(
            r#"data: {"type":"response.created","response":{"model":"m-3","usage":null}}"#,
            "\n\n",
            r#"data: {"type":"response.completed","response":{"model":"m-3","output":[{"x":"y"}],"#,
            r#""usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":40},"output_tokens":9}}}"#,
            "\n\n",
        );
        check(WireApi::Responses, Form::Events, answer, ("m-3", [10, 9, 40, 0], false));
    }

    #[test]
    fn documents_are_counted_whole() {
        let messages = r#"{"type":"message","model":"m","usage":{"input_tokens":3,"output_tokens":4,
            "cache_read_input_tokens":null}}"#;
        check(WireApi::Messages, Form::Document, messages, ("m", [3, 4, 0, 0], false));
        let chat = r#"{"model":"m","usage":{"prompt_tokens":3,"completion_tokens":4}}"#;
        check(WireApi::Chat, Form::Document, chat, ("m", [3, 4, 0, 0], false));
        let responses = r#"{"object":"response","model":"m","usage":{"input_tokens":3,
            "output_tokens":4,"input_tokens_details":{"cached_tokens":1}}}"#;
        check(WireApi::Responses, Form::Document, responses, ("m", [2, 4, 1, 0], false));
        check(WireApi::Chat, Form::Document, "not json", ("", [100, 0, 0, 0], true));
    }
}
