//! Schedules in the configuration of `serve`: when work is due that no issue asks for.

use croner::Cron;
use croner::parser::{CronParser, Seconds};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use orchestrator_db::ScheduleMark;
use serde::Deserialize;

use super::settings::split_repo;

/// Shortest interval between two times.
const SHORTEST: SignedDuration = SignedDuration::from_mins(1);
/// A mark that lies further in the future was made by a wrong clock.
const SKEW_MAX: SignedDuration = SignedDuration::from_hours(24);

/// One schedule, as the configuration has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleSettings {
    pub(crate) name: String,
    pub(crate) repo: String,
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) bottles: Vec<String>,
    pub(crate) title: Option<String>,
    pub(crate) prompt: String,
    pub(crate) cron: Option<String>,
    pub(crate) every: Option<String>,
    pub(crate) timezone: Option<String>,
    pub(crate) assignee: Option<String>,
    /// True if a new run starts although the one before is not over.
    #[serde(default)]
    pub(crate) overlap: bool,
}

/// The times at which a schedule is due.
#[derive(Debug, Clone)]
pub(crate) enum Recurrence {
    Cron { cron: Box<Cron>, zone: TimeZone },
    Every(SignedDuration),
}

/// Next step of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScheduleStep {
    Wait,
    /// Counts from now on: it is new, or its times are.
    Begin,
    /// Asks for work, for the last of the times that have come.
    Run {
        due: Timestamp,
    },
    /// The work before is not over, so this time is left out.
    Skip {
        due: Timestamp,
    },
}

impl ScheduleSettings {
    /// Checks what types cannot express.
    pub(crate) fn check(&self) -> Result<(), String> {
        let named = |what: String| format!("schedule '{}': {what}", self.name);
        let is_name = !self.name.is_empty()
            && self.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !is_name {
            return Err(format!(
                "'{}' cannot name a schedule: use letters, digits, - _ .",
                self.name
            ));
        }
        if split_repo(&self.repo).is_none() {
            return Err(named(format!("'{}' is not owner/name", self.repo)));
        }
        if self.prompt.trim().is_empty() {
            return Err(named("the prompt is empty; say what is to be done".to_owned()));
        }
        self.recurrence().map(drop).map_err(named)
    }

    pub(crate) fn recurrence(&self) -> Result<Recurrence, String> {
        match (&self.cron, &self.every) {
            (Some(pattern), None) => {
                let parser = CronParser::builder().seconds(Seconds::Disallowed).build();
                let cron = parser
                    .parse(pattern)
                    .map_err(|error| format!("cron cannot be '{pattern}': {error}"))?;
                let cron = Box::new(cron);
                Ok(Recurrence::Cron { cron, zone: self.zone()? })
            }
            (None, Some(every)) if self.timezone.is_none() => {
                parse_interval(every).map(Recurrence::Every)
            }
            (None, Some(_)) => Err("timezone goes with cron".to_owned()),
            (Some(_), Some(_)) => Err("set cron or every, not both".to_owned()),
            (None, None) => Err("say when: cron = \"0 3 * * 1-5\", or every = \"6h\"".to_owned()),
        }
    }

    /// The times, in a form that changes when they do.
    pub(crate) fn definition(&self) -> String {
        match (&self.cron, &self.every) {
            (Some(cron), _) => format!("{cron} {}", self.zone_name()),
            (None, every) => format!("every {}", every.as_deref().unwrap_or_default()),
        }
    }

    fn zone_name(&self) -> &str {
        self.timezone.as_deref().unwrap_or("UTC")
    }

    fn zone(&self) -> Result<TimeZone, String> {
        let name = self.zone_name();
        TimeZone::get(name).or(Err(format!(
            "timezone cannot be '{name}': use a name such as Europe/Berlin (from the package tzdata)"
        )))
    }
}

impl Recurrence {
    /// The last time after `mark` that has come, if one has.
    fn last_due(&self, mark: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let due = match self {
            Self::Cron { cron, zone } => {
                let now = now.to_zoned(zone.clone());
                cron.find_previous_occurrence(&now, true).ok()?.timestamp()
            }
            Self::Every(interval) => {
                let passed = now.duration_since(mark).as_secs() / interval.as_secs();
                mark.checked_add(SignedDuration::from_secs(passed * interval.as_secs())).ok()?
            }
        };
        (due > mark && due <= now).then_some(due)
    }

    /// The next time after `mark`, or after now if one has been missed.
    pub(crate) fn next_due(&self, mark: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { cron, zone } => {
                let now = now.to_zoned(zone.clone());
                Some(cron.find_next_occurrence(&now, false).ok()?.timestamp())
            }
            Self::Every(interval) => {
                let last = self.last_due(mark, now).unwrap_or(mark);
                last.checked_add(*interval).ok()
            }
        }
    }
}

/// Decides about a schedule. Times that were missed while nobody served count as one.
pub(crate) fn next_step(
    recurrence: &Recurrence,
    definition: &str,
    mark: Option<&ScheduleMark>,
    is_busy: bool,
    now: Timestamp,
) -> ScheduleStep {
    let is_known = |mark: &&ScheduleMark| {
        mark.definition == definition && mark.last_due.duration_since(now) < SKEW_MAX
    };
    let Some(mark) = mark.filter(is_known) else { return ScheduleStep::Begin };
    match recurrence.last_due(mark.last_due, now) {
        None => ScheduleStep::Wait,
        Some(due) if is_busy => ScheduleStep::Skip { due },
        Some(due) => ScheduleStep::Run { due },
    }
}

fn parse_interval(text: &str) -> Result<SignedDuration, String> {
    let wrong =
        || format!("every cannot be '{text}': use 30m, 6h, 2d or the like, at least a minute");
    let span: Span = text.parse().or(Err(wrong()))?;
    let interval = span.to_duration(SpanRelativeTo::days_are_24_hours()).or(Err(wrong()))?;
    if interval >= SHORTEST { Ok(interval) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn schedule(text: &str) -> ScheduleSettings {
        let text = format!(
            "name = \"nightly\"\nrepo = \"acme/widget\"\nagent = \"worker\"\nprompt = \"Do it.\"\n{text}"
        );
        toml::from_str(&text).expect("settings")
    }

    fn step(settings: &ScheduleSettings, last: &str, now: &str) -> ScheduleStep {
        let definition = settings.definition();
        let mark = ScheduleMark {
            name: settings.name.clone(),
            definition: definition.clone(),
            last_due: at(last),
        };
        let recurrence = settings.recurrence().expect("times");
        next_step(&recurrence, &definition, Some(&mark), false, at(now))
    }

    #[test]
    fn missed_times_run_once_for_the_last_of_them() {
        let nightly = schedule("cron = \"0 3 * * *\"");
        let run = |due: &str| ScheduleStep::Run { due: at(due) };
        let last = "2026-11-10T03:00:00Z";
        assert_eq!(step(&nightly, last, "2026-11-11T02:59:59Z"), ScheduleStep::Wait);
        assert_eq!(step(&nightly, last, "2026-11-11T03:00:00Z"), run("2026-11-11T03:00:00Z"));
        assert_eq!(step(&nightly, last, "2026-11-14T12:00:00Z"), run("2026-11-14T03:00:00Z"));
        let often = schedule("every = \"6h\"");
        assert_eq!(step(&often, last, "2026-11-10T08:59:00Z"), ScheduleStep::Wait);
        assert_eq!(step(&often, last, "2026-11-11T04:00:00Z"), run("2026-11-11T03:00:00Z"));
    }

    #[test]
    fn a_time_zone_moves_with_summer_and_the_hour_that_is_skipped_is_not_lost() {
        let berlin = schedule("cron = \"30 2 * * *\"\ntimezone = \"Europe/Berlin\"");
        let Ok(_) = berlin.recurrence() else {
            // Without a database of time zones there is nothing to promise but that it says so.
            assert!(berlin.check().expect_err("it is refused").contains("tzdata"));
            return;
        };
        let due = |last: &str, now: &str| match step(&berlin, last, now) {
            ScheduleStep::Run { due } => due.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(due("2026-01-10T00:00:00Z", "2026-01-10T02:00:00Z"), "2026-01-10T01:30:00Z");
        assert_eq!(due("2026-07-10T00:00:00Z", "2026-07-10T02:00:00Z"), "2026-07-10T00:30:00Z");
        // At 2 o'clock on 29 March 2026 it is 3 o'clock; on 25 October 2026 there are two times half past two.
        let spring = due("2026-03-28T02:00:00Z", "2026-03-29T05:00:00Z");
        assert!(spring.starts_with("2026-03-29T01:"), "{spring}");
        let autumn = due("2026-10-24T02:00:00Z", "2026-10-25T05:00:00Z");
        assert_eq!(step(&berlin, &autumn, "2026-10-25T05:00:00Z"), ScheduleStep::Wait, "once");
    }

    #[test]
    fn a_new_schedule_and_one_whose_times_changed_count_from_now_on() {
        let hourly = schedule("cron = \"0 * * * *\"");
        let (recurrence, now) = (hourly.recurrence().expect("times"), at("2026-11-15T08:30:00Z"));
        let definition = hourly.definition();
        assert_eq!(next_step(&recurrence, &definition, None, false, now), ScheduleStep::Begin);
        let mark = |definition: &str, last: &str| ScheduleMark {
            name: "nightly".to_owned(),
            definition: definition.to_owned(),
            last_due: at(last),
        };
        let old = mark("0 3 * * * UTC", "2026-01-01T03:00:00Z");
        assert_eq!(
            next_step(&recurrence, &definition, Some(&old), false, now),
            ScheduleStep::Begin
        );
        let wrong_clock = mark(&definition, "2031-01-01T03:00:00Z");
        let step = next_step(&recurrence, &definition, Some(&wrong_clock), false, now);
        assert_eq!(step, ScheduleStep::Begin);
        let back = mark(&definition, "2026-11-15T09:00:00Z");
        let step = next_step(&recurrence, &definition, Some(&back), false, now);
        assert_eq!(step, ScheduleStep::Wait, "a clock that was put back repeats nothing");
    }

    #[test]
    fn a_time_is_left_out_while_the_work_before_goes_on() {
        let hourly = schedule("cron = \"0 * * * *\"");
        let definition = hourly.definition();
        let mark = ScheduleMark {
            name: "nightly".to_owned(),
            definition: definition.clone(),
            last_due: at("2026-11-15T07:00:00Z"),
        };
        let recurrence = hourly.recurrence().expect("times");
        let now = at("2026-11-15T08:30:00Z");
        let step = next_step(&recurrence, &definition, Some(&mark), true, now);
        assert_eq!(step, ScheduleStep::Skip { due: at("2026-11-15T08:00:00Z") });
        assert_eq!(recurrence.next_due(mark.last_due, now), Some(at("2026-11-15T09:00:00Z")));
    }

    #[test]
    fn what_is_wrong_with_a_schedule_is_named() {
        for (text, words) in [
            ("", "say when"),
            ("cron = \"0 3 * * *\"\nevery = \"6h\"", "not both"),
            ("cron = \"0 3 * *\"", "cron cannot be '0 3 * *'"),
            ("cron = \"* 0 3 * * *\"", "cron cannot be"),
            ("every = \"10s\"", "at least a minute"),
            ("every = \"often\"", "every cannot be 'often'"),
            ("every = \"6h\"\ntimezone = \"UTC\"", "timezone goes with cron"),
            ("cron = \"0 3 * * *\"\ntimezone = \"Mars/Olympus\"", "timezone cannot be"),
        ] {
            let error = schedule(text).check().expect_err("it is refused");
            assert!(error.contains(words) && error.contains("nightly"), "{error}");
        }
        let named = ScheduleSettings { name: "a b".to_owned(), ..schedule("every = \"1d\"") };
        assert!(named.check().is_err());
        let elsewhere =
            ScheduleSettings { repo: "widget".to_owned(), ..schedule("every = \"1d\"") };
        assert!(elsewhere.check().expect_err("it is refused").contains("owner/name"));
        assert_eq!(schedule("every = \"2d\"").check(), Ok(()));
    }
}
