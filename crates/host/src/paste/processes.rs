//! `ps` with any columns, and `pidstat -t`: threads, the CPUs that they were last seen on, what they ran.
//!
//! Columns are known by the header. `%CPU` of ps(1) is CPU time over the time since the thread began, an average of its whole
//! life, and so is the first report of pidstat(1); later reports are of the interval. `%wait` of pidstat is the share of the
//! time that a thread was runnable and did not run.

use super::{Pasted, Text};
use crate::machine::{Screen, TopRow};

/// Columns of ps that top has not; one of them tells the two apart.
const OF_PS: &[&str] = &["TID", "LWP", "SPID", "PSR", "CMD", "STAT", "PPID", "CLS", "TTY", "WCHAN", "NLWP", "TGID"];

/// Columns whose values hold blanks, so that the columns behind them have no fixed place.
const WITH_BLANKS: &[&str] = &["LSTART", "STARTED"];

/// Where the columns stand.
struct Columns {
    width: usize,
    process: usize,
    thread: Option<usize>,
    processor: Option<usize>,
    share: Option<usize>,
    wait: Option<usize>,
    state: Option<usize>,
    command: usize,
}

impl Columns {
    fn of(header: &str) -> Option<Self> {
        let words: Vec<&str> = header.split_whitespace().collect();
        let column = |names: &[&str]| words.iter().position(|word| names.contains(word));
        let known = column(OF_PS).is_some() && column(WITH_BLANKS).is_none() && column(&["TIME+"]).is_none();
        // The command stands last: it holds blanks.
        let command = column(&["COMMAND", "CMD", "Command"]).filter(|at| at + 1 == words.len() && known)?;
        Some(Self {
            width: words.len(),
            process: column(&["PID", "TGID"]).or_else(|| column(&["TID", "LWP", "SPID"]))?,
            thread: column(&["TID", "LWP", "SPID"]),
            processor: column(&["PSR", "CPU", "P"]),
            share: column(&["%CPU"]),
            wait: column(&["%wait"]),
            state: column(&["S", "STAT"]),
            command,
        })
    }
}

/// The header and the rows below it, until a line that is none.
pub(super) fn rows(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(columns) = Columns::of(text.at(at)) else { return 0 };
    let is_pidstat = columns.wait.is_some() || text.at(at).ends_with("Command");
    // Of pidstat the first report is an average since each thread began.
    let is_later = std::mem::replace(&mut pasted.met_header, true);
    let average = !is_pidstat || !(is_later || text.at(at).starts_with("Average"));
    let mut screen = Screen { place: text.place(at), rows: Vec::new() };
    let (mut end, mut process) = (at + 1, None);
    while end < text.lines.len() {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        if cells.len() < columns.width {
            break;
        }
        let id = |column: Option<usize>| cells.get(column?)?.parse::<i32>().ok();
        // A row of a thread may leave out its process, a row of a process has no thread.
        process = id(Some(columns.process)).or(process);
        end += 1;
        if !pasted.may_take_row() {
            continue;
        }
        if let Some(tid) = id(columns.thread).or(id(Some(columns.process))) {
            let share = |column: Option<usize>| {
                let percent: f64 = cells.get(column?)?.replace(',', ".").parse().ok()?;
                (0.0..1e6).contains(&percent).then_some(percent / 100.0)
            };
            screen.rows.push(TopRow {
                place: text.place(end - 1),
                pid: tid,
                process: process.filter(|_| columns.thread.is_some()),
                state: columns.state.and_then(|column| cells[column].chars().next()).unwrap_or('?'),
                share: share(columns.share),
                average,
                wait: share(columns.wait),
                time_cs: None,
                command: cells[columns.command..].join(" ").trim_start_matches("|__").to_owned(),
                last_cpu: columns.processor.and_then(|column| cells[column].parse().ok()),
            });
        }
    }
    if end == at + 1 {
        return 0;
    }
    pasted.machine.screens.push(screen);
    end - at
}

#[cfg(test)]
mod tests {
    use crate::machine::Role;
    use crate::paste::read;

    #[test]
    fn threads_of_ps_belong_to_their_processes() {
        let text = "$ ps -eLo pid,tid,psr,pcpu,args\n    PID     TID PSR %CPU COMMAND\n      1       1   0  0.0 /sbin/init\n\
                    \x20    10      10   4 12.0 /usr/bin/qemu-system-x86_64 -name guest=web,debug-threads=on\n\n\
                    $ ps -eLo pid,tid,psr,pcpu,comm\n    PID     TID PSR %CPU COMMAND\n     10      10   4  1.0 qemu-system-x86\n\
                    \x20    10      11   2 99.0 CPU 0/KVM\n     10      12   3 98.0 CPU 1/KVM\n     13      13   2 30.0 vhost-10\n\
                    \x20    20      21   5 99.9 pmd-c05/id:8\n     30      31   6 50.0 CPU 0/KVM\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let roles: Vec<_> =
            machine.threads.iter().map(|thread| (thread.vm.as_deref(), thread.role, thread.tid)).collect();
        assert_eq!(
            roles,
            [
                (Some("process-30"), Role::Vcpu(0), Some(31)),
                (Some("process-30"), Role::Emulator, Some(30)),
                (Some("web"), Role::Vcpu(0), Some(11)),
                (Some("web"), Role::Vcpu(1), Some(12)),
                (Some("web"), Role::Emulator, Some(10)),
                (Some("web"), Role::Vhost, Some(13)),
                (None, Role::Pmd, Some(21)),
            ]
        );
        let vcpu = &machine.threads[2];
        assert_eq!(vcpu.last_cpu.as_ref().unwrap().value, 2);
        let run = vcpu.run_share.as_ref().unwrap();
        assert_eq!((run.value, run.place.as_str()), (0.99, "t:9, an average since it began"));
    }

    #[test]
    fn pidstat_tells_waiting() {
        let text = "Linux 6.1.0 (host) 11/22/26 _x86_64_ (8 CPU)\n\n\
            09:00:01      UID      TGID       TID    %usr %system  %guest   %wait    %CPU   CPU  Command\n\
            09:00:01      107        10         -    0.10    0.20    9.00    0.00    9.30     2  qemu-kvm\n\n\
            09:00:02      UID      TGID       TID    %usr %system  %guest   %wait    %CPU   CPU  Command\n\
            09:00:03      107        10         -    1.00    2.00   90.00    0.00   93.00     2  qemu-kvm\n\
            09:00:03      107         -        11    1.00    2.00   90.00    5.00   93.00     2  |__CPU 0/KVM\n\
            09:00:03      107         -        12    0.00   10.00    0.00   40.00   10.00     2  |__vhost-10\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let vhost = machine.threads.iter().find(|thread| thread.role == Role::Vhost).unwrap();
        assert_eq!((vhost.run_share.as_ref().unwrap().value, vhost.wait_share.as_ref().unwrap().value), (0.1, 0.4));
        assert_eq!((vhost.vm.as_deref(), vhost.tid), (Some("process-10"), Some(12)));
    }
}
