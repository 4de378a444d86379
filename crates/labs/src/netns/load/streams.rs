//! Many TCP streams from the client to the server, and how many bytes arrived.
//!
//! What is counted is what the server's program has read, never what the client sent: a frame that was dropped on the way
//! is no throughput.

use crate::netns::inside::{Stop, WorkerThreads};
use base::CpuSet;
use lab::Error;
use lab::setting::thread;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// iperf3's own port.
const PORT: u16 = 5201;
/// What one call reads or writes: iperf3's default for TCP.
const BLOCK_BYTES: usize = 128 << 10;
/// How long a connection may take: behind a starved forwarder a handshake waits.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a call waits before its thread looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Bytes that arrived at the server.
#[derive(Debug, Clone, Default)]
pub(super) struct Received(Arc<AtomicU64>);

impl Received {
    /// All of them since the beginning.
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where the load runs.
pub(in crate::netns) struct Ends<'a> {
    pub(in crate::netns) client: &'a str,
    pub(in crate::netns) server: &'a str,
    pub(in crate::netns) server_address: &'a str,
}

/// Starts the server's thread and the client's, each of which carries all streams.
pub(super) fn start(
    workers: &mut WorkerThreads,
    ends: &Ends<'_>,
    streams: usize,
    cpus: &CpuSet,
) -> Result<Received, Error> {
    let received = Received::default();
    let counted = received.clone();
    let address = format!("{}:{PORT}", ends.server_address);
    let (bound, peer) = (address.clone(), address);
    let listen = move || {
        let listener = TcpListener::bind(&bound).map_err(|error| failed(&bound, &error))?;
        listener.set_nonblocking(true).map_err(|error| failed(&bound, &error))?;
        Ok(listener)
    };
    let server = workers.start("load-server", Some(ends.server), listen, move |listener, stop| {
        serve(&listener, &counted, stop).map_err(|error| failed("the load's server", &error))
    })?;
    thread::set_affinity(server, cpus)?;
    let connect = move || {
        let since = Instant::now();
        (0..streams.max(1)).map(|_| connected(&peer, since)).collect::<Result<Vec<_>, _>>()
    };
    let client = workers.start("load-client", Some(ends.client), connect, |streams, stop| {
        send(streams, stop).map_err(|error| failed("the load's client", &error))
    })?;
    thread::set_affinity(client, cpus)?;
    Ok(received)
}

/// Tries until the way is there: a bridge's port learns, and a resolved neighbour takes a moment.
fn connected(peer: &str, since: Instant) -> Result<TcpStream, Error> {
    let address = peer.parse().map_err(|error| Error::Malformed(format!("{peer}: {error}")))?;
    loop {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                stream.set_nonblocking(true).map_err(|error| failed(peer, &error))?;
                return Ok(stream);
            }
            Err(_) if since.elapsed() < CONNECT => std::thread::sleep(LOOK_EVERY),
            Err(error) => return Err(failed(peer, &error)),
        }
    }
}

/// Reads from all connections in turn, and takes new ones as they come.
fn serve(listener: &TcpListener, received: &Received, stop: &Stop) -> std::io::Result<()> {
    let (mut streams, mut block) = (Vec::new(), vec![0; BLOCK_BYTES]);
    while !stop.asked() {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                streams.push(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let got = each(&mut streams, |stream| stream.read(&mut block))?;
        received.0.fetch_add(got, Ordering::Relaxed);
        if got == 0 {
            wait(&streams, rustix::event::PollFlags::IN);
        }
    }
    Ok(())
}

fn send(mut streams: Vec<TcpStream>, stop: &Stop) -> std::io::Result<()> {
    let block = vec![0; BLOCK_BYTES];
    while !stop.asked() {
        if each(&mut streams, |stream| stream.write(&block))? == 0 {
            wait(&streams, rustix::event::PollFlags::OUT);
        }
    }
    Ok(())
}

/// Does one call on each stream; returns the bytes of all. A stream that is not ready has none.
fn each(
    streams: &mut [TcpStream],
    mut call: impl FnMut(&mut TcpStream) -> std::io::Result<usize>,
) -> std::io::Result<u64> {
    let mut bytes = 0;
    for stream in streams {
        match call(stream) {
            Ok(count) => bytes += count as u64,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Sleeps until a stream is ready, or for a while.
fn wait(streams: &[TcpStream], ready: rustix::event::PollFlags) {
    use rustix::event::{PollFd, Timespec, poll};
    if streams.is_empty() {
        return std::thread::sleep(Duration::from_millis(1));
    }
    let mut watched: Vec<PollFd<'_>> = streams.iter().map(|stream| PollFd::new(stream, ready)).collect();
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK_EVERY.subsec_nanos()) };
    // Interrupted or not: the caller looks again.
    let _ = poll(&mut watched, Some(&limit));
}

fn failed(what: &str, error: &std::io::Error) -> Error {
    Error::refused(format_args!("{what}"), error)
}
