//! Requests and responses as values, and how a response looks on the wire.

/// A request, read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Empty if there is none.
    pub(crate) query: String,
    /// The names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// True if the client may ask again on the same connection.
    pub(crate) keep_alive: bool,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }
}

/// A response that is no stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Whole {
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), body: body.to_owned() }
    }
}

/// A response with its length.
pub(crate) fn render_whole(whole: &Whole) -> Vec<u8> {
    let Whole { status, headers, body } = whole;
    let has = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(*status));
    if !has("content-type") {
        text.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    // A length of the script's own may be a lie, which is its point.
    if !has("content-length") {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text.push_str(&format!("\r\n{body}"));
    text.into_bytes()
}

/// The head of a stream of events, which come as chunks.
pub(crate) fn render_stream_head() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
                transfer-encoding: chunked\r\n\r\n";
    head.into()
}

/// One chunk; the empty one is the last.
pub(crate) fn render_chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

pub(crate) fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_the_script_replaces_the_usual_one() {
        let headers = vec![("Content-Type".to_owned(), "text/html".to_owned())];
        let whole = Whole { status: 502, headers, body: "<p>".to_owned() };
        assert_eq!(
            String::from_utf8(render_whole(&whole)).unwrap(),
            "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\ncontent-length: 3\r\n\r\n<p>"
        );
    }

    #[test]
    fn a_chunk_says_its_length_in_bytes() {
        assert_eq!(render_chunk("naïve résumé"), "f\r\nnaïve résumé\r\n".as_bytes());
        assert_eq!(render_chunk(""), b"0\r\n\r\n");
    }
}
