//! A client that writes what it is told to a socket: no library between it and the server could mend a bad request.

use kvmscope_serve::{Options, Server};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// Where the server has the bundled recording that most is asked of.
pub(crate) const HOG: &str = "/api/recordings/nested-vmx-shadow-off-hog";

pub(crate) struct Client {
    server: Server,
}

pub(crate) struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

impl Client {
    pub(crate) fn of_fixtures() -> Self {
        Self::of(&fixtures())
    }

    /// One for this machine alone, which takes no uploads.
    pub(crate) fn of(folder: &Path) -> Self {
        Self::new(&Options {
            folder: folder.to_owned(),
            address: ([127, 0, 0, 1], 0).into(),
            token: None,
            upload_bytes: None,
            budget: None,
        })
    }

    pub(crate) fn new(options: &Options) -> Self {
        Self { server: Server::start(options).unwrap() }
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.server.address()
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        serde_json::from_slice(&reply.body).unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Reply {
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
        self.send_bytes(&[head.as_bytes(), body].concat())
    }

    pub(crate) fn send(&self, request: &str) -> Reply {
        self.send_bytes(request.as_bytes())
    }

    fn send_bytes(&self, request: &[u8]) -> Reply {
        let port = self.server.address().port();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let line = request.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let request = [&request[..line], b"Connection: close\r\n", &request[line..]].concat();
        // A server that has refused the head may stop reading; what it said is there all the same.
        let _ = stream.write_all(&request);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("an answer with a head") + 4;
        let head = String::from_utf8(reply[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head, body: reply.split_off(end) }
    }
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
