//! The socket and the threads.

use crate::brief::Briefs;
use crate::cache::Cache;
use crate::connections;
use crate::error::Error;
use crate::folder::Folder;
use crate::guard::Guard;
use crate::routes::{Shared, router};
use analysis::Given;
use analysis::facts::budget::Budget;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

/// How long answers that are being given may take after the end was asked for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Threads that open and compute; more requests wait for one. Each may keep a large answer in memory.
const MOST_AT_WORK: usize = 32;

/// The fewest bytes that are worth compressing: less fits into one packet as it is.
const SMALLEST_COMPRESSED: u64 = 1_024;

/// The stack of each thread: what the main thread of a command has, so that what `kvmscope report` reads is read here.
const STACK_BYTES: usize = 8 << 20;

/// What is served, and to whom.
#[derive(Debug, Clone)]
pub struct Options {
    pub folder: PathBuf,
    /// Where to listen; port 0 is any free one.
    pub address: SocketAddr,
    /// What everybody who asks has to know; needed where others can reach the address.
    pub token: Option<String>,
    /// The most bytes of an uploaded trace; `None`: uploads are refused.
    pub upload_bytes: Option<u64>,
    /// The goals by which all recordings are judged.
    pub budget: Option<Budget>,
}

/// A server that runs until it is dropped, or until the user has had enough.
pub struct Server {
    address: SocketAddr,
    token: Option<String>,
    signals: Vec<Signal>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<std::io::Result<()>>>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    /// If there is no such folder, if the address is taken, or if others could reach it and no token is given.
    pub fn start(options: &Options) -> Result<Self, Error> {
        if !options.address.ip().is_loopback() && options.token.is_none() {
            return Err(Error::NeedsToken(options.address));
        }
        let folder = Folder::open(&options.folder)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(MOST_AT_WORK)
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()?;
        let listen = |source| Error::Listen { address: options.address, source };
        let listener = runtime.block_on(TcpListener::bind(options.address)).map_err(listen)?;
        let address = listener.local_addr()?;
        let rules =
            Guard { token: options.token.as_deref().map(Arc::from), cookie: format!("kvmscope_{}", address.port()) };
        let shared = Shared {
            folder,
            cache: Cache::new(Given { budget: options.budget.clone(), ..Given::default() }),
            briefs: Briefs::default(),
            watched: Arc::default(),
            upload_bytes: options.upload_bytes,
        };
        let router = router(Arc::new(shared), rules).layer(compressed());
        let (stop, stopped) = oneshot::channel();
        let serving = runtime.spawn(connections::serve(listener, router, stopped));
        let token = options.token.clone();
        Ok(Self {
            address,
            token,
            signals: Vec::new(),
            stop: Some(stop),
            serving: Some(serving),
            runtime: Some(runtime),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to open in a browser.
    pub fn url(&self) -> String {
        let token = self.token.as_ref().map_or(String::new(), |token| format!("?token={token}"));
        format!("http://{}/{token}", self.address)
    }

    /// From now on these signals, by their numbers, end [`Server::until_signalled`], and not the program.
    ///
    /// # Errors
    /// If the operating system refuses one of them.
    pub fn ending_on(mut self, signals: &[i32]) -> Result<Self, Error> {
        let taken = || signals.iter().map(|number| signal(SignalKind::from_raw(*number))).collect::<Result<_, _>>();
        if let Some(runtime) = &self.runtime {
            self.signals = runtime.block_on(async { taken() })?;
        }
        Ok(self)
    }

    /// Serves until a signal comes, then ends: at once for who is idle, in 2 s for who is not.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn until_signalled(mut self) -> Result<(), Error> {
        let (Some(runtime), Some(mut serving)) = (self.runtime.take(), self.serving.take()) else { return Ok(()) };
        let ended = runtime.block_on(async {
            let signalled = poll_fn(|context| {
                let came = self.signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
                if came { Poll::Ready(()) } else { Poll::Pending }
            });
            tokio::select! {
                ended = &mut serving => return ended.map_err(std::io::Error::other)?,
                () = signalled => {}
            }
            self.stop.take();
            // Whoever is not done by then is cut off.
            let _ = tokio::time::timeout(PATIENCE, serving).await;
            Ok(())
        });
        runtime.shutdown_timeout(Duration::ZERO);
        Ok(ended?)
    }
}

/// Answers are compressed for whoever asks for that, quickly rather than well. On the loopback address, too: whoever asks
/// there often does so through a tunnel. Short answers, pictures and what is sent bit by bit stay as they are.
fn compressed() -> CompressionLayer<impl Predicate> {
    let worth = SizeAbove::new(SMALLEST_COMPRESSED)
        .and(NotForContentType::IMAGES)
        .and(NotForContentType::const_new("application/gzip"))
        .and(NotForContentType::const_new("application/zstd"))
        .and(NotForContentType::SSE);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth)
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
