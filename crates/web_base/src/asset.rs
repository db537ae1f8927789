//! Static files of the page. They are part of the program, so there is nothing to install.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;

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

pub async fn icon() -> impl IntoResponse {
    ([(CONTENT_TYPE, "image/svg+xml"), (CACHE_CONTROL, DAY)], include_str!("icon.svg"))
}

/// Version in the addresses of the files, so that a browser never mixes old and new ones.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
