//! Who may ask?
//!
//! ```text
//! Host is `localhost` or an address  --no-->  403   a page elsewhere whose name was made to resolve to this machine
//! Origin, where sent, is this Host   --no-->  403   a page elsewhere that posts
//! token right, where there is one    --no-->  401   anybody on the network
//! ```
//! A name in `Host` is what DNS rebinding needs (the browser believes it talks to the attacker's site); an address
//! cannot be rebound. The token comes as `Authorization: Bearer`, as a cookie, or as `?token=`, which sets the cookie.

use crate::error::Refused;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;

/// What every answer carries. Only files of this server are loaded, nothing inline runs, and nobody frames the page.
/// `blob:` and `data:` are pictures that the page makes itself, to be copied.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
         connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-cache"),
];

/// The rules of one server.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    /// The token that is demanded, if one is.
    pub token: Option<Arc<str>>,
    /// Name of the cookie that holds it: cookies do not tell ports apart, names do.
    pub cookie: String,
}

/// Lets a request pass, or answers it.
pub(crate) async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let mut response = match guard.admit(request.uri(), request.headers()) {
        Err(refused) => refused.into_response(),
        Ok(Admitted::Yes) => next.run(request).await,
        Ok(Admitted::WithNewToken) if is_page(request.uri()) => see_other(request.uri().path()),
        Ok(Admitted::WithNewToken) => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in &HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if response.status() == StatusCode::SEE_OTHER {
        guard.set_cookie(response.headers_mut());
    }
    response
}

/// How a request passed.
#[derive(Debug, PartialEq, Eq)]
enum Admitted {
    Yes,
    /// By a token in the address, where it would stay in the browser's history.
    WithNewToken,
}

impl Guard {
    fn admit(&self, uri: &Uri, headers: &HeaderMap) -> Result<Admitted, Refused> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let host = host.ok_or_else(|| Refused::wrong("the request has no Host header"))?;
        // RFC 9112, 3.2: who stands between may have looked at the other one.
        if hosts.next().is_some() {
            return Err(Refused::wrong("the request has more than one Host header"));
        }
        if !is_address_or_localhost(host) {
            return Err(Refused::forbidden(format!(
                "the request was sent to `{host}`; open this server by its address or as localhost"
            )));
        }
        if let Some(origin) = headers.get(header::ORIGIN) {
            let same = origin.to_str().is_ok_and(|origin| origin.split_once("://").is_some_and(|(_, at)| at == host));
            if !same {
                return Err(Refused::forbidden("the request came from a page of another site and was refused"));
            }
        }
        let Some(token) = &self.token else { return Ok(Admitted::Yes) };
        let is_token = |given: &str| same_bytes(given.as_bytes(), token.as_bytes());
        let header = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let bearer = header(header::AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
        let cookies = header(header::COOKIE).flat_map(|value| value.split("; "));
        let cookies = cookies.filter_map(|cookie| cookie.strip_prefix(&self.cookie)?.strip_prefix('='));
        if bearer.chain(cookies).any(is_token) {
            return Ok(Admitted::Yes);
        }
        let mut asked = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.strip_prefix("token="));
        if asked.any(is_token) {
            return Ok(Admitted::WithNewToken);
        }
        let sentence = "a token is needed: open the address that `kvmscope serve` printed when it started";
        Err(Refused { status: StatusCode::UNAUTHORIZED, sentence: sentence.to_owned() })
    }

    fn set_cookie(&self, headers: &mut HeaderMap) {
        let Some(token) = &self.token else { return };
        // Lax, not Strict: the address is opened from a mail or a chat, and the page behind it needs the cookie at once.
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Lax", self.cookie);
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            headers.insert(header::SET_COOKIE, cookie);
        }
    }
}

fn is_page(uri: &Uri) -> bool {
    !uri.path().starts_with("/api/") && uri.path() != "/metrics"
}

fn see_other(path: &str) -> Response {
    // One slash: a path that begins with two would name another host, and to browsers a backslash is one.
    let place = format!("/{}", path.trim_start_matches('/').replace('\\', "%5C"));
    let mut response = Response::new(Body::empty());
    if let Ok(place) = HeaderValue::try_from(place) {
        *response.status_mut() = StatusCode::SEE_OTHER;
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// `localhost`, `127.0.0.1:8080`, `[::1]:80`.
fn is_address_or_localhost(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost") || inner.unwrap_or(name).parse::<IpAddr>().is_ok()
}

/// Compares in a time that does not tell how much of `given` is right.
fn same_bytes(given: &[u8], wanted: &[u8]) -> bool {
    let differing = given.iter().zip(wanted).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == wanted.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_hosts() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:7777", "[::1]", "[::1]:7777", "10.0.0.7:1"] {
            assert!(is_address_or_localhost(host), "{host}");
        }
        for host in
            ["", "evil.example", "evil.example:7777", "127.0.0.1.evil.example", "localhost.evil.example", "[::1"]
        {
            assert!(!is_address_or_localhost(host), "{host}");
        }
    }

    #[test]
    fn a_redirection_stays_on_this_server() {
        for (path, place) in
            [("/", "/"), ("//evil.example/x", "/evil.example/x"), ("/\\evil.example", "/%5Cevil.example")]
        {
            assert_eq!(see_other(path).headers()[header::LOCATION], place);
        }
    }

    #[test]
    fn a_second_host_is_refused() {
        let guard = Guard { token: None, cookie: String::new() };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        assert_eq!(guard.admit(&Uri::from_static("/"), &headers).unwrap(), Admitted::Yes);
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        assert_eq!(guard.admit(&Uri::from_static("/"), &headers).unwrap_err().status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_token_is_all_of_it() {
        assert!(same_bytes(b"abc", b"abc"));
        for given in ["", "ab", "abcd", "abd"] {
            assert!(!same_bytes(given.as_bytes(), b"abc"), "{given}");
        }
    }
}
