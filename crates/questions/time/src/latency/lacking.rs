//! Results of whose samples nothing is said: what is missing, and what to type so that it is there next time.

use base::Unknown;
use base::number::list;
use base::shell::quoted;
use facts::Case;
use facts::attribution::{Lacking, Unattributed};

/// What is missing of each file.
pub(super) fn unknown(case: &Case) -> Vec<Unknown> {
    let of = |one: &Unattributed| Unknown {
        what: "samples_not_attributed".into(),
        amount: None,
        unit: String::new(),
        text: sentence(one, &case.input().recording.as_named(&one.path)),
    };
    case.unattributed().iter().map(of).collect()
}

fn sentence(one: &Unattributed, file: &str) -> String {
    let (machine, below) = (&one.machine, one.below.as_deref().unwrap_or("the machine below"));
    let nothing = format!("Nothing shows who took the time of the samples of {file}:");
    match &one.lacking {
        Lacking::Trace => format!("{nothing} the recording has no trace of {machine}, nor one of vCPUs on {below}."),
        Lacking::Threads => {
            format!("{nothing} the trace of {machine} has no switches of tasks, or none of the program's threads.")
        }
        Lacking::Times => format!("{nothing} the file does not say when they ended."),
        Lacking::Pairs => format!(
            "{nothing} nothing relates CLOCK_MONOTONIC of {machine}, which their times are of, to its time-stamp counter."
        ),
        Lacking::HostClock(name) => {
            format!("{nothing} the trace of {below} has clock {name}, which nothing relates to the time-stamp counter.")
        }
        Lacking::Vm(names) => {
            format!("{nothing} the trace of {below} has {}, and nothing says which {machine} is.", vms(names))
        }
        Lacking::Vcpu(Some(cpu)) => {
            format!("{nothing} the trace of {below} shows no vCPU that is CPU {cpu} of {machine}.")
        }
        Lacking::Vcpu(None) => format!("{nothing} the file does not say on which CPU of {machine} they were taken."),
        Lacking::Offset => {
            format!(
                "{nothing} nothing says by how much the time-stamp counter of {machine} differs from that of {below}."
            )
        }
    }
}

/// `the VMs a, b and c`.
fn vms(names: &[String]) -> String {
    if names.is_empty() { "no named VM".to_owned() } else { format!("the VMs {}", list(names)) }
}

/// The commands that record what is missing, each once.
pub(super) fn next(case: &Case) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for one in case.unattributed() {
        let file = case.input().recording.as_named(&one.path);
        for line in commands(one, &quoted(&file)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

fn commands(one: &Unattributed, file: &str) -> Vec<String> {
    let report = |part: &str| format!("kvmscope report HOST {part}   # HOST: what was recorded below");
    let level = one.machine.split('-').next().unwrap_or_default();
    match &one.lacking {
        Lacking::Pairs => vec![
            "kvmscope clocks >> clocks.txt   # in the guest, once before the test and once after it".to_owned(),
            report(&format!("--part {level}={file} --part {level}=clocks.txt")),
        ],
        Lacking::HostClock(_) => {
            vec!["kvmscope record -o HOST   # on the host: its clock is x86-tsc; of trace-cmd: -C x86-tsc".to_owned()]
        }
        Lacking::Offset => vec![
            "mount -t debugfs none /sys/kernel/debug; kvmscope record -o HOST   # on the host, as root, while the guest runs"
                .to_owned(),
        ],
        Lacking::Times => vec![
            "jitterdebugger -s -o run -i 1000 -D 60s; jittersamples run   # run/samples.csv has the time of each sample"
                .to_owned(),
        ],
        Lacking::Vm(names) => {
            names.iter().map(|name| report(&format!("--part {level}:{}={file}", quoted(name)))).collect()
        }
        Lacking::Trace | Lacking::Threads | Lacking::Vcpu(_) => Vec::new(),
    }
}
