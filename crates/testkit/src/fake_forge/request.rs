//! Requests as they arrived.

use serde_json::Value;

use crate::http::Request;

/// One request, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeRequest {
    /// The method.
    pub method: String,
    /// The path, without the query, as it was sent.
    pub path: String,
    /// The query, empty if there is none.
    pub query: String,
    /// All headers in the order of arrival, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl ForgeRequest {
    pub(super) fn read(request: &Request) -> Self {
        Self {
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            headers: request.headers.clone(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
        }
    }

    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A field of the query, decoded.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let mut fields = self.query.split('&').filter_map(|field| field.split_once('='));
        fields.find(|(own, _)| *own == name).map(|(_, value)| decode(value))
    }

    /// A field of the query that is a number above zero.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.field(name).and_then(|text| text.parse().ok()).filter(|number| *number > 0)
    }

    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// A text of the body, empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> String {
        self.json()[name].as_str().unwrap_or_default().to_owned()
    }

    /// A list of texts of the body.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let json = self.json();
        let list = json[name].as_array()?;
        Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

/// A segment or a field as the server understands it.
pub(crate) fn decode(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = tail.get(..2).filter(|_| first == b'%');
        let byte = escaped
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
