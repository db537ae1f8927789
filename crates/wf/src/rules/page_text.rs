//! Words of a web page: HTML without its marks, scripts and comments, for an agent to read.

/// Elements whose content is no text.
const SKIPPED: [&str; 7] = ["script", "style", "template", "svg", "noscript", "iframe", "object"];
/// Elements that begin and end a line.
const BLOCKS: [&str; 40] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "title",
    "tr",
    "ul",
    "video",
];

/// Renders the text of an HTML page.
pub(crate) fn render_page_text(html: &str) -> String {
    let mut text = PageText::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        text.push(&rest[..at]);
        rest = take_markup(&rest[at..], &mut text);
    }
    text.push(rest);
    text.finish()
}

/// Reads what begins with `<`, and returns what follows it.
fn take_markup<'a>(rest: &'a str, text: &mut PageText) -> &'a str {
    let after = |mark: &str| rest.find(mark).map_or("", |at| &rest[at + mark.len()..]);
    if rest.starts_with("<!--") {
        return after("-->");
    }
    if rest.starts_with("<!") || rest.starts_with("<?") {
        return after(">");
    }
    let name_at = if rest.starts_with("</") { 2 } else { 1 };
    let name = rest[name_at..].split(|it: char| !it.is_ascii_alphanumeric()).next();
    let name = name.unwrap_or_default().to_ascii_lowercase();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        text.push("&lt;");
        return &rest[1..];
    }
    let rest = skip_tag(rest);
    if name_at == 2 {
        text.close(&name);
        return rest;
    }
    if SKIPPED.contains(&name.as_str()) {
        return skip_to_end(rest, &name);
    }
    text.open(&name);
    rest
}

/// Skips a tag and returns the rest; a `>` in quotes does not end it.
fn skip_tag(rest: &str) -> &str {
    let mut quote = None;
    for (at, character) in rest.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '>') => return &rest[at + 1..],
            _ => {}
        }
    }
    ""
}

/// Skips to the end of an element and returns the rest; nothing if it has no end.
fn skip_to_end<'a>(rest: &'a str, name: &str) -> &'a str {
    let mut from = 0;
    while let Some(at) = rest[from..].find("</") {
        let start = from + at;
        let is_it = rest
            .get(start + 2..start + 2 + name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name));
        if is_it {
            return skip_tag(&rest[start..]);
        }
        from = start + 2;
    }
    ""
}

/// Text so far, with blanks as a browser shows them.
#[derive(Debug, Default)]
struct PageText {
    text: String,
    /// Number of open `pre` elements.
    preformatted: usize,
}

impl PageText {
    fn open(&mut self, name: &str) {
        if name == "pre" {
            self.preformatted += 1;
        }
        if BLOCKS.contains(&name) {
            self.end_line();
        }
        match name {
            "li" => self.text.push_str("- "),
            "td" | "th" => self.space(),
            "p" | "table" | "pre" => self.empty_line(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.empty_line();
                let level = name[1..].parse().unwrap_or(1);
                self.text.push_str(&"#".repeat(level));
                self.text.push(' ');
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        if name == "pre" {
            self.preformatted = self.preformatted.saturating_sub(1);
        }
        if BLOCKS.contains(&name) {
            self.end_line();
        }
    }

    fn push(&mut self, raw: &str) {
        let decoded = decode_entities(raw);
        for character in decoded.chars() {
            match character {
                '\n' if self.preformatted > 0 => self.text.push('\n'),
                _ if character.is_whitespace() && self.preformatted == 0 => self.space(),
                '\t' => self.text.push('\t'),
                _ if character.is_control() => {}
                _ => self.text.push(character),
            }
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn empty_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn finish(self) -> String {
        let lines: Vec<&str> = self.text.lines().map(str::trim_end).collect();
        lines.join("\n").trim().to_owned()
    }
}

/// Decodes `&amp;`, `&#39;` and the like; what is not known stays as it is.
fn decode_entities(text: &str) -> String {
    /// No longer entity is known.
    const NAME_MAX: usize = 10;
    let mut decoded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.bytes().take(NAME_MAX).position(|byte| byte == b';');
        match end.and_then(|end| Some((decode_entity(&rest[..end])?, end))) {
            Some((character, end)) => {
                decoded.push(character);
                rest = &rest[end + 1..];
            }
            None => decoded.push('&'),
        }
    }
    decoded.push_str(rest);
    decoded
}

fn decode_entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "mdash" => '—',
        "ndash" => '–',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "bull" => '•',
        "rarr" => '→',
        "larr" => '←',
        "copy" => '©',
        "times" => '×',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_reads_as_a_person_sees_it() {
        let html = "<!DOCTYPE html><html><head><title>Log in</title><style>p { x: '<p>' }</style>\
            <script>if (a < b) { document.write('</p>') }</script></head><body><!-- ignore <b>me</b> -->\n\
            <h1 title='a > b'>Log&nbsp;in</h1>\n<p>People   can\nlog in &amp; out &#8212; <b>soon</b>.</p>\
            <ul><li>with a token<li>or &lt;mail&gt;</ul><table><tr><td>a</td><td>b</td></tr></table>\
            <pre>x\n  y</pre>1 < 2 &unknown; &#xZZ;</body></html>";
        assert_eq!(
            render_page_text(html),
            "Log in\n\n# Log in\n\nPeople can log in & out — soon.\n- with a token\n- or <mail>\n\na b\n\nx\n  y\n1 < 2 &unknown; &#xZZ;"
        );
    }

    #[test]
    fn a_page_that_is_broken_off_or_has_control_characters_is_read_all_the_same() {
        assert_eq!(render_page_text("a<script>b"), "a");
        assert_eq!(render_page_text("a<!-- b"), "a");
        assert_eq!(render_page_text("a<p title=\"b"), "a");
        assert_eq!(render_page_text("a\u{1b}[2J&#27;b"), "a[2Jb");
        assert_eq!(render_page_text("<SCRIPT>x</script>y</SCRIPT >z"), "yz");
        assert_eq!(render_page_text("a</script"), "a");
        assert_eq!(render_page_text("<script>é</é</script>b"), "b");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_control_character(html in "(<|>|/|!--|-->|script|pre|p|&|;|#x|\"|é|[a-z]|\\PC|\\x1b){0,60}") {
            let text = render_page_text(&html);
            prop_assert!(!text.chars().any(|it| it.is_control() && it != '\n' && it != '\t'));
        }
    }
}
