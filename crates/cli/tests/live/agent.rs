//! The agent, live: rounds that are counted, kept within their limits, and a host that is as it was however it ends.

use assert_cmd::cargo::cargo_bin;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testing::{Running, Workspace, cannot_record, wait_for, wait_for_value};

/// `None`, and the reason printed, where nothing can be recorded.
fn place(test: &str) -> Option<Workspace> {
    if let Some(why) = cannot_record() {
        println!("skipped: {test}: {why}");
        return None;
    }
    Some(Workspace::alone())
}

fn agent(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin("kvmscope"));
    command.current_dir(place).env("KVMSCOPE_JOURNAL", place.join("journal")).arg("agent").args(arguments);
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn recordings(place: &Path) -> Vec<String> {
    names(place, "kvmscope-agent-")
}

fn names(place: &Path, prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(place).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    names
}

/// Nothing of an agent is left that began with `pid` among its processes: no instance, no entry of the journal.
fn is_clean(place: &Path) -> bool {
    let journal = std::fs::read_dir(place.join("journal")).into_iter().flatten().flatten();
    !journal.into_iter().any(|entry| entry.path().extension().is_some_and(|end| end == "json"))
}

fn asked(mut stream: impl Read + Write) -> String {
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn value(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Asks again and again until so many rounds are counted.
fn after_rounds(rounds: f64, ask: impl Fn() -> String) -> String {
    wait_for_value(&format!("{rounds} rounds of the agent"), || {
        let text = ask();
        value(&text, "kvmscope_recordings_total").is_some_and(|counted| counted >= rounds).then_some(text)
    })
}

/// What it says first: where it answers.
fn port(agent: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(agent.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let (_, place) = line.trim().split_once("http://").unwrap_or_else(|| panic!("{line}"));
    place.trim_end_matches("/metrics").to_owned()
}

#[test]
fn rounds_are_counted_and_only_the_latest_recordings_stay() {
    let Some(place) = place("agent") else { return };
    let arguments =
        [".", "--seconds", "0.5", "--every", "1s", "--share", "100%", "--keep", "2", "--listen", "127.0.0.1:0"];
    std::fs::create_dir(place.path().join("of-somebody")).unwrap();
    let mut child = agent(place.path(), &arguments).spawn().unwrap();
    let address = port(&mut child);
    let ask = || asked(TcpStream::connect(&address).unwrap());
    let text = after_rounds(3.0, ask);
    assert!(text.contains("application/openmetrics-text") && text.trim_end().ends_with("# EOF"), "{text}");
    let of = |name: &str| value(&text, name).unwrap_or_else(|| panic!("{name}: {text}"));
    assert!(of("kvmscope_recorded_seconds_total") >= 1.0, "{text}");
    assert!(of("kvmscope_agent_cpu_seconds") > 0.0 && of("kvmscope_agent_cpu_share") <= 1.0, "{text}");
    assert_eq!((of("kvmscope_kept_recordings"), of("kvmscope_recordings_failed_total")), (2.0, 0.0));
    assert!(recordings(place.path()).len() <= 3, "two, and the one that is being made");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(is_clean(place.path()) && place.path().join("of-somebody").is_dir());
    for name in recordings(place.path()) {
        let report = Command::new(cargo_bin("kvmscope")).arg("report").arg(place.path().join(&name)).output().unwrap();
        assert!(matches!(report.status.code(), Some(0 | 1)), "{name}: {}", String::from_utf8_lossy(&report.stderr));
    }
}

/// What all samples of a family add up to, by their labels without `state`.
fn sums(text: &str, family: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix(family)?.strip_prefix('{')) {
        let (labels, value) = line.rsplit_once("} ").unwrap_or_else(|| panic!("{line}"));
        let kept: Vec<&str> = labels.split(',').filter(|label| !label.starts_with("state=")).collect();
        *sums.entry(kept.join(",")).or_default() += value.parse::<f64>().unwrap();
    }
    sums
}

/// Between two recordings, or during one: a guest is counted from when it is met, without a hole.
#[test]
fn vcpus_are_counted_all_the_time_and_their_states_add_up() {
    let Some(place) = place("agent, continuous") else { return };
    let arguments = [".", "--every", "1h", "--seconds", "0.2", "--listen", "127.0.0.1:0"];
    let mut child = Running(agent(place.path(), &arguments).spawn().unwrap());
    let address = port(&mut child.0);
    let ask = || asked(TcpStream::connect(&address).unwrap());
    let first = ask();
    assert!(first.trim_end().ends_with("# EOF") && first.contains("kvmscope_mode{mode="), "{first}");
    if first.contains("mode=\"proc\"") {
        println!("skipped: agent, continuous: nothing can be folded here");
        return;
    }
    let mut bench = Command::new(cargo_bin("kvmscope"));
    bench.args(["bench", "exits", "--no-progress", "--launches", "50", "-o"]).arg(place.path().join("bench"));
    let bench = Running(bench.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let text = wait_for_value("a guest that is counted", || {
        let text = ask();
        let observed = sums(&text, "kvmscope_vcpu_observed_seconds_total");
        observed.values().any(|seconds| *seconds > 0.0).then_some(text)
    });
    drop(bench);
    let (observed, states) =
        (sums(&text, "kvmscope_vcpu_observed_seconds_total"), sums(&text, "kvmscope_vcpu_seconds_total"));
    for (vcpu, seconds) in &observed {
        assert!((states[vcpu] - seconds).abs() < 1e-6, "{vcpu}: {seconds} and {}", states[vcpu]);
    }
    let ready = sums(&text, "kvmscope_vcpu_ready_seconds_total");
    assert_eq!(ready.keys().collect::<Vec<_>>(), observed.keys().collect::<Vec<_>>());
    assert!(text.lines().any(|line| line.starts_with("kvmscope_vm_info{vm=")), "{text}");
    // What recordings count has a name of its own.
    let counted = after_rounds(1.0, ask);
    assert!(counted.contains("# TYPE kvmscope_sampled_exits counter"), "{counted}");
    let families = counted.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let mut names: Vec<&str> = families.collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a family is told once");
    drop(child);
    wait_for("the kernel to let go", || fold::loaded_programs().unwrap() == 0);
}

/// What happened before somebody asked is in the recording, whole: the fold beside it counted the same.
#[test]
fn the_last_seconds_are_saved_when_a_line_comes_and_equal_what_was_counted() {
    let Some(place) = place("agent, flight") else { return };
    let arguments = [".", "--every", "1h", "--seconds", "0.2", "--flight", "600s", "--listen", "127.0.0.1:0"];
    let mut child = Running(agent(place.path(), &arguments).spawn().unwrap());
    let address = port(&mut child.0);
    let ask = || asked(TcpStream::connect(&address).unwrap());
    let flights = |text: &str| value(text, "kvmscope_flights_total{by=\"trigger\"}");
    let first = after_rounds(1.0, ask);
    assert_eq!((flights(&first), value(&first, "kvmscope_flights_failed_total")), (Some(0.0), Some(0.0)), "{first}");
    let flight = || names(place.path(), "kvmscope-flight-");
    wait_for("the pipe of the first flight", || {
        flight().first().is_some_and(|name| place.path().join(name).join("trigger").exists())
    });
    let returns = |text: &str| sums(text, "kvmscope_userspace_exits_total").values().sum::<f64>();
    // The guest of the self-check was before the flight.
    let before = returns(&ask());
    let mut bench = Command::new(cargo_bin("kvmscope"));
    bench.args(["bench", "exits", "--no-progress", "--launches", "5", "-o"]).arg(place.path().join("bench"));
    assert!(bench.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok());
    let observed = |text: &str| value(text, "kvmscope_observed_seconds_total").unwrap();
    let ended = observed(&ask());
    let counted = wait_for_value("a look after the end of the guests", || {
        let text = ask();
        (observed(&text) > ended).then(|| returns(&text) - before)
    });
    std::fs::write(place.path().join("trigger"), "ready above 10 %\n").unwrap();
    let text = wait_for_value("a flight that is saved", || {
        let text = ask();
        flights(&text).filter(|saved| *saved == 1.0).map(|_| text)
    });
    assert!(value(&text, "kvmscope_flight_cpu_seconds_total").unwrap() > 0.0, "{text}");
    let saved = flight()[0].clone();
    let report =
        Command::new(cargo_bin("kvmscope")).args(["report", "--json", &saved]).current_dir(place.path()).output();
    let answer = String::from_utf8(report.unwrap().stdout).unwrap();
    assert!(
        std::fs::read_to_string(place.path().join(&saved).join("recording.json")).unwrap().contains("ready above 10 %")
    );
    if !text.contains("mode=\"proc\"") {
        assert!(counted > 0.0, "{text}");
        assert!(answer.contains(&format!("\"kvm_userspace_exit\",{counted}]")), "{counted}: {answer}");
    }
    assert!(Command::new("kill").args(["-TERM", &child.0.id().to_string()]).status().unwrap().success());
    assert!(child.0.wait().unwrap().success());
    assert!(is_clean(place.path()) && flight() == [saved], "what nobody froze leaves nothing");
}

#[test]
fn it_waits_until_its_share_is_held() {
    let Some(place) = place("agent") else { return };
    let socket = place.path().join("metrics.sock");
    let path = socket.display().to_string();
    let mut child =
        agent(place.path(), &[".", "--seconds", "0.2", "--every", "1s", "--share", "0.1%", "--socket", &path])
            .spawn()
            .unwrap();
    let ask = || UnixStream::connect(&socket).map(asked).unwrap_or_default();
    let text = after_rounds(1.0, ask);
    let of = |name: &str| value(&text, name).unwrap_or_else(|| panic!("{name}: {text}"));
    // Starting a recorder takes far more than a millisecond of CPU time.
    assert!(of("kvmscope_agent_interval_seconds") > 1.0, "{text}");
    let interval = of("kvmscope_agent_cpu_seconds") / 0.001;
    assert!(
        (of("kvmscope_agent_interval_seconds") / interval - 1.0).abs() < 1e-6
            && of("kvmscope_agent_cpu_share") <= 0.001 + 1e-9,
        "{text}"
    );
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(!socket.exists());
}

#[test]
fn a_killed_agent_takes_its_recorder_with_it() {
    let Some(place) = place("agent") else { return };
    let mut child = agent(place.path(), &[".", "--seconds", "600", "--listen", "127.0.0.1:0"]).spawn().unwrap();
    let own = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    wait_for("an entry in the journal", || {
        assert!(child.try_wait().unwrap().is_none(), "the agent ended early");
        !is_clean(place.path())
    });
    let recorder: u32 = own(child.id()).trim().parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of the recorder", || !Path::new(&format!("/proc/{recorder}")).exists() || is_zombie(recorder));
    assert!(is_clean(place.path()), "the recorder put all back");
}

#[test]
fn a_full_disk_costs_recordings_and_not_the_agent() {
    let Some(place) = place("agent") else { return };
    // A disk of its own, in a mount namespace that ends with the agent.
    let directory = place.path().join("full");
    std::fs::create_dir(&directory).unwrap();
    let script = "mount -t tmpfs -o size=256k none \"$0\" && mkdir \"$0/kvmscope-agent-20260101T000000Z\" && \
        dd if=/dev/zero of=\"$0/kvmscope-agent-20260101T000000Z/old\" bs=1k count=160 status=none && \
        \"$1\" agent \"$0\" --seconds 0.3 --every 1s --share 100% --rounds 2 --listen 127.0.0.1:0; \
        status=$?; ls \"$0\"; exit $status";
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(&directory).arg(cargo_bin("kvmscope"));
    shell.env("KVMSCOPE_JOURNAL", place.path().join("journal"));
    let output = shell.output().unwrap();
    let (said, left) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("No space left on device") && said.contains("the oldest recording was removed"), "{said}");
    assert!(!left.contains("kvmscope-agent-20260101T000000Z"), "what is older has made room: {left}");
    assert!(is_clean(place.path()), "the host is as it was: {said}");
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, behind)| behind.starts_with('Z'))
}

#[test]
fn what_cannot_be_is_said_before_anything_is_recorded() {
    let Some(place) = place("agent") else { return };
    let said = |arguments: &[&str]| {
        let output = agent(place.path(), arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, text) = said(&[".", "--listen", "0.0.0.0:9476"]);
    assert!(status == Some(1) && text.contains("can be reached from other machines"), "{text}");
    let (status, text) = said(&[".", "--share", "0%"]);
    assert!(status == Some(2) && text.contains("more than 0%"), "{text}");
    let (status, text) = said(&[".", "--share", "1"]);
    assert!(status == Some(2) && text.contains("1% or 0.5%"), "{text}");
    std::fs::write(place.path().join("file"), "").unwrap();
    let (status, text) = said(&["file/below"]);
    assert!(status == Some(1) && text.contains("file/below"), "{text}");
    assert!(recordings(place.path()).is_empty());
}
