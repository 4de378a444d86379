//! Why the server could not start, and why a request was refused: sentences.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder is not there.
    #[error("{}: {source}; name a folder of recordings", folder.display())]
    Folder {
        folder: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    #[error("{} is a file; name its folder", .0.display())]
    NoFolder(PathBuf),
    /// The address is taken, or is none of this machine's.
    #[error("cannot listen on {address}: {source}; {}", listen_hint(source))]
    Listen {
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The socket cannot be made, or somebody listens there.
    #[error("cannot listen on {}: {source}; name another place with --socket", path.display())]
    Socket {
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// What has no token is for this machine alone.
    #[error("{0} can be reached from other machines; use a loopback address, such as 127.0.0.1:9476")]
    NotLoopback(SocketAddr),
    /// Others could read the recordings.
    #[error("{0} can be reached from other machines: a token is needed")]
    NeedsToken(SocketAddr),
    #[error("the server cannot run: {0}")]
    System(#[from] std::io::Error),
}

/// What to do about an address that cannot be listened on.
fn listen_hint(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match source.kind() {
        ErrorKind::AddrInUse => "the port is in use; --port 0 takes any free one",
        ErrorKind::AddrNotAvailable => "this machine has no such address; `ip address` lists its addresses",
        ErrorKind::PermissionDenied => "ports below 1024 need root; use another with --port",
        _ => "use another address with --listen, or another port with --port",
    }
}

/// Why a request has no other answer: a status and `{"error": "a sentence"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// HTTP's status.
    pub status: StatusCode,
    pub sentence: String,
}

impl Refused {
    /// The request makes no sense as it is.
    pub(crate) fn wrong(sentence: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, sentence: sentence.into() }
    }

    /// There is nothing by that name.
    pub(crate) fn missing(sentence: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, sentence: sentence.into() }
    }

    /// It is there and holds no answer.
    pub(crate) fn unanswered(sentence: impl Into<String>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, sentence: sentence.into() }
    }

    /// Whoever asks may not.
    pub(crate) fn forbidden(sentence: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, sentence: sentence.into() }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.sentence }).to_string();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        response
    }
}
