//! Any bytes as a request of HTTP, sent to a server over a folder of one small recording.

use crate::room::Room;
use serve::{Options, Server};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Over a folder of one small recording. An input that ends it is found by the next.
fn start(room: &Room) -> Server {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/nested-svm-toy/L0/trace.dat");
    if let Ok(trace) = std::fs::read(fixture) {
        room.write("toy.dat", &trace);
    }
    let folder = room.path().to_owned();
    let options =
        Options { folder, address: ([127, 0, 0, 1], 0).into(), token: None, upload_bytes: Some(1 << 12), budget: None };
    Server::start(&options).expect("a port")
}

/// Panics where a promise is broken by these bytes.
pub fn http(room: &Room, bytes: &[u8]) {
    let mut stream = TcpStream::connect(room.server(|| start(room)).address()).expect("the server listens");
    // A stream of samples has no end.
    stream.set_read_timeout(Some(Duration::from_secs(2))).expect("a socket");
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 500"), "{}", String::from_utf8_lossy(&answer));
}
