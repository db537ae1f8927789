//! `/api/v1`: the page's facts for programs. The OpenAPI document is generated from this code and served beside it.

mod bottles;
mod issues;
pub(crate) mod query;
mod runs;
pub(crate) mod spending;
mod stream;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::WebState;
use super::problem::Problem;

const BASE: &str = "/api/v1";
const DOCUMENT: &str = "/api/v1/openapi.json";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "bot-bottle",
        description = "Issues, bottles and runs of bot-bottle serve. Errors are application/problem+json. \
                       Texts come from users and agents: escape them before you show them.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
        contact()
    ),
    modifiers(&Token),
    security(("token" = [])),
    components(schemas(Problem))
)]
struct Document;

/// The admin token, as every program sends it.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let mut scheme = Http::new(HttpAuthScheme::Bearer);
        scheme.description = Some("The token in admin_token_file".to_owned());
        if let Some(components) = &mut document.components {
            components.add_security_scheme("token", SecurityScheme::Http(scheme));
        }
    }
}

/// All routes, and the document.
pub(super) fn router() -> Router<WebState> {
    let (router, document) = parts().split_for_parts();
    router.route(DOCUMENT, get(move || async move { Json(document) }))
}

/// The document alone.
#[cfg(test)]
pub(super) fn document() -> utoipa::openapi::OpenApi {
    parts().split_for_parts().1
}

fn parts() -> OpenApiRouter<WebState> {
    let routes = OpenApiRouter::new()
        .routes(routes!(runs::list))
        .routes(routes!(runs::one))
        .routes(routes!(runs::log))
        .routes(routes!(runs::provenance))
        .routes(routes!(runs::operations))
        .routes(routes!(runs::statements))
        .routes(routes!(runs::verification))
        .routes(routes!(bottles::list))
        .routes(routes!(bottles::one))
        .routes(routes!(bottles::act))
        .routes(routes!(issues::list))
        .routes(routes!(issues::one))
        .routes(routes!(spending::show))
        .routes(routes!(stream::events))
        .routes(routes!(stream::deliveries));
    OpenApiRouter::with_openapi(Document::openapi()).nest(BASE, routes)
}

/// A response of text that is JSON already.
fn json(text: String) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], text)
}
