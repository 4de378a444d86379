//! Asks a daemon of Open vSwitch by its control socket, without starting a program: that would take a CPU from a poller.
//!
//! The protocol is JSON-RPC 1.0: `{"id":0,"method":"dpctl/dump-flows","params":["netdev@ovs-netdev"]}` and an answer with
//! `result` or `error`, both text (lib/unixctl.c, Open vSwitch 3.1).

use lab::Error;
use serde::Deserialize;
use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take: a busy PMD answers between two turns of its loop.
const LIMIT: Duration = Duration::from_secs(20);
/// More is cut: the counters of all ports are some 100 KB.
const MOST_BYTES: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Control {
    stream: UnixStream,
}

#[derive(Deserialize)]
struct Answered {
    result: Option<String>,
    error: Option<String>,
}

impl Control {
    pub(super) fn connect(socket: &Path) -> Result<Self, Error> {
        let io = |error| Error::io(socket, error);
        let stream = UnixStream::connect(socket).map_err(io)?;
        stream.set_read_timeout(Some(LIMIT)).map_err(io)?;
        stream.set_write_timeout(Some(LIMIT)).map_err(io)?;
        Ok(Self { stream })
    }

    /// What the daemon answers.
    pub(super) fn ask(&mut self, method: &str, parameters: &[&str]) -> Result<String, Error> {
        let refused = |said: String| Error::refused(format_args!("Open vSwitch, {method}"), said);
        let request = serde_json::json!({ "id": 0, "method": method, "params": parameters }).to_string();
        self.stream.write_all(request.as_bytes()).map_err(|error| refused(error.to_string()))?;
        let reader = BufReader::new((&self.stream).take(MOST_BYTES));
        let answer = serde_json::Deserializer::from_reader(reader).into_iter::<Answered>().next();
        match answer {
            Some(Ok(Answered { result: Some(text), error: None })) => Ok(text),
            Some(Ok(Answered { error: Some(error), .. })) => Err(refused(error)),
            Some(Ok(Answered { result: None, error: None })) => Ok(String::new()),
            Some(Err(error)) => Err(refused(error.to_string())),
            None => Err(refused("it has ended".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn an_answer_is_a_result_or_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("ctl");
        let listener = UnixListener::bind(&socket).unwrap();
        let daemon = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = [0; 256];
            for answer in [r#"{"id":0,"error":null,"result":"yes\n"}"#, r#"{"id":0,"result":null,"error":"no such"}"#] {
                let length = stream.read(&mut heard).unwrap();
                let asked: serde_json::Value = serde_json::from_slice(&heard[..length]).unwrap();
                assert_eq!((&asked["method"], &asked["params"][0]), (&"x/show".into(), &"-nh".into()));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let mut control = Control::connect(&socket).unwrap();
        assert_eq!(control.ask("x/show", &["-nh"]).unwrap(), "yes\n");
        assert!(control.ask("x/show", &["-nh"]).unwrap_err().to_string().contains("no such"));
        daemon.join().unwrap();
        assert!(control.ask("x/show", &[]).is_err(), "it has ended");
    }
}
