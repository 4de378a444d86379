//! `ps` with any columns, and `pidstat -t`: threads, the CPUs that they were last seen on, what they ran.
//!
//! Columns are known by the header, or, where `grep` or `ps -o NAME=` left none, by what the command at the prompt above asked for. `%CPU` of ps(1) is CPU time over the time since the thread began, an average of its whole
//! life, and so is a report of pidstat(1) without an interval; others are of the interval. `%wait` of pidstat is the share of the
//! time that a thread was runnable and did not run.

use super::{Pasted, Text, prompt};
use crate::machine::{Screen, TopRow};

/// Columns of ps that top has not; one of them tells the two apart.
const OF_PS: &[&str] = &["TID", "LWP", "SPID", "PSR", "CMD", "STAT", "PPID", "CLS", "TTY", "WCHAN", "NLWP", "TGID"];

/// Columns whose values hold blanks, so that the columns behind them have no fixed place.
const WITH_BLANKS: &[&str] = &["LSTART", "STARTED"];

/// Columns of `ps` without `-o`, by the options that ask for them: ps(1), procps-ng 4.0.
const USUAL: &[(&[&str], &str)] = &[
    (&["aux", "auxw", "auxww", "auxwww", "-aux"], "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND"),
    (&["-ef"], "UID PID PPID C STIME TTY TIME CMD"),
    (&["-eLf", "-efL"], "UID PID PPID LWP C NLWP STIME TTY TIME CMD"),
    (&["-eT", "-T", "-Tp"], "PID SPID TTY TIME CMD"),
    (&["-eL", "-L", "-Lp"], "PID LWP TTY TIME CMD"),
];

/// Where the columns stand. The command has blanks, so that columns behind it are counted from the row's end.
struct Columns {
    width: usize,
    process: Option<usize>,
    thread: Option<usize>,
    processor: Option<usize>,
    share: Option<usize>,
    wait: Option<usize>,
    state: Option<usize>,
    command: usize,
    is_pidstat: bool,
}

impl Columns {
    fn of(header: &str) -> Option<Self> {
        // `pidstat -h` marks its header, so that programs skip it.
        let words: Vec<&str> = header.trim_start_matches('#').split_whitespace().collect();
        let column = |names: &[&str]| words.iter().position(|word| names.contains(word));
        // Without `-t` pidstat has processes alone.
        let is_pidstat = column(&["UID"]).is_some() && column(&["PID"]).is_some() && words.last() == Some(&"Command");
        let is_ps = column(OF_PS).is_some() && column(WITH_BLANKS).is_none() && column(&["TIME+"]).is_none();
        // `ps -o pid,args`: nothing but columns that it shares with top, and fewer.
        let shared = ["PID", "PPID", "USER", "UID", "%CPU", "%MEM", "COMMAND", "CMD"];
        let is_short =
            words.first() == Some(&"PID") && words.len() > 1 && words.iter().all(|word| shared.contains(word));
        let known = is_ps || is_pidstat || is_short;
        let command = column(&["COMMAND", "CMD", "Command"]).filter(|_| known)?;
        let (process, thread) = (column(&["PID", "TGID"]), column(&["TID", "LWP", "SPID"]));
        process.or(thread)?;
        Some(Self {
            width: words.len(),
            process,
            thread,
            processor: column(&["PSR", "CPU", "P"]),
            share: column(&["%CPU"]),
            wait: column(&["%wait"]),
            state: column(&["S", "STAT"]),
            command,
            is_pidstat: column(&["%wait"]).is_some() || words.last() == Some(&"Command"),
        })
    }

    /// Columns of `ps` whose header was cut off, as `grep` does: those that its command asked for with `-o`, or the usual ones of
    /// its options. Names: ps(1), procps-ng 4.0, standard format specifiers.
    fn asked(command: &str) -> Option<Self> {
        let words = prompt::command(command)?;
        let until = words.iter().position(|word| *word == "|").unwrap_or(words.len());
        let is_ps = words[0].rsplit('/').next() == Some("ps");
        let mut asked: Vec<&str> = Vec::new();
        for pair in words[..until].windows(2).filter(|_| is_ps) {
            // `-eLo LIST`, `-o LIST -o LIST`.
            if pair[0].starts_with('-') && pair[0].ends_with('o') {
                asked.extend(pair[1].split(','));
            }
        }
        let header = |name: &&str| match name.trim_end_matches('=') {
            "pcpu" | "%cpu" => "%CPU".to_owned(),
            "comm" | "args" | "cmd" | "command" | "ucmd" | "ucomm" => "COMMAND".to_owned(),
            "state" => "S".to_owned(),
            name => name.to_ascii_uppercase(),
        };
        let header: Vec<String> = asked.iter().map(header).collect();
        let usual = || USUAL.iter().find(|(options, _)| words[1..until].iter().any(|word| options.contains(word)));
        match usual().filter(|_| is_ps && header.is_empty()) {
            Some((_, usual)) => Self::of(usual),
            None => Self::of(&header.join(" ")),
        }
    }

    /// Columns of `pidstat -t` whose header was cut off, as `grep` does: `09:00:03 107 - 12 0.00 10.00 0.00 40.00 10.00 2 |__name`.
    /// Old versions of sysstat have no `%wait`.
    fn of_pidstat(row: &str) -> Option<Self> {
        let is_time =
            |cell: &str| cell.split(':').count() == 3 && cell.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        let first = row.split_whitespace().next().filter(|cell| is_time(cell) || *cell == "Average:")?;
        let cells: Vec<&str> = row.split_whitespace().collect();
        let user = if first != "Average:" && matches!(cells.get(1), Some(&"AM" | &"PM")) { 2 } else { 1 };
        let is_number = |cell: &str| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
        let is_id = |cell: &&str| is_number(cell) || *cell == "-";
        let is_share = |cell: &&&str| cell.contains(['.', ',']) && cell.replace(',', ".").parse::<f64>().is_ok();
        let (process, thread, shares) = (user + 1, user + 2, user + 3);
        let count = cells.get(shares..)?.iter().take_while(is_share).count();
        let processor = shares + count;
        let command = processor + 1;
        let fits = is_number(cells[user]) && cells[process..shares].iter().all(is_id);
        let known = fits && matches!(count, 4 | 5) && is_id(cells.get(processor)?) && cells.len() > command;
        known.then_some(Self {
            width: command + 1,
            process: Some(process),
            thread: Some(thread),
            processor: Some(processor),
            share: Some(processor - 1),
            wait: (count == 5).then_some(processor - 2),
            state: None,
            command,
            is_pidstat: true,
        })
    }

    /// What a row says; `None` if it is none. `process` is the one that rows of threads may leave out.
    fn row(&self, text: &Text<'_>, line: usize, process: &mut Option<i32>) -> Option<TopRow> {
        let cells: Vec<&str> = text.at(line).split_whitespace().collect();
        let more = cells.len().checked_sub(self.width)?;
        let cell = |column: Option<usize>| {
            let column = column?;
            cells.get(if column > self.command { column + more } else { column }).copied()
        };
        let id = |column: Option<usize>| cell(column)?.parse::<i32>().ok();
        *process = id(self.process).or(*process);
        let share = |column: Option<usize>| {
            let percent: f64 = cell(column)?.replace(',', ".").parse().ok()?;
            (0.0..1e6).contains(&percent).then_some(percent / 100.0)
        };
        Some(TopRow {
            place: text.place(line),
            pid: id(self.thread).or(id(self.process))?,
            // The row of a whole process, which pidstat puts above those of its threads, is of no thread.
            process: process.filter(|_| cell(self.thread).is_some_and(|thread| thread != "-")),
            state: cell(self.state).and_then(|state| state.chars().next()).unwrap_or('?'),
            share: share(self.share),
            average: !self.is_pidstat,
            wait: share(self.wait),
            time_cs: None,
            command: cells[self.command..=self.command + more].join(" ").trim_start_matches("|__").to_owned(),
            last_cpu: cell(self.processor).and_then(|cpu| cpu.parse().ok()),
        })
    }
}

/// The header and the rows below it, until a line that is none; or rows of pidstat, or of a command of ps, without a header.
pub(super) fn rows(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let above = || text.lines[..at].iter().rev().find(|line| !line.trim().is_empty());
    let headless = || Columns::of_pidstat(text.at(at)).or_else(|| Columns::asked(above()?));
    let (columns, first) = match Columns::of(text.at(at)).map(|columns| (columns, at + 1)) {
        Some(known) => known,
        None => match headless() {
            Some(columns) => (columns, at),
            None => return 0,
        },
    };
    let has_header = first > at;
    let mut screen = Screen { place: text.place(at), rows: Vec::new() };
    let (mut end, mut process) = (first, None);
    while end < text.lines.len() {
        let is_row = text.at(end).split_whitespace().count() >= columns.width;
        let is_headless = || match columns.is_pidstat {
            true => Columns::of_pidstat(text.at(end)).is_some(),
            false => columns.row(text, end, &mut None).is_some_and(|row| !row.command.is_empty()),
        };
        // A prompt, or a line of another program, ends the table.
        let row = columns.row(text, end, &mut process);
        if !is_row || row.is_none() || !has_header && !is_headless() {
            break;
        }
        if pasted.may_take_row() {
            screen.rows.extend(row);
        }
        end += 1;
    }
    if end == first {
        return 0;
    }
    if columns.is_pidstat && is_of_whole_lives(text, at, first, end) {
        screen.rows.iter_mut().for_each(|row| row.average = true);
    }
    pasted.machine.screens.push(screen);
    end - at
}

/// Whether rows of pidstat are of the time since each thread began: all have one time, and a header above them has it too. A
/// report of an interval has the interval's begin above and its end in each row, and averages say what they are (sysstat
/// 12.6, pidstat.c). Where a header tells no time, one report may be either, and counts as the weaker.
fn is_of_whole_lives(text: &Text<'_>, at: usize, first: usize, end: usize) -> bool {
    let time = |line: usize| text.at(line).split_whitespace().next().unwrap_or_default();
    let began = if time(at).starts_with('#') { time(first) } else { time(at) };
    began != "Average:" && (first..end).all(|line| time(line) == began)
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
    fn rows_of_ps_without_a_header_are_what_its_command_asked_for() {
        let rows = "  41190   41190   0  2.0 qemu-kvm\n  41190   41203   2 92.0 CPU 0/KVM\n  41190   41210   2 30.0 vhost-41190\n";
        let of = |command: &str| read(&[("t".to_owned(), format!("{command}\n{rows}"))]);
        for command in [
            "$ ps -eLo pid,tid,psr,pcpu,comm | grep -E 'KVM|vhost|qemu'",
            "# ps -eL -o pid= -o tid= -o psr= -o pcpu= -o comm=",
            // An option of the program behind the pipe asks for no column.
            "$ ps -eLo pid,tid,psr,pcpu,comm | grep -o '.*'",
        ] {
            let machine = of(command);
            assert_eq!(machine.sources[0].2, 0, "{command}: {:?}", machine.strange);
            let worker = machine.threads.iter().find(|thread| thread.role == Role::Vhost).unwrap();
            assert_eq!((worker.tid, worker.last_cpu.as_ref().unwrap().value), (Some(41210), 2), "{command}");
            assert_eq!(worker.run_share.as_ref().unwrap().value, 0.3, "{command}");
        }
        let unknown = of("$ grep KVM saved.txt");
        assert!(unknown.threads.is_empty() && unknown.sources[0].2 == 3, "nobody knows what the columns are");
        assert!(of("$ ps -eLo pid,lstart,psr,pcpu,comm").threads.is_empty(), "a date has blanks");
    }

    #[test]
    fn rows_of_ps_without_a_header_have_the_usual_columns_of_its_options() {
        let threads = "$ ps -eT | grep 4180\n 4180  4180 ?        00:00:08 qemu-system-x86\n 4180  4187 ?        00:01:24 CPU 0/KVM\n";
        let workers = "# ps aux | grep vhost-\nroot      4190  0.0  0.0      0     0 ?        S    20:32   0:00 [vhost-4180]\n\
                       root      4191 12.5  0.0      0     0 ?        R    20:32   1:00 [vhost-4180]\n";
        let machine = read(&[("t".to_owned(), format!("{threads}{workers}"))]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let roles: Vec<_> = machine.threads.iter().map(|thread| (thread.role, thread.tid)).collect();
        let vhost = |tid| (Role::Vhost, Some(tid));
        assert_eq!(roles, [(Role::Vcpu(0), Some(4187)), (Role::Emulator, Some(4180)), vhost(4190), vhost(4191)]);
        assert_eq!(machine.threads[3].run_share.as_ref().unwrap().value, 0.125);
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
    const ROW: &str =
        "09:00:03      107         -     41210    0.00   30.00    0.00   40.00   30.00     2  |__vhost-41190\n";

    fn vhost(text: &str) -> crate::machine::Thread {
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        machine.threads.into_iter().find(|thread| thread.role == Role::Vhost).unwrap()
    }

    #[test]
    fn rows_of_pidstat_need_no_header() {
        let later = ROW.replace("09:00:03", "09:00:04");
        let worker = vhost(&format!("$ pidstat -t 1 | grep vhost\n{ROW}{later}"));
        assert_eq!((worker.vm.as_deref(), worker.tid, worker.pid), (Some("process-41190"), Some(41210), Some(41190)));
        assert_eq!(worker.last_cpu.unwrap().value, 2);
        assert_eq!(worker.wait_share.unwrap().value, 0.4);
        assert_eq!(vhost(ROW).wait_share, None, "one report may be an average of the thread's whole life");
        let averages =
            "Average:      107         -     41210    0.00   99.00    0.00   40.00   99.00     -  |__vhost-41190\n";
        assert!(vhost(averages).wait_share.is_some() && vhost(averages).last_cpu.is_none());
        let old = "09:00:03 AM   107         -     41210    0.00   99.00    0.00   99.00     2  |__vhost-41190\n";
        assert_eq!(vhost(&(old.to_owned() + &old.replace(":03", ":04"))).run_share.unwrap().value, 0.99);
        let disks = "09:00:03      107         -     41210      0.00      4.00      0.00       0  |__vhost-41190\n";
        assert!(read(&[("t".to_owned(), disks.to_owned())]).threads.is_empty(), "a report of disks tells no CPU");
    }

    #[test]
    fn a_first_report_of_an_interval_counts() {
        let header = "09:00:02      UID      TGID       TID    %usr %system  %guest   %wait    %CPU   CPU  Command\n";
        assert!(vhost(&format!("{header}{ROW}")).wait_share.is_some());
        assert!(vhost(&format!("{}{ROW}", header.replace(":02", ":03"))).wait_share.is_none(), "of its whole life");
    }

    #[test]
    fn commands_may_stand_before_other_columns() {
        let text = "  PID   LWP COMMAND         PSR STAT\n   10    10 qemu-kvm          4 Sl\n   10    11 CPU 0/KVM         2 Rl\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let vcpu = machine.threads.iter().find(|thread| thread.role == Role::Vcpu(0)).unwrap();
        assert_eq!((vcpu.vm.as_deref(), vcpu.last_cpu.as_ref().unwrap().value), (Some("process-10"), 2));
        let bare = "  TID PSR COMMAND\n   10   4 qemu-kvm\n   11   2 CPU 0/KVM\n   12   3 CPU 1/KVM\n";
        let machine = read(&[("t".to_owned(), bare.to_owned())]);
        assert_eq!(machine.domains.len(), 1, "threads without their process are not one VM each");
    }
}
