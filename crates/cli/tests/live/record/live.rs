//! Does `record --live` tell while it records what the recording will hold? Live, on this machine's tracefs.

use super::{kvmscope, place};
use base::gauges::{Gauges, Sample};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use testing::wait_for;
use trace::lane::Reading;
use trace::replay::{Event, Listener, replay};
use trace::request::Request;

fn record(place: &Path, more: &[&str]) -> Command {
    let mut command = kvmscope(place);
    command
        .args(["record", "-o", "web", "--live", "--live-every", "0.3", "--no-snapshot", "--no-self-check"])
        .args(more);
    command
}

#[test]
fn samples_that_were_taken_meanwhile_count_what_the_recording_holds() {
    let Some(place) = place("live") else { return };
    let place = place.path();
    let guest = AtWork::guest();
    let mut recorder = record(place, &["--clock", "mono"]).spawn().unwrap();
    wait_for_samples(place, 3);
    interrupt(&recorder);
    assert!(recorder.wait().unwrap().success());
    let gauges = Gauges::<Sample>::read(&place.join("web")).unwrap();
    assert!(gauges.ended, "{gauges:?}");
    let last = gauges.samples.back().unwrap();
    if gauges.samples.iter().all(|sample| sample.seen_share == 1.0 && sample.late_bytes == 0) {
        let rate = |sample: &Sample| sample.events_per_second * (sample.to_ns - sample.from_ns) as f64 / 1e9;
        let sampled: f64 = gauges.samples.iter().map(rate).sum();
        let held = before(&place.join("web/L0/trace.dat"), last.to_ns);
        assert!((sampled - held as f64).abs() < 0.5, "{sampled} of {held} events");
    }
    assert_eq!(gauges.samples[0].from_ns, 0);
    assert!(gauges.samples.iter().zip(gauges.samples.iter().skip(1)).all(|(one, next)| one.to_ns == next.from_ns));
    if guest.is_some_and(AtWork::ends_well) {
        // On a busy machine the guest may sleep through one sample.
        let mut vms = gauges.samples.iter().flat_map(|sample| &sample.vms);
        assert!(vms.any(|vm| vm.userspace_exits_per_second > Some(0.0)), "{gauges:?}");
        let report = kvmscope(place).args(["report", "--json", "web"]).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        let exits = report["sections"][0]["tables"]["exits"]["rows"].as_array().unwrap();
        assert_eq!(exits.is_empty(), last.exits_per_second.is_none(), "what never fires is unknown");
    }
}

/// Waits until so many samples are there.
fn wait_for_samples(place: &Path, samples: usize) {
    let there = || Gauges::<Sample>::read(&place.join("web")).is_ok_and(|gauges| gauges.samples.len() >= samples);
    wait_for(&format!("{samples} samples"), there);
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// A test guest that works until it is told to end.
pub(super) struct AtWork {
    enough: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl AtWork {
    /// `None`, and the reason printed, where none can run.
    fn guest() -> Option<Self> {
        Self::guest_on(None, 1_000)
    }

    /// The same on one CPU, which leaves its guest so often before it begins anew.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn guest_on(cpu: Option<u32>, rounds: u32) -> Option<Self> {
        use lab::guest::{Guest, open, programs};
        let kvm = open(Path::new("/dev/kvm")).inspect_err(|error| println!("skipped: guest: {error}")).ok()?;
        let enough = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&enough);
        let thread = std::thread::spawn(move || {
            if let Some(cpu) = cpu {
                lab::setting::thread::set_affinity(lab::setting::thread::own(), &base::CpuSet::one(cpu)).unwrap();
            }
            while !over.load(Ordering::Relaxed) {
                let program = programs::named("port-out").unwrap();
                Guest::new(&kvm).unwrap().run(program, rounds, Duration::from_secs(60)).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Some(Self { enough, thread })
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn guest_on(_: Option<u32>, _: u32) -> Option<Self> {
        println!("skipped: guest: the test guests are x86 code");
        None
    }

    pub(super) fn ends_well(self) -> bool {
        self.enough.store(true, Ordering::Relaxed);
        self.thread.join().is_ok()
    }
}

/// Events within the first `length_ns` of a trace.
fn before(path: &Path, length_ns: u64) -> u64 {
    struct Before(u64, u64, u64);
    impl Listener for Before {
        fn start(&mut self, origin_ns: u64) {
            self.1 = origin_ns + self.0;
        }
        fn event(&mut self, event: &Event<'_>) {
            self.2 += u64::from(!event.is_loss() && event.time_ns < self.1);
        }
    }
    let trace = trace::open(path).unwrap();
    let request = Request::everything(trace.facts());
    let mut before = Before(length_ns, 0, 0);
    replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut before);
    before.2
}

#[test]
fn a_recorder_that_was_killed_is_known_by_the_age_of_its_file() {
    let Some(place) = place("live, killed") else { return };
    let place = place.path();
    let mut recorder = record(place, &[]).spawn().unwrap();
    wait_for_samples(place, 1);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert!(kvmscope(place).arg("undo").status().unwrap().success());
    let gauges = Gauges::<Sample>::read(&place.join("web")).unwrap();
    assert!(!gauges.ended && gauges.is_live(Duration::ZERO) && !gauges.is_live(Duration::from_secs(60)));
}

/// Two samples come over the network while they are taken, and then the end.
#[cfg(feature = "full")]
#[test]
fn a_server_tells_the_samples_while_they_are_taken() {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpStream;
    use std::process::Stdio;

    let Some(place) = place("live, served") else { return };
    let place = place.path();
    let guest = AtWork::guest();
    let mut recorder = record(place, &[]).stdout(Stdio::null()).spawn().unwrap();
    let mut server = kvmscope(place).args(["serve", "--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let address = url.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        BufReader::new(stream).lines().map_while(Result::ok)
    };
    wait_for_samples(place, 1);
    assert!(ask("/api/recordings").any(|line| line.contains("\"live\":true")));
    let mut lines = ask("/api/live").filter_map(|line| Some(line.strip_prefix("data: ")?.to_owned()));
    assert!(lines.next().unwrap().contains("\"recording\":\"web\""));
    let samples: Vec<Sample> = lines.by_ref().take(2).map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert!(recorder.try_wait().unwrap().is_none(), "it still records");
    assert_eq!(samples[0].to_ns, samples[1].from_ns);
    interrupt(&recorder);
    let last = lines.last().unwrap();
    assert_eq!(last, "{\"reason\":\"ended\"}");
    assert!(recorder.wait().unwrap().success());
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(guest.is_none_or(AtWork::ends_well));
}
