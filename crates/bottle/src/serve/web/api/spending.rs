//! Spending and budgets.

use axum::Json;
use axum::extract::State;
use jiff::civil::Date;
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::facts::spending::{SpendingReport, load_spending};
use super::super::problem::{Problem, Refusals};
use super::super::{WebState, query};
use super::query::StrictQuery;
use crate::rules::budget::day_of;

/// A day.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DayParams {
    /// The day in UTC, as in 2026-11-18; without it today
    #[param(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    day: Option<String>,
}

impl DayParams {
    /// The day, which is today if none is given.
    pub(crate) fn date(&self) -> Result<Date, Problem> {
        let Some(text) = &self.day else { return Ok(day_of(host::clock::now())) };
        let bytes = text.as_bytes();
        let fits = |(at, byte): (usize, &u8)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        if bytes.len() != "2026-11-18".len() || !bytes.iter().enumerate().all(fits) {
            return Err(Problem::wrong("day is a day such as 2026-11-18"));
        }
        let missing = |error| Problem::missing(format!("no calendar has the day {text}: {error}"));
        text.parse().map_err(missing)
    }
}

/// Show the spending of a day
#[utoipa::path(get, operation_id = "show_spending", path = "/spending", tag = "spending", params(DayParams),
    responses((status = 200, description = "The spending of that day", body = SpendingReport), Refusals))]
pub(crate) async fn show(
    State(web): State<WebState>,
    StrictQuery(params): StrictQuery<DayParams>,
) -> Result<Json<SpendingReport>, Problem> {
    let day = params.date()?;
    Ok(Json(query(&web, move |web| load_spending(web, day)).await?))
}
