//! Connections: how many there may be, and how long one may take.
//!
//! ```text
//! accept --at most MOST at once--> head of a request within HEAD --> answer, read by the client without a pause of STUCK
//!              ^ the others wait in the kernel's queue       '--> cut off
//! ```
//! Once half of the places are taken the head has to come sooner: whoever waits in the queue has to get a place before it gives up.
//! Whoever sends half a request or reads nothing takes a place away for so long only, and an idle connection as well.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Sleep, sleep};

/// Connections at once: a browser opens six, and common limits of descriptors are 1,024.
pub(crate) const MOST: usize = 128;

/// Until the head of a request has come, the first one as well as those after an answer.
pub(crate) const HEAD: Duration = Duration::from_secs(10);

/// The same while places are scarce: a program that collects metrics waits for 10 s (Prometheus, `scrape_timeout`), and several such turns have
/// to fit into that.
const SHORT_HEAD: Duration = Duration::from_secs(1);

/// Until more of a request's body has come, or the client has read more of an answer.
pub(crate) const STUCK: Duration = Duration::from_secs(30);

/// How long to wait when the system has no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) trait Accepts: Send + Sync {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Accepts for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

impl Accepts for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

/// Answers by `router` until `stopped` is told or its sender gone, then ends what is idle and waits for the rest.
pub(crate) async fn serve<L: Accepts>(
    listener: L,
    router: Router,
    mut stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(MOST));
    let graceful = GracefulShutdown::new();
    let http = [HEAD, SHORT_HEAD].map(|within| {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(within);
        http
    });
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.next().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            _ = &mut stopped => break,
        };
        let Ok(stream) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        let http = &http[usize::from(places.available_permits() < MOST / 2)];
        let connection = graceful.watch(http.serve_connection(TokioIo::new(Patient { stream, stuck: None }), service));
        tokio::spawn(async move {
            // A client that broke off, or that was too slow: nobody is left to be told.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
    Ok(())
}

/// A stream whose reader may not stop for long.
struct Patient<S> {
    stream: S,
    /// Runs while something could not be written.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// Passes on what came of a write; one that waits too long fails.
    fn within<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        ready!(self.stuck.get_or_insert_with(|| Box::pin(sleep(STUCK))).as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.within(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
