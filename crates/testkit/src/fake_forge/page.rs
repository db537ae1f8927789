//! Pages of lists, with the headers that say what else there is.

use serde_json::{Value, json};

use super::{FakeResponse, ForgeRequest, World};

const PAGE_MAX: usize = 100;

/// Paging of lists, by kind of forge.
pub(super) struct PageStyle {
    /// Query field with the size of a page.
    pub(super) size_field: &'static str,
    /// Size without that field.
    pub(super) size: usize,
    /// Header with the number of all entries.
    pub(super) total: Option<&'static str>,
}

impl PageStyle {
    pub(super) fn page<T>(
        &self,
        world: &World,
        request: &ForgeRequest,
        entries: &[T],
        shape: impl Fn(&T) -> Value,
    ) -> FakeResponse {
        let size = request.number(self.size_field).unwrap_or(self.size);
        let size = size.min(PAGE_MAX).min(world.page_max);
        let page = request.number("page").unwrap_or(1);
        let shown: Vec<Value> =
            entries.iter().skip((page - 1) * size).take(size).map(shape).collect();
        let mut response = FakeResponse::json(200, &json!(shown));
        if let Some(total) = self.total {
            response = response.with_header(total, entries.len().to_string());
        }
        let link = |page: usize, rel: &str| {
            let (root, path, field) = (&world.root, &request.path, self.size_field);
            format!("<{root}{path}?page={page}&{field}={size}>; rel=\"{rel}\"")
        };
        match page * size < entries.len() {
            true => response.with_header("link", link(page + 1, "next")),
            false if page > 1 => response.with_header("link", link(page - 1, "prev")),
            false => response,
        }
    }
}
