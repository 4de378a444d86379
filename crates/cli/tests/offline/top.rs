//! `kvmscope top` where somebody sits before it, and where nobody does. /proc alone is read, which needs no rights.

use crate::program::fixture_named;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

const ENTERED: &str = "\x1b[?1049h";
const LEFT: &str = "\x1b[?1049l";

/// `top` on a terminal of its own (script(1)), which says its process first.
struct OnTerminal {
    script: std::process::Child,
    pieces: Receiver<String>,
    said: String,
}

impl OnTerminal {
    fn of(terminal: &str) -> Self {
        let top = concat!("exec ", env!("CARGO_BIN_EXE_kvmscope"), " top --proc-only -d 0.2");
        let mut script = Command::new("script")
            .args(["-qefc", &format!("echo pid $$; {top}"), "/dev/null"])
            .env("TERM", terminal)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut out, (sender, pieces)) = (script.stdout.take().unwrap(), channel());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = out.read(&mut buffer) {
                let _ = sender.send(String::from_utf8_lossy(&buffer[..length]).into_owned());
            }
        });
        Self { script, pieces, said: String::new() }
    }

    fn until(&mut self, words: &str) {
        while !self.said.contains(words) {
            match self.pieces.recv() {
                Ok(piece) => self.said.push_str(&piece),
                Err(_) => panic!("it ended without {words:?}: {:?}", self.said),
            }
        }
    }

    /// Its exit status, once nothing more comes.
    fn ended(mut self) -> (Option<i32>, String) {
        self.said.extend(self.pieces.iter());
        (self.script.wait().unwrap().code(), self.said)
    }

    fn pid(&self) -> String {
        let pid = self.said.split("pid ").nth(1).unwrap();
        pid.chars().take_while(char::is_ascii_digit).collect()
    }
}

#[test]
fn a_terminal_is_left_as_it_was_by_q_and_by_a_signal() {
    for is_signal in [false, true] {
        let mut top = OnTerminal::of("xterm");
        top.until("? help  q quit  /proc only");
        if is_signal {
            assert!(Command::new("kill").arg(top.pid()).status().unwrap().success());
        } else {
            top.script.stdin.as_mut().unwrap().write_all(b"3q").unwrap();
        }
        let (status, said) = top.ended();
        assert_eq!(status, Some(if is_signal { 130 } else { 0 }), "{said:?}");
        let (entered, left) = (said.find(ENTERED).unwrap(), said.find(LEFT).unwrap());
        assert!(entered < left && said[left..].find(ENTERED).is_none() && said.contains("\x1b[?25h"), "{said:?}");
        assert!(is_signal || said.contains("[3 reasons]"), "{said:?}");
    }
}

#[test]
fn a_terminal_that_can_do_nothing_gets_blocks_of_text() {
    let mut top = OnTerminal::of("dumb");
    top.until("/proc only (asked for)");
    top.until("own cost: ");
    assert!(Command::new("kill").arg(top.pid()).status().unwrap().success());
    let (status, said) = top.ended();
    assert!(status == Some(130) && !said.contains('\x1b'), "{status:?} {said:?}");
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_kvmscope")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The numbers of each row of a table of section `flow`, by columns.
fn column(answer: &serde_json::Value, table: &str, names: &[&str]) -> Vec<u64> {
    let sections = answer["sections"].as_array().unwrap();
    let table = &sections.iter().find(|section| section["id"] == "flow").unwrap()["tables"][table];
    let columns: Vec<&str> =
        table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    let at: Vec<usize> = names.iter().map(|name| columns.iter().position(|column| column == name).unwrap()).collect();
    let rows = table["rows"].as_array().unwrap();
    rows.iter().map(|row| at.iter().map(|at| row[*at].as_u64().unwrap_or(0)).sum()).collect()
}

#[test]
fn a_recording_is_replayed_with_the_numbers_of_its_report() {
    let path = &fixture_named("nested-vmx-shadow-off-hog");
    let top = json(&["top", path, "--once", "--json", "-d", "0.2", "--at", "0.1"]);
    let report = json(&["report", path, "--json", "--no-progress", "--from", "0.1", "--to", "0.3"]);
    let guest = ["guest_l1_ns", "guest_l2_ns", "guest_l3_ns", "guest_unknown_level_ns"];
    for (of_top, of_report) in [
        (&["wall_ns"][..], &["wall_ns"][..]),
        (&["guest_l1_ns"], &guest),
        (&["preempted_ns"], &["preempted_ns"]),
        (&["unknown_ns"], &["unknown_ns"]),
        (&["exits"], &["exits"]),
    ] {
        let numbers = column(&top, "vcpus", of_top);
        assert_eq!(numbers, column(&report, "vcpus", of_report), "{of_top:?}");
    }
    assert_eq!(column(&top, "vcpus", &["wall_ns"]), [200_000_000]);
    assert_eq!(top["recording"], report["recording"], "also by whom it is emulated");
    assert_eq!(column(&top, "preemptors", &["total_ns"]), column(&report, "preemptors", &["total_ns"]));
    // All of it, interval by interval, to its end.
    let output =
        Command::new(env!("CARGO_BIN_EXE_kvmscope")).args(["top", path, "--batch", "-d", "0.25"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.matches(" of 0.638 s").count(), 3, "{said}");
    assert!(
        said.contains("EMULATED by Bochs") && said.contains("report --from 0.250000000 --to 0.500000000"),
        "{said}"
    );
    for (arguments, reason) in [
        (&["top", path, "--once", "--at", "7"][..], "has nothing from 7.0 s on"),
        (&["top", path, "--once", "--vm", "web"], "no VM web; there is nestv-98"),
        (&["top", path, "--measure-cost"], "cannot be used with"),
        (&["top", "--at", "1"], "required"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_kvmscope")).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(reason), "{arguments:?}: {said}");
    }
}
