//! `kvmscope top` where somebody sits before it, and where nobody does. /proc alone is read, which needs no rights.

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
