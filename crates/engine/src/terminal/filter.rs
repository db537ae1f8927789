//! Filter between a box and the user's terminal: the box may draw on the screen, and the screen is left as it was.
//!
//! An agent's interface needs most of what a terminal can do, so its bytes pass unchanged. The filter drops what
//! reaches beyond the screen: clipboard writes, file transfers, pictures read from files, and pass-through to an outer
//! terminal. It records which modes were switched on, because an agent that is killed switches nothing off.
//!
//! A parser crate such as `vte` does not serve here: it hands out parsed parameters instead of the bytes, so sequences
//! would have to be rendered again, and it buffers a string without limit until its end.

use std::collections::BTreeSet;

/// Longest string sequence. A longer one is neither a title nor a colour, and is dropped.
const STRING_MAX: usize = 16 * 1024;

const SEQUENCE_MAX: usize = 256;

/// Most modes that are recorded; more than any interface uses.
const MODES_MAX: usize = 64;

/// Operating system commands that pass: titles, links, colours, progress and prompt marks. Clipboard (52), files (1337)
/// and notifications (777) do not.
const COMMANDS: [&str; 18] = [
    "0", "1", "2", "4", "8", "10", "11", "12", "13", "14", "17", "19", "104", "110", "111", "112",
    "133", "9",
];

/// Modes that are on by default: line wrapping and the cursor.
const USUALLY_ON: [u16; 2] = [7, 25];

/// Modes of the alternate screen. It is left last.
const OTHER_SCREEN: [u16; 3] = [47, 1047, 1049];

#[derive(Debug, Default)]
pub(super) struct TerminalFilter {
    state: SequenceState,
    /// Bytes that the current UTF-8 character still needs.
    missing: u8,
    /// Modes that differ from the default.
    modes: BTreeSet<u16>,
    /// Depth of the stack of keyboard protocol flags.
    keyboard: u8,
    reports_keys: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum SequenceState {
    #[default]
    Plain,
    /// After `0xc2`.
    Latin,
    Escape,
    Control(Vec<u8>),
    /// A string, by the byte that began it.
    Text {
        kind: u8,
        text: Vec<u8>,
        ends: bool,
    },
}

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

impl TerminalFilter {
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            self.step(byte, &mut shown);
        }
        shown
    }

    /// Renders the sequences that undo what was left on.
    pub(super) fn leave(self) -> Vec<u8> {
        let is_other = |mode: &&u16| OTHER_SCREEN.contains(*mode);
        let (last, first): (Vec<u16>, Vec<u16>) =
            self.modes.iter().partition(|mode| is_other(mode));
        let mut undo = String::new();
        for mode in first.into_iter().chain(last) {
            let switch = if USUALLY_ON.contains(&mode) { 'h' } else { 'l' };
            undo += &format!("\x1b[?{mode}{switch}");
        }
        undo += &"\x1b[<u".repeat(usize::from(self.keyboard));
        if self.reports_keys {
            undo += "\x1b[>4m";
        }
        undo += "\x1b[0m";
        undo.into_bytes()
    }

    fn step(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match std::mem::take(&mut self.state) {
            SequenceState::Plain => self.plain(byte, shown),
            SequenceState::Latin => self.latin(byte, shown),
            SequenceState::Escape => self.escape(byte, shown),
            SequenceState::Control(sequence) => self.control(sequence, byte, shown),
            SequenceState::Text { kind, text, ends } => self.text(kind, text, ends, byte, shown),
        }
    }

    fn plain(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match (byte, self.missing) {
            (ESC, _) => {
                self.missing = 0;
                self.state = SequenceState::Escape;
            }
            (0xc2, _) => self.state = SequenceState::Latin,
            (0x80..=0xbf, 1..) => {
                self.missing -= 1;
                shown.push(byte);
            }
            // Half a character, or a control character in its 8-bit form.
            (0x80..=0xbf, 0) => {}
            _ => {
                self.missing = match byte {
                    0xc3..=0xdf => 1,
                    0xe0..=0xef => 2,
                    0xf0..=0xf4 => 3,
                    _ => 0,
                };
                shown.push(byte);
            }
        }
    }

    /// The byte after `0xc2`. Control characters can be encoded like this: no interface does it, and some terminals obey.
    fn latin(&mut self, byte: u8, shown: &mut Vec<u8>) {
        self.missing = 0;
        match byte {
            0x80..=0x9f => {}
            0xa0..=0xbf => shown.extend([0xc2, byte]),
            _ => self.plain(byte, shown),
        }
    }

    fn escape(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match byte {
            b'[' => self.state = SequenceState::Control(Vec::new()),
            b']' | b'P' | b'X' | b'^' | b'_' => {
                self.state = SequenceState::Text { kind: byte, text: Vec::new(), ends: false };
            }
            ESC => self.state = SequenceState::Escape,
            // The end of a string without a beginning.
            b'\\' => {}
            _ => shown.extend([ESC, byte]),
        }
    }

    fn control(&mut self, mut sequence: Vec<u8>, byte: u8, shown: &mut Vec<u8>) {
        match byte {
            ESC => self.state = SequenceState::Escape,
            0x40..=0x7e => {
                self.remember(&sequence, byte);
                if !asks_for_title(&sequence, byte) {
                    shown.extend([ESC, b'[']);
                    shown.extend(sequence);
                    shown.push(byte);
                }
            }
            _ if sequence.len() < SEQUENCE_MAX => {
                sequence.push(byte);
                self.state = SequenceState::Control(sequence);
            }
            _ => {}
        }
    }

    fn text(&mut self, kind: u8, mut text: Vec<u8>, ends: bool, byte: u8, shown: &mut Vec<u8>) {
        let is_over = byte == BEL || (ends && byte == b'\\');
        if is_over {
            if text.len() < STRING_MAX && may_pass(kind, &text) {
                shown.extend([ESC, kind]);
                shown.extend(text);
                shown.extend([ESC, b'\\']);
            }
            return;
        }
        if ends && byte != ESC {
            // Another sequence ends the string, as in terminals.
            self.escape(byte, shown);
            return;
        }
        if byte != ESC && text.len() < STRING_MAX {
            text.push(byte);
        }
        self.state = SequenceState::Text { kind, text, ends: byte == ESC };
    }

    fn remember(&mut self, sequence: &[u8], end: u8) {
        // The box chose these bytes: the first one need not be a whole character.
        let Some((first, numbers)) = sequence.split_first() else { return };
        let numbers = String::from_utf8_lossy(numbers);
        match (first, end) {
            (b'?', b'h' | b'l') => {
                for mode in numbers.split(';').filter_map(|word| word.parse::<u16>().ok()) {
                    let is_usual = USUALLY_ON.contains(&mode) == (end == b'h');
                    if is_usual {
                        self.modes.remove(&mode);
                    } else if self.modes.len() < MODES_MAX {
                        self.modes.insert(mode);
                    }
                }
            }
            (b'>', b'u') => self.keyboard = (self.keyboard + 1).min(16),
            (b'<', b'u') => self.keyboard = self.keyboard.saturating_sub(1),
            (b'>', b'm') => {
                self.reports_keys = numbers.starts_with("4;") && !numbers.ends_with(";0");
            }
            _ => {}
        }
    }
}

/// A request for the title: the terminal would type the answer, which the box chose.
fn asks_for_title(sequence: &[u8], end: u8) -> bool {
    end == b't' && matches!(sequence, b"20" | b"21")
}

/// Titles, colours and queries of the terminal's capabilities pass. Pictures and sequences for an outer terminal do not.
fn may_pass(kind: u8, text: &[u8]) -> bool {
    match kind {
        b']' => {
            let command = text.split(|byte| *byte == b';').next().unwrap_or_default();
            COMMANDS.iter().any(|known| known.as_bytes() == command)
        }
        b'P' => text.starts_with(b"+q") || text.starts_with(b"$q"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A panic here would end the program that shows the box.
    #[test]
    fn a_sequence_that_begins_with_half_a_character_ends_nothing() {
        let mut filter = TerminalFilter::default();
        for end in [b'h', b'l', b'u', b'm'] {
            drop(filter.pass(&[ESC, b'[', 0xbd, b';', b'3', end]));
            drop(filter.pass(&[ESC, b'[', end]));
        }
        assert_eq!(filter.leave(), b"\x1b[0m");
    }

    /// However the bytes are cut.
    #[track_caller]
    fn check(printed: &str, expected: &str) {
        for step in [1, 2, 3, 1000] {
            let mut filter = TerminalFilter::default();
            let shown: Vec<u8> =
                printed.as_bytes().chunks(step).flat_map(|chunk| filter.pass(chunk)).collect();
            assert_eq!(String::from_utf8_lossy(&shown), expected, "{step}");
        }
    }

    #[test]
    fn an_interface_is_shown_as_it_is() {
        for text in [
            "plain é § 漢 🙂\r\n\t",
            "\x1b[?1049h\x1b[2J\x1b[1;31mred\x1b[0m\x1b[6n\x1b[?25l",
            "\x1b7\x1b8\x1b(B\x1b=\x1b>",
            "\x1b]0;a title\x1b\\\x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\",
            "\x1bP+q544e\x1b\\\x1b]11;?\x1b\\",
        ] {
            check(text, text);
        }
        check("\x1b]2;bell\x07x", "\x1b]2;bell\x1b\\x");
    }

    #[test]
    fn nothing_reaches_beyond_the_screen() {
        for text in [
            "\x1b]52;c;cm0gLXJm\x07",
            "\x1b]1337;File=name=eA==:eA==\x07",
            "\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\",
            "\x1b_Gt=f;L2V0Yy9wYXNzd2Q=\x1b\\",
            "\x1b^x\x1b\\\x1bXx\x1b\\",
            "\x1b[21t",
            "\u{9d}52;c;eA==\u{9c}",
        ] {
            let mut filter = TerminalFilter::default();
            let shown: Vec<u8> = text.bytes().flat_map(|byte| filter.pass(&[byte])).collect();
            let shown = String::from_utf8_lossy(&shown).into_owned();
            assert!(!shown.contains('\x1b') && !shown.contains('\u{9d}'), "{text:?}: {shown:?}");
        }
        let mut filter = TerminalFilter::default();
        assert_eq!(filter.pass(b"a\x9d52;c;eA==\x9cb"), b"a52;c;eA==b");
        let long = format!("\x1b]0;{}\x07after", "x".repeat(STRING_MAX));
        check(&long, "after");
    }

    #[test]
    fn a_string_that_is_broken_off_swallows_nothing_for_ever() {
        check("\x1b]0;half\x1b[31mred", "\x1b[31mred");
        check("\x1b[\x1b[1mx", "\x1b[1mx");
    }

    #[test]
    fn what_was_left_on_is_switched_off() {
        let leave = |text: &str| {
            let mut filter = TerminalFilter::default();
            filter.pass(text.as_bytes());
            String::from_utf8(filter.leave()).expect("ASCII")
        };
        assert_eq!(leave("plain"), "\x1b[0m");
        assert_eq!(
            leave("\x1b[?1049h\x1b[?25l\x1b[?1000;1006h\x1b[?2004h\x1b[>1u\x1b[>4;2m"),
            "\x1b[?25h\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b[<u\x1b[>4m\x1b[0m"
        );
        assert_eq!(leave("\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l\x1b[>1u\x1b[<u"), "\x1b[0m");
    }
}
