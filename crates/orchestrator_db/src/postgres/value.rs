//! Values of statements with their types, and the columns of rows. A statement with typed values needs no name in the server's
//! session, so that it works behind a pooler of transactions.

use jiff::Timestamp;
use jiff::civil::Date;
use postgres::Row;
use postgres::types::{FromSql, ToSql, Type};

use crate::error::DbError;
use crate::forge_state::IssueKey;

#[derive(Debug)]
pub(super) struct Value {
    value: Box<dyn ToSql + Sync + Send>,
    kind: Type,
}

impl Value {
    pub(super) fn params(list: &[Self]) -> Vec<(&(dyn ToSql + Sync), Type)> {
        list.iter().map(|it| (&*it.value as &(dyn ToSql + Sync), it.kind.clone())).collect()
    }

    fn new(value: impl ToSql + Sync + Send + 'static, kind: Type) -> Self {
        Self { value: Box::new(value), kind }
    }
}

macro_rules! values_of {
    ($($type:ty => $kind:ident $(, $own:expr)?;)*) => {
        $(
            impl From<$type> for Value {
                fn from(value: $type) -> Self {
                    $(let value = $own(value);)?
                    Self::new(value, Type::$kind)
                }
            }
        )*
    };
}

values_of! {
    String => TEXT, |it: String| storable(&it);
    &str => TEXT, storable;
    &String => TEXT, |it: &String| storable(it);
    Option<&str> => TEXT, |it: Option<&str>| it.map(storable);
    Option<String> => TEXT, |it: Option<String>| it.map(|it| storable(&it));
    &Option<String> => TEXT, |it: &Option<String>| it.as_deref().map(storable);
    bool => BOOL;
    i64 => INT8;
    u32 => INT8, i64::from;
    Option<u32> => INT8, |it: Option<u32>| it.map(i64::from);
    u64 => INT8, whole;
    Option<u64> => INT8, |it: Option<u64>| it.map(whole);
    Vec<u64> => INT8_ARRAY, |it: Vec<u64>| it.into_iter().map(whole).collect::<Vec<_>>();
    usize => INT8, |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
    f64 => FLOAT8;
    Timestamp => TIMESTAMPTZ;
    Option<Timestamp> => TIMESTAMPTZ;
    Date => DATE;
    Vec<Timestamp> => TIMESTAMPTZ_ARRAY;
    Vec<Vec<u8>> => BYTEA_ARRAY;
    Vec<&str> => TEXT_ARRAY, |it: Vec<&str>| it.into_iter().map(storable).collect::<Vec<_>>();
}

/// Text as a column can have it: PostgreSQL refuses the character NUL, and a title of an issue may contain one.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A number in the range of a column.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The columns of a row.
pub(super) struct Cells<'a> {
    pub(super) row: &'a Row,
    pub(super) database: &'a str,
}

impl Cells<'_> {
    pub(super) fn get<T: for<'b> FromSql<'b>>(&self, index: usize) -> Result<T, DbError> {
        let database = self.database.to_owned();
        let failed = |source| DbError::Database {
            action: "read a column",
            database,
            source: Box::new(source),
        };
        self.row.try_get(index).map_err(failed)
    }

    pub(super) fn number<N: TryFrom<i64>>(&self, index: usize) -> Result<N, DbError> {
        let number: i64 = self.get(index)?;
        N::try_from(number).or(Err(self.invalid(index, number.to_string())))
    }

    pub(super) fn number_option(&self, index: usize) -> Result<Option<u64>, DbError> {
        let number: Option<i64> = self.get(index)?;
        let checked =
            |number: i64| u64::try_from(number).or(Err(self.invalid(index, number.to_string())));
        number.map(checked).transpose()
    }

    pub(super) fn parsed<T>(
        &self,
        index: usize,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, DbError> {
        let text: String = self.get(index)?;
        parse(&text).ok_or_else(|| self.invalid(index, text))
    }

    pub(super) fn parsed_option<T>(
        &self,
        index: usize,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, DbError> {
        let text: Option<String> = self.get(index)?;
        text.map(|text| parse(&text).ok_or_else(|| self.invalid(index, text))).transpose()
    }

    /// An issue from three columns.
    pub(super) fn key(&self, first: usize) -> Result<IssueKey, DbError> {
        let (owner, repo) = (self.get(first)?, self.get(first + 1)?);
        Ok(IssueKey { owner, repo, issue_number: self.number(first + 2)? })
    }

    fn invalid(&self, index: usize, value: String) -> DbError {
        let field = self.row.columns().get(index).map(|it| it.name().to_owned());
        DbError::Row { database: self.database.to_owned(), field: field.unwrap_or_default(), value }
    }
}
