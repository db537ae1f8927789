//! Extractors of requests. They refuse unknown parameters, because a misspelt one would otherwise go unnoticed.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::super::problem::Problem;

/// Longest page of a list.
const LIMIT_MAX: usize = 200;
const LIMIT: usize = 50;
/// Longest cursor.
const CURSOR_MAX_CHARS: usize = 400;

/// The query of a request.
pub(crate) struct StrictQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for StrictQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(error) => Err(Problem::wrong(error.body_text())),
        }
    }
}

/// The path parameters of a request.
pub(crate) struct StrictPath<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for StrictPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(Self(named)),
            Err(error) => Err(Problem::new(error.status(), error.body_text())),
        }
    }
}

/// The JSON body of a request; an absent body is the default value.
pub(crate) struct StrictJson<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for StrictJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_json = kind.is_some_and(|kind| {
            kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json")
        });
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
        match body.is_empty() {
            true => Ok(Self(T::default())),
            false if !is_json => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "send JSON: Content-Type: application/json",
            )),
            // The document calls the body optional, which includes `null`.
            false => Json::<Option<T>>::from_bytes(&body)
                .map(|Json(sent)| Self(sent.unwrap_or_default()))
                .map_err(|error| Problem::wrong(error.body_text())),
        }
    }
}

/// The query of a request without parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoQuery {}

/// A page of a list that is ordered by text.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// How many to list
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<usize>,
    /// List what comes after this: the `next` of the page before
    #[param(max_length = 400)]
    after: Option<String>,
}

/// A page of a list that is ordered by number.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SinceParams {
    /// How many to list
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<usize>,
    /// List what comes after this number
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64, default = 0)]
    after: Option<u64>,
}

/// The largest number that every reader of JSON can hold.
const NUMBER_MAX: u64 = 9_007_199_254_740_991;

impl PageParams {
    /// Cuts the page out of an ordered list, and returns the cursor of the next one.
    pub(crate) fn of<T>(
        &self,
        list: Vec<T>,
        cursor: impl Fn(&T) -> String,
    ) -> Result<(Vec<T>, Option<String>), Problem> {
        let limit = check_limit(self.limit)?;
        let after = self.after.as_deref().unwrap_or_default();
        if after.chars().count() > CURSOR_MAX_CHARS {
            return Err(Problem::wrong(format!(
                "after has more than {CURSOR_MAX_CHARS} characters"
            )));
        }
        let mut rest: Vec<T> = list
            .into_iter()
            .filter(|one| cursor(one).as_str() > after || after.is_empty())
            .collect();
        let more = rest.len() > limit;
        rest.truncate(limit);
        let next = rest.last().filter(|_| more).map(cursor);
        Ok((rest, next))
    }
}

impl SinceParams {
    /// The number before the first, and the limit.
    pub(crate) fn bounds(&self) -> Result<(u64, usize), Problem> {
        let after = self.after.unwrap_or_default();
        if after > NUMBER_MAX {
            return Err(Problem::wrong(format!("after cannot be more than {NUMBER_MAX}")));
        }
        Ok((after, check_limit(self.limit)?))
    }
}

fn check_limit(limit: Option<usize>) -> Result<usize, Problem> {
    match limit.unwrap_or(LIMIT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(Problem::wrong(format!("limit must be from 1 to {LIMIT_MAX}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(limit: usize, after: &str) -> PageParams {
        PageParams { limit: Some(limit), after: Some(after.to_owned()) }
    }

    #[test]
    fn pages_follow_one_another_and_end() {
        let list = || vec!["a", "b", "c"];
        let cut = |part: PageParams| part.of(list(), |it| (*it).to_owned()).expect("a page");
        assert_eq!(cut(part(2, "")), (vec!["a", "b"], Some("b".to_owned())));
        assert_eq!(cut(part(2, "b")), (vec!["c"], None));
        assert_eq!(cut(part(2, "zzz")), (vec![], None));
        assert_eq!(cut(PageParams::default()), (list(), None));
    }

    #[test]
    fn limits_are_limited() {
        assert!(part(0, "").of(vec![()], |()| String::new()).is_err());
        assert!(part(201, "").of(vec![()], |()| String::new()).is_err());
        assert!(part(1, &"x".repeat(401)).of(vec![()], |()| String::new()).is_err());
        assert!(SinceParams { limit: None, after: Some(u64::MAX) }.bounds().is_err());
    }
}
