//! Complete lists. Servers cap pages below the requested size, so a short page is not necessarily the last one.

use std::collections::BTreeSet;

use hyper::header::{HeaderMap, LINK};
use serde::de::DeserializeOwned;

use super::{Client, HttpRequest, Protocol};
use crate::error::ForgeResult;

/// Meaning of a page without a `Link` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingLink {
    Unknown,
    LastPage,
}

/// Limit on pages, beyond which the server is faulty.
const PAGES_MAX: usize = 1000;
/// Number of times a list is read when it changes meanwhile.
const READS_MAX: usize = 3;

/// Next page of the `Link` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextLink {
    Next,
    End,
}

impl Client {
    /// Reads all entries of a list, each once. An entry that leaves the list while it is read moves later
    /// ones to a page that was already read; a list whose count has changed is therefore read again.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        url: &str,
        query: &str,
        action: &str,
        id_of: fn(&T) -> u64,
    ) -> ForgeResult<Vec<T>> {
        let Protocol { page_size_field, page_size, total_header, missing_link, .. } = self.protocol;
        let mut reads = 1;
        loop {
            let mut found = Vec::new();
            let mut ids = BTreeSet::new();
            let mut totals = BTreeSet::new();
            for number in 1..=PAGES_MAX {
                let url = format!("{url}?{query}&page={number}&{page_size_field}={page_size}");
                let request = HttpRequest::get(url.replace("?&", "?"), action);
                let (entries, headers) = self.call_json::<Option<Vec<T>>>(&request).await?;
                let before = found.len();
                let entries = entries.unwrap_or_default().into_iter();
                found.extend(entries.filter(|entry| ids.insert(id_of(entry))));
                let total = total(&headers, total_header);
                totals.insert(total);
                let fresh = found.len() - before;
                if !has_more(fresh, found.len(), total, linked(&headers, *missing_link)) {
                    break;
                }
            }
            if is_whole(&totals, found.len()) || reads == READS_MAX {
                return Ok(found);
            }
            reads += 1;
        }
    }
}

/// Returns whether a list continues after a page with `fresh` new entries, `seen` in all so far, of a `total` that the
/// server counts.
fn has_more(fresh: usize, seen: usize, total: Option<usize>, linked: Option<NextLink>) -> bool {
    // A server that ignores the page number would page without end.
    if fresh == 0 {
        return false;
    }
    match (linked, total) {
        (Some(NextLink::Next), _) => true,
        (_, Some(total)) => seen < total,
        (Some(NextLink::End), None) => false,
        (None, None) => true,
    }
}

/// Returns whether the server reported the same count on every page, and that many entries arrived.
fn is_whole(totals: &BTreeSet<Option<usize>>, seen: usize) -> bool {
    totals.len() == 1 && totals.iter().flatten().all(|total| seen >= *total)
}

fn total(headers: &HeaderMap, name: &str) -> Option<usize> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

fn linked(headers: &HeaderMap, missing: MissingLink) -> Option<NextLink> {
    let Some(link) = headers.get(LINK) else {
        return (missing == MissingLink::LastPage).then_some(NextLink::End);
    };
    let text = link.to_str().ok()?;
    Some(if text.contains("rel=\"next\"") { NextLink::Next } else { NextLink::End })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        fresh: usize,
        seen: usize,
        total: Option<usize>,
        linked: Option<NextLink>,
        more: bool,
    ) {
        assert_eq!(has_more(fresh, seen, total, linked), more);
    }

    #[test]
    fn a_list_goes_on_as_long_as_anything_says_so() {
        check(30, 30, Some(70), Some(NextLink::Next), true);
        check(30, 30, Some(70), None, true);
        check(30, 30, None, Some(NextLink::Next), true);
        check(30, 30, None, None, true);
        check(10, 70, Some(70), Some(NextLink::End), false);
        check(10, 70, None, Some(NextLink::End), false);
        check(70, 70, Some(70), None, false);
    }

    #[test]
    fn a_page_with_nothing_new_is_the_last() {
        check(0, 30, Some(70), Some(NextLink::Next), false);
        check(0, 0, Some(0), None, false);
    }

    #[test]
    fn a_list_whose_count_changed_or_was_not_reached_is_not_whole() {
        assert!(is_whole(&BTreeSet::from([Some(2)]), 2));
        assert!(is_whole(&BTreeSet::from([None]), 2));
        assert!(!is_whole(&BTreeSet::from([Some(2)]), 1));
        assert!(!is_whole(&BTreeSet::from([Some(2), Some(3)]), 3));
    }

    #[test]
    fn a_page_without_links_is_the_only_one_where_that_is_the_custom() {
        assert_eq!(linked(&HeaderMap::new(), MissingLink::Unknown), None);
        assert_eq!(linked(&HeaderMap::new(), MissingLink::LastPage), Some(NextLink::End));
    }

    #[test]
    fn the_headers_of_a_recorded_page_are_read() {
        let mut headers = HeaderMap::new();
        let recorded = include_str!("../../tests/samples/api_list_pulls.headers");
        for line in recorded.lines() {
            if let Some(link) = line.strip_prefix("link: ") {
                headers.insert(LINK, link.parse().unwrap());
            } else if let Some(count) = line.strip_prefix("x-total-count: ") {
                headers.insert("x-total-count", count.parse().unwrap());
            }
        }
        assert_eq!(total(&headers, "x-total-count"), Some(2));
        assert_eq!(linked(&headers, MissingLink::Unknown), Some(NextLink::Next));
    }
}
