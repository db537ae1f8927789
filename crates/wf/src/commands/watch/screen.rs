//! The terminal: taken over, drawn on, given back.

use std::io;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::DefaultTerminal;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as Words, Text};

use crate::rules::watch::{Line, Page, Press, Tone};

/// The terminal while it is ours. A panic gives it back too.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        Ok(Self { terminal: ratatui::try_init()? })
    }

    /// Gives the terminal back as it was.
    pub(super) fn leave(&mut self) {
        ratatui::restore();
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> io::Result<(usize, usize)> {
        let size = self.terminal.size()?;
        Ok((size.width.into(), size.height.into()))
    }

    pub(super) fn draw(&mut self, page: &Page) -> io::Result<()> {
        let words = page.lines.iter().map(styled).collect::<Vec<_>>();
        self.terminal.draw(|frame| frame.render_widget(Text::from(words), frame.area()))?;
        Ok(())
    }
}

/// Weight and not colour tells what matters, so that it can be seen on every terminal.
fn styled(line: &Line) -> Words<'_> {
    let style = Style::default();
    let style = match line.tone {
        Tone::Plain => style,
        Tone::Chosen => style.add_modifier(Modifier::REVERSED),
        Tone::Pressing => style.add_modifier(Modifier::BOLD),
        Tone::Faint => style.add_modifier(Modifier::DIM),
    };
    Words::styled(line.text.as_str(), style)
}

/// What a key of the terminal is to us.
pub(super) fn parse_key(key: KeyEvent) -> Option<Press> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(Press::Interrupt)
        }
        KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::CONTROL) => None,
        KeyCode::Char(letter) => Some(Press::Letter(letter)),
        KeyCode::Up => Some(Press::Up),
        KeyCode::Down => Some(Press::Down),
        KeyCode::Enter => Some(Press::Enter),
        KeyCode::Esc => Some(Press::Escape),
        KeyCode::Backspace => Some(Press::Erase),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_terminal_are_known() {
        let key = |code, modifiers| parse_key(KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('a'), KeyModifiers::NONE), Some(Press::Letter('a')));
        assert_eq!(key(KeyCode::Char('A'), KeyModifiers::SHIFT), Some(Press::Letter('A')));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Press::Interrupt));
        assert_eq!(key(KeyCode::Char('x'), KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyCode::Backspace, KeyModifiers::NONE), Some(Press::Erase));
        assert_eq!(key(KeyCode::F(1), KeyModifiers::NONE), None);
    }
}
