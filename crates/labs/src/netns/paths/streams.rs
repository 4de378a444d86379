//! TCP streams of messages of one size, by iperf3: what a socket's user sees, and no rate of frames.

use super::bed::{Bed, SINK_ADDRESS};
use super::check;
use base::datapath::StreamRun;
use lab::Error;
use lab::program::{Program, tie};
use rustix::process::Signal;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long a server may take to listen, and how often we look.
const LISTENS: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Where it listens (iperf3(1), `-p`).
const PORT: u16 = 5201;
/// How long a client may take beyond its run.
const SLACK: Duration = Duration::from_secs(20);
const PACKAGE: &str = "iperf3";

/// One run, in whole seconds, because that is what iperf3 takes.
pub(super) fn run(
    bed: &Bed<'_>,
    message_bytes: u32,
    repeat: u32,
    length: Duration,
    stop: &AtomicBool,
) -> Result<StreamRun, Error> {
    let ip = Program::new("ip", "iproute2");
    Program::new("iperf3", PACKAGE).run(&["--version"], SLACK)?;
    let within = |namespace: &str, cpu: u32, words: &[&str]| -> Command {
        let cpu = cpu.to_string();
        let mut command =
            ip.command(&[&["netns", "exec", namespace, "taskset", "--cpu-list", &cpu, "iperf3"], words].concat());
        tie(&mut command, Signal::KILL);
        command
    };
    let mut server = ip.start(within(&bed.sink, bed.cpus.chain, &["--server", "--one-off", "--bind", SINK_ADDRESS]))?;
    let listening = until_it_listens(server.id(), stop);
    if listening.is_err() {
        let _ = server.kill();
        let _ = server.wait();
    }
    listening?;
    let (message, seconds) = (message_bytes.to_string(), length.as_secs().max(1).to_string());
    let words = ["--client", SINK_ADDRESS, "--length", &message, "--time", &seconds, "--json"];
    let client = within(&bed.source, bed.cpus.sender, &words);
    let ran = ip.finish(client, length + SLACK);
    // The server ends with its client; one whose client failed would wait for another.
    let _ = server.kill();
    let _ = server.wait();
    check(stop)?;
    let counted = counted(&ran?.stdout).map_err(|why| Error::refused("iperf3's client", why))?;
    let Counted { gbps, sender_cpu_s_per_gb, receiver_cpu_s_per_gb, retransmits } = counted;
    let (path, vnfs) = (bed.path.name().to_owned(), bed.vnfs);
    Ok(StreamRun { path, vnfs, message_bytes, repeat, gbps, sender_cpu_s_per_gb, receiver_cpu_s_per_gb, retransmits })
}

/// Waits until the server has its socket: in its own namespace, which its `/proc` shows.
fn until_it_listens(pid: u32, stop: &AtomicBool) -> Result<(), Error> {
    let table = format!("/proc/{pid}/net/tcp");
    let address: Ipv4Addr = SINK_ADDRESS.parse().map_err(|_| Error::Malformed(SINK_ADDRESS.to_owned()))?;
    let until = Instant::now() + LISTENS;
    while Instant::now() < until {
        check(stop)?;
        if std::fs::read_to_string(&table).is_ok_and(|sockets| listens(&sockets, address, PORT)) {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Err(Error::TimedOut(format!("iperf3's server did not listen within {} s", LISTENS.as_secs())))
}

/// Whether a table of sockets (`/proc/net/tcp`, net/ipv4/tcp_ipv4.c, `get_tcp4_sock`, Linux 6.1) has one that listens there: the address
/// is the number that lies in memory, and state 0A is TCP_LISTEN.
fn listens(sockets: &str, address: Ipv4Addr, port: u16) -> bool {
    let there = format!("{:08X}:{port:04X}", u32::from_ne_bytes(address.octets()));
    sockets.lines().skip(1).any(|socket| {
        let mut columns = socket.split_whitespace().skip(1);
        columns.next() == Some(there.as_str()) && columns.nth(1) == Some("0A")
    })
}

#[derive(Debug, PartialEq)]
struct Counted {
    gbps: f64,
    sender_cpu_s_per_gb: f64,
    receiver_cpu_s_per_gb: f64,
    retransmits: u64,
}

/// What a client's JSON says (iperf3(1), `-J`).
fn counted(json: &str) -> Result<Counted, String> {
    let told: Value = serde_json::from_str(json).map_err(|error| format!("its output is not JSON ({error})"))?;
    if let Some(why) = told["error"].as_str() {
        return Err(why.to_owned());
    }
    let end = &told["end"];
    let number = |value: &Value, what: &str| value.as_f64().ok_or_else(|| format!("its output does not show {what}"));
    let received = &end["sum_received"];
    let bytes = number(&received["bytes"], "what was received")?;
    let seconds = number(&end["sum_sent"]["seconds"], "how long it sent")?;
    let each_gb = |percent: f64| if bytes > 0.0 { percent / 100.0 * seconds / (bytes / 1e9) } else { 0.0 };
    let cpu = &end["cpu_utilization_percent"];
    Ok(Counted {
        gbps: number(&received["bits_per_second"], "what was received")? / 1e9,
        sender_cpu_s_per_gb: each_gb(number(&cpu["host_total"], "what the sender computed")?),
        receiver_cpu_s_per_gb: each_gb(number(&cpu["remote_total"], "what the receiver computed")?),
        retransmits: end["sum_sent"]["retransmits"].as_u64().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_listens_when_the_kernel_says_so_at_its_own_address() {
        let listener = std::net::TcpListener::bind("127.0.0.77:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let now = |address: &str| {
            listens(&std::fs::read_to_string("/proc/self/net/tcp").unwrap(), address.parse().unwrap(), port)
        };
        assert!(now("127.0.0.77") && !now("127.0.0.78"));
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        drop(listener);
        assert!(!now("127.0.0.77"), "a connection of that port is no listener: {client:?}");
    }

    #[test]
    fn a_stream_is_what_the_receiver_read_and_what_both_computed() {
        // The members that count, as iperf 3.12 writes them.
        let told = r#"{"start":{},"end":{"sum_sent":{"seconds":2.0,"bytes":510000000,"retransmits":7},
            "sum_received":{"seconds":2.01,"bytes":500000000,"bits_per_second":1990049751.2},
            "cpu_utilization_percent":{"host_total":50.0,"host_user":1.0,"remote_total":25.0}}}"#;
        let Counted { gbps, sender_cpu_s_per_gb, receiver_cpu_s_per_gb, retransmits } = counted(told).unwrap();
        assert_eq!((sender_cpu_s_per_gb, receiver_cpu_s_per_gb, retransmits), (2.0, 1.0, 7));
        assert!((gbps - 1.99).abs() < 0.001, "{gbps}");
        assert_eq!(counted(r#"{"error":"unable to connect"}"#), Err("unable to connect".to_owned()));
        assert!(counted("{}").is_err_and(|why| why.contains("received")));
        assert!(counted("").is_err_and(|why| why.contains("is not JSON")));
    }
}
