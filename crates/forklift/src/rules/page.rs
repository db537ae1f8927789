//! The frame of the pages that people send to one another. Pure.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Style of every page, which loads nothing from elsewhere.
const STYLE: &str = include_str!("page.css");

/// Renders a page with its title as the heading; `style` is what it has beside the style of all.
pub(crate) fn render_frame(title: &str, style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(style)) }
            }
            body {
                main {
                    h1 { (title) }
                    (body)
                }
            }
        }
    };
    page.into_string()
}
