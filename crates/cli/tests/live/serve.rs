//! `kvmscope serve`: it prints where it listens and ends on Ctrl-C; the slim program says how to get it.

use assert_cmd::cargo::cargo_bin;
use std::process::Command;

#[cfg(not(feature = "full"))]
#[test]
fn the_slim_program_says_which_build_has_the_server() {
    let output = Command::new(cargo_bin("kvmscope")).args(["serve", "fixtures"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("make full"));
}

#[cfg(feature = "full")]
#[test]
fn it_prints_its_address_and_ends_on_signals() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::{BufRead, BufReader};
    use std::net::TcpStream;
    use std::process::Stdio;

    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        if signal == Signal::HUP && testing::was_hangup_ignored() {
            continue;
        }
        let mut command = Command::new(cargo_bin("kvmscope"));
        command.args(["serve", concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures"), "--port", "0"]);
        let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let address = url.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        // A connection that stays open must not keep the server.
        let idle = TcpStream::connect(&address).unwrap();
        kill_process(Pid::from_child(&server), signal).unwrap();
        assert_eq!(server.wait().unwrap().code(), Some(0), "{signal:?}");
        drop(idle);
    }
}
