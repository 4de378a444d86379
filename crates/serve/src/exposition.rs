//! One text at `/metrics`, for programs that collect such: what `kvmscope agent` has counted so far.
//!
//! ```text
//! agent <--text-- Exposition <--GET /metrics-- Prometheus, curl      127.0.0.1:9476 or a unix socket
//! ```
//! It is reached from this machine alone: a loopback address, or a socket whose directory decides who may.

use crate::connections::{self, Accepts};
use crate::error::Error;
use crate::metrics::MEDIA_TYPE;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::routing::get;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A loopback address; port 0 is any free one.
    Address(SocketAddr),
    /// A unix socket, which is made, and replaced if nobody listens there any more.
    Socket(PathBuf),
}

/// Writes the exposition as it is now.
type Write = Arc<dyn Fn() -> String + Send + Sync>;

/// Answers until it is dropped.
pub struct Exposition {
    place: String,
    socket: Option<PathBuf>,
    runtime: Option<Runtime>,
    _stop: oneshot::Sender<()>,
}

impl Exposition {
    /// Starts to answer with what `text` is at that moment.
    ///
    /// # Errors
    /// If the address is taken, or others could reach it.
    pub fn start(listen: &Listen, text: impl Fn() -> String + Send + Sync + 'static) -> Result<Self, Error> {
        let text: Write = Arc::new(text);
        let router = Router::new().route("/metrics", get(answer)).with_state(text);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let (place, socket) = match listen {
            Listen::Address(address) if !address.ip().is_loopback() => return Err(Error::NotLoopback(*address)),
            Listen::Address(address) => {
                let refused = |source| Error::Listen { address: *address, source };
                let listener = runtime.block_on(TcpListener::bind(address)).map_err(refused)?;
                let place = format!("http://{}/metrics", listener.local_addr()?);
                spawn(&runtime, listener, router, stopped);
                (place, None)
            }
            Listen::Socket(path) => {
                let listener = bound(&runtime, path)?;
                spawn(&runtime, listener, router, stopped);
                (format!("{}, GET /metrics", path.display()), Some(path.clone()))
            }
        };
        Ok(Self { place, socket, runtime: Some(runtime), _stop: stop })
    }

    pub fn place(&self) -> &str {
        &self.place
    }
}

impl Drop for Exposition {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if let Some(socket) = &self.socket {
            // It may be gone with its directory.
            let _ = std::fs::remove_file(socket);
        }
    }
}

fn spawn<L: Accepts + 'static>(runtime: &Runtime, listener: L, router: Router, stopped: oneshot::Receiver<()>) {
    runtime.spawn(connections::serve(listener, router, stopped));
}

/// The socket, in place of one that a killed process left.
fn bound(runtime: &Runtime, path: &Path) -> Result<UnixListener, Error> {
    let refused = |source| Error::Socket { path: path.to_owned(), source };
    // To connect to a file that is no socket is refused likewise.
    let is_socket = path.symlink_metadata().is_ok_and(|about| about.file_type().is_socket());
    let is_left = |error: std::io::Error| error.kind() == ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).is_err_and(is_left) {
        std::fs::remove_file(path).map_err(refused)?;
    }
    let _inside = runtime.enter();
    UnixListener::bind(path).map_err(refused)
}

async fn answer(State(text): State<Write>) -> ([(header::HeaderName, &'static str); 1], String) {
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::sync::atomic::Ordering;

    fn nothing() -> String {
        "# EOF\n".to_owned()
    }

    fn asked(mut stream: impl Read + Write, path: &str) -> String {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn it_answers_with_the_text_of_that_moment_on_an_address_and_on_a_socket() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("metrics.sock");
        let asked_for = std::sync::atomic::AtomicU64::new(0);
        let count = move || format!("kvmscope_x {}\n# EOF\n", asked_for.fetch_add(1, Ordering::Relaxed));
        let address = Exposition::start(&Listen::Address("127.0.0.1:0".parse().unwrap()), count).unwrap();
        let port = address.place().trim_start_matches("http://127.0.0.1:").trim_end_matches("/metrics").to_owned();
        let tcp = || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        assert!(asked(tcp(), "/metrics").ends_with("kvmscope_x 0\n# EOF\n"));
        let said = asked(tcp(), "/metrics");
        assert!(said.contains("application/openmetrics-text") && said.ends_with("kvmscope_x 1\n# EOF\n"), "{said}");
        assert!(asked(tcp(), "/other").starts_with("HTTP/1.1 404"));
        let local = Exposition::start(&Listen::Socket(socket.clone()), nothing).unwrap();
        assert!(asked(UnixStream::connect(&socket).unwrap(), "/metrics").ends_with("# EOF\n"));
        assert!(Exposition::start(&Listen::Socket(socket.clone()), nothing).is_err(), "somebody listens there");
        drop(local);
        assert!(!socket.exists());
    }

    #[test]
    fn a_socket_that_a_killed_process_left_is_replaced_and_other_machines_are_kept_out() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("metrics.sock");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        assert!(socket.exists());
        let local = Exposition::start(&Listen::Socket(socket.clone()), nothing).unwrap();
        assert!(asked(UnixStream::connect(&socket).unwrap(), "/metrics").ends_with("# EOF\n"));
        drop(local);
        std::fs::write(&socket, "a file of somebody").unwrap();
        assert!(Exposition::start(&Listen::Socket(socket.clone()), nothing).is_err());
        assert_eq!(std::fs::read_to_string(&socket).unwrap(), "a file of somebody");
        assert!(Exposition::start(&Listen::Address("0.0.0.0:0".parse().unwrap()), nothing).is_err());
    }
}
