//! The dashboard's files, which lie in the program: `ui/dist`, as npm built it before cargo ran.
//!
//! Where they were not built, `/` says how, and the API works all the same.

use crate::error::Refused;
use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

/// What the files were when they were embedded. The Makefile passes it on, and cargo embeds anew when it changes.
const STAMP: Option<&str> = option_env!("KVMSCOPE_UI_STAMP");

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Files;

/// Said in place of a dashboard that is not there.
const NO_DASHBOARD: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>kvmscope</title>\
    <h1>kvmscope serves recordings, without the dashboard</h1>\
    <p>This program was built without the dashboard's files. <code>make full</code> builds them (it needs Node.js) \
    and then the program.\
    <p>The API works: <a href=/api/recordings>/api/recordings</a>, <a href=/metrics>/metrics</a>.\n";

/// The file at the request's path; a path without a dot is a view of the dashboard, whose page is always the same.
pub(crate) async fn page(uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().trim_start_matches('/');
    let path = if path.rsplit('/').next().is_some_and(|name| name.contains('.')) { path } else { "index.html" };
    let Some(file) = Files::get(path) else {
        return match path {
            "index.html" => html(NO_DASHBOARD.as_bytes().to_vec()),
            _ => Refused::missing(format!("there is no file {path}")).into_response(),
        };
    };
    let tag = STAMP.map(|stamp| format!("\"{stamp}\""));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    if tag.is_some() && known == tag.as_deref() {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let mut response = with_type(file.data.into_owned(), type_of(path));
    if let Some(tag) = tag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

fn html(text: Vec<u8>) -> Response {
    with_type(text, type_of("index.html"))
}

/// An answer of these bytes.
pub(crate) fn with_type(bytes: Vec<u8>, media_type: &'static str) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn type_of(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
