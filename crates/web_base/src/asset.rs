//! Static files of the page. They are part of the program, so there is nothing to install.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use serde::Deserialize;

const DAY: &str = "max-age=86400";

pub async fn style() -> impl IntoResponse {
    let css = "text/css; charset=utf-8";
    ([(CONTENT_TYPE, css), (CACHE_CONTROL, DAY)], include_str!("style.css"))
}

/// The script that updates an open page.
pub async fn script() -> impl IntoResponse {
    let js = "text/javascript; charset=utf-8";
    ([(CONTENT_TYPE, js), (CACHE_CONTROL, DAY)], include_str!("live.js"))
}

/// Query of the icon.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct IconParams {
    /// Number of things that need a person.
    calls: u32,
}

/// The icon, with the number of things that need a person.
pub async fn icon(params: Result<Query<IconParams>, QueryRejection>) -> impl IntoResponse {
    let calls = params.map(|Query(params)| params.calls).unwrap_or_default();
    ([(CONTENT_TYPE, "image/svg+xml"), (CACHE_CONTROL, DAY)], draw_icon(calls))
}

fn draw_icon(calls: u32) -> String {
    let bottle = include_str!("icon.svg").trim_end();
    let badge = match calls {
        0 => return bottle.to_owned(),
        1..=9 => calls.to_string(),
        _ => "9+".to_owned(),
    };
    let badge = format!(
        "<circle cx=\"17\" cy=\"7\" r=\"7\" fill=\"#b42318\"/><text x=\"17\" y=\"10.5\" font-family=\"sans-serif\" \
         font-size=\"10\" font-weight=\"700\" fill=\"#fff\" text-anchor=\"middle\">{badge}</text></svg>"
    );
    bottle.replacen("</svg>", &badge, 1)
}

/// Version in the addresses of the files, so that a browser never mixes old and new ones.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_icon_has_the_number_of_things_that_need_a_person() {
        assert!(!draw_icon(0).contains("<text"), "{}", draw_icon(0));
        assert!(draw_icon(3).ends_with(">3</text></svg>"), "{}", draw_icon(3));
        assert!(draw_icon(12).contains(">9+</text>"), "{}", draw_icon(12));
    }
}
