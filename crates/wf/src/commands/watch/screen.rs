//! The terminal of `wf watch`: entering, drawing and restoring.

use std::io;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::DefaultTerminal;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as StyledLine, Text};

use crate::rules::watch::{BoardLine, BoardPage, KeyPress, Tone};

/// The terminal in full-screen mode. A panic restores it too.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        Ok(Self { terminal: ratatui::try_init()? })
    }

    pub(super) fn leave(&mut self) {
        ratatui::restore();
    }

    pub(super) fn size(&self) -> io::Result<(usize, usize)> {
        let size = self.terminal.size()?;
        Ok((size.width.into(), size.height.into()))
    }

    pub(super) fn draw(&mut self, page: &BoardPage) -> io::Result<()> {
        let words = page.lines.iter().map(styled).collect::<Vec<_>>();
        self.terminal.draw(|frame| frame.render_widget(Text::from(words), frame.area()))?;
        Ok(())
    }
}

/// Styles a line by weight and not by colour, so that it works on every terminal.
fn styled(line: &BoardLine) -> StyledLine<'_> {
    let style = Style::default();
    let style = match line.tone {
        Tone::Plain => style,
        Tone::Chosen => style.add_modifier(Modifier::REVERSED),
        Tone::Pressing => style.add_modifier(Modifier::BOLD),
        Tone::Faint => style.add_modifier(Modifier::DIM),
    };
    StyledLine::styled(line.text.as_str(), style)
}

pub(super) fn parse_key(key: KeyEvent) -> Option<KeyPress> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(KeyPress::Interrupt)
        }
        KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::CONTROL) => None,
        KeyCode::Char(letter) => Some(KeyPress::Letter(letter)),
        KeyCode::Up => Some(KeyPress::Up),
        KeyCode::Down => Some(KeyPress::Down),
        KeyCode::Enter => Some(KeyPress::Enter),
        KeyCode::Esc => Some(KeyPress::Escape),
        KeyCode::Backspace => Some(KeyPress::Erase),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_terminal_are_known() {
        let key = |code, modifiers| parse_key(KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('a'), KeyModifiers::NONE), Some(KeyPress::Letter('a')));
        assert_eq!(key(KeyCode::Char('A'), KeyModifiers::SHIFT), Some(KeyPress::Letter('A')));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(KeyPress::Interrupt));
        assert_eq!(key(KeyCode::Char('x'), KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyCode::Backspace, KeyModifiers::NONE), Some(KeyPress::Erase));
        assert_eq!(key(KeyCode::F(1), KeyModifiers::NONE), None);
    }
}
