//! `top`, of processes or of threads (`-H`): columns by the header, because everybody sets them otherwise.

use super::{Pasted, Text, groups, memory, prompt, totals};
use crate::machine::{Role, Screen, TopRow, role_of};

/// What stands above the rows: how each line begins, and a word that it has besides. Names: procps-ng 4.0, top(1); before 3.3
/// `Cpu(s):` and `Mem:`.
const HEAD: &[(&str, &str)] = &[
    ("top - ", " up "),
    ("Tasks:", " total,"),
    ("Threads:", " total,"),
    ("%Cpu", " id,"),
    ("Cpu", " id,"),
    ("KiB ", " total,"),
    ("MiB ", " total,"),
    ("GiB ", " total,"),
    ("Mem:", " total,"),
    ("Swap:", " total,"),
];

/// A line above the rows: how all CPUs were used, or with the key 1 each of them (`%Cpu3  :  1.0 us, ...`).
pub(super) fn head(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    // A terminal cuts totals that are too wide: `13158972+total`. Before 3.3 names follow a percent sign: `35.5%id,`.
    let is_head =
        |(first, word): &(&str, &str)| line.starts_with(first) && line.replace(['+', '%'], " ").contains(word);
    if !HEAD.iter().any(is_head) {
        return 0;
    }
    memory::of_screen(text, at, pasted);
    // Whose threads these are stands in the command alone.
    if let Some(vm) = prompt::asked_guest(text, at).filter(|_| line.starts_with("top - ")) {
        pasted.domain(vm);
    }
    let Some((cpu, shares)) = line.trim_start_matches('%').strip_prefix("Cpu").and_then(|rest| rest.split_once(':'))
    else {
        return 1;
    };
    // `0,0 ni,100,0 id`: each name stands behind its share, and a full one leaves no blank before it.
    let shares = shares.replace('%', " ");
    let words: Vec<&str> = shares.split_whitespace().collect();
    let percent = |names: &[&str]| {
        let at = words.iter().position(|word| word.starts_with(names[0]))?;
        let cell = words.get(at.checked_sub(1)?)?.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        totals::number(cell)
    };
    let Some(told) = totals::of_percents(percent) else { return 1 };
    match cpu.trim().parse::<u32>() {
        Ok(cpu) if cpu < base::cpus::MOST_CPUS => drop(pasted.machine.cpu_use.insert(cpu, told.shares)),
        Ok(_) => {}
        Err(_) => pasted.total(text.fact(told, at)),
    }
    1
}

/// `PID USER PR NI ...` and the rows below it. Blank lines between rows are part of the screen, two of them end it.
pub(super) fn top(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header: Vec<&str> = text.at(at).split_whitespace().collect();
    let column = |name: &str| header.iter().position(|known| *known == name);
    let (Some(id), Some(share), Some(command)) = (column("PID"), column("%CPU"), column("COMMAND")) else { return 0 };
    let [state, time, processor] = ["S", "TIME+", "P"].map(column);
    let mut screen = Screen { place: text.place(at), ..Screen::default() };
    let mut end = at + 1;
    while end < text.lines.len() {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let pid = cells.get(id).and_then(|pid| pid.parse::<i32>().ok());
        let told = pid.zip(cells.get(share).and_then(|cell| percent(cell)));
        let Some((pid, share)) = told.filter(|_| cells.len() > command) else { break };
        // Columns after the command stand at the row's end, where the terminal was wide enough for them.
        let behind = processor.filter(|column| *column > command);
        let last = behind.and_then(|_| cells.get(command + 1..)?.last()?.parse().ok());
        let until = cells.len() - usize::from(last.is_some());
        end += 1;
        if !pasted.may_take_row() {
            continue;
        }
        screen.rows.push(TopRow {
            place: text.place(end - 1),
            pid,
            process: None,
            state: state.and_then(|column| cells.get(column)?.chars().next()).unwrap_or('?'),
            share: Some(share),
            average: false,
            wait: None,
            time_cs: time.and_then(|column| hundredths(cells.get(column)?)),
            command: cells[command..until].join(" "),
            last_cpu: match behind {
                Some(_) => last,
                None => processor.and_then(|column| cells.get(column)?.parse().ok()),
            },
        });
    }
    if end == at + 1 {
        return 0;
    }
    own_first_threads(&mut screen.rows);
    pasted.machine.screens.push(screen);
    end - at
}

/// Where vCPUs have threads with names of their own, the thread with QEMU's name is the first of its process, and its number is the
/// process's: its share is its own, and none of the others'.
fn own_first_threads(rows: &mut [TopRow]) {
    if rows.iter().any(|row| matches!(role_of(&row.command), Some((Role::Vcpu(_), _)))) {
        rows.iter_mut().filter(|row| groups::is_qemu(&row.command)).for_each(|row| row.process = Some(row.pid));
    }
}

/// Rows of `top` whose header was left out, in the layout that it has by itself.
pub(super) fn bare(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let of = |line: usize| -> Option<TopRow> {
        let cells: Vec<&str> = text.at(line).split_whitespace().collect();
        let [pid, _, priority, nice, _, _, _, state, share, memory, time, ..] = cells[..] else { return None };
        let is_number = |cell: &str| cell.parse::<i32>().is_ok();
        let is_row = (priority == "rt" || is_number(priority))
            && is_number(nice)
            && state.len() == 1
            && "RSDTtZIX".contains(state)
            && percent(memory).is_some()
            && cells.len() > 11;
        let row = TopRow {
            place: text.place(line),
            pid: pid.parse().ok()?,
            process: None,
            state: state.chars().next()?,
            share: Some(percent(share)?),
            average: false,
            wait: None,
            time_cs: Some(hundredths(time).or_else(|| time.split_once(':').and(Some(0)))?).filter(|time| *time > 0),
            command: cells[11..].join(" "),
            last_cpu: None,
        };
        is_row.then_some(row)
    };
    let rows: Vec<TopRow> = (at..text.lines.len()).map_while(of).collect();
    if rows.is_empty() {
        return 0;
    }
    let taken = rows.len();
    let mut rows: Vec<TopRow> = rows.into_iter().filter(|_| pasted.may_take_row()).collect();
    own_first_threads(&mut rows);
    pasted.machine.screens.push(Screen { place: text.place(at), rows });
    taken
}

/// `17.9`, or `17,9` where the language writes it so, as a share of one CPU.
fn percent(cell: &str) -> Option<f64> {
    cell.replace(',', ".")
        .parse::<f64>()
        .ok()
        .filter(|percent| (0.0..1e6).contains(percent))
        .map(|percent| percent / 100.0)
}

/// `153:31.10`: minutes, seconds, hundredths.
fn hundredths(cell: &str) -> Option<u64> {
    let (minutes, seconds) = cell.split_once(':')?;
    let (seconds, hundredths) = seconds.split_once(['.', ','])?;
    let [minutes, seconds, hundredths] = [minutes, seconds, hundredths].map(|part| part.parse::<u64>().ok());
    minutes?.checked_mul(60)?.checked_add(seconds?)?.checked_mul(100)?.checked_add(hundredths?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_tells_how_each_cpu_was_used() {
        let text = "top - 10:22:31 up 41 days,  3:11,  2 users,  load average: 5.92, 5.81, 5.66\n\
                    Threads: 812 total,   6 running, 806 sleeping,   0 stopped,   0 zombie\n\
                    %Cpu0  : 28.1 us, 10.0 sy,  0.0 ni, 60.3 id,  0.0 wa,  0.1 hi,  1.5 si,  0.0 st\n\
                    %Cpu13 :  0,0 us,  0,0 sy,  0,0 ni,100,0 id,  0,0 wa,  0,0 hi,  0,0 si,  0,0 st\n\
                    KiB Mem : 13158972+total, 51231232 free, 70112344 used, 10246144 buff/cache\n\
                    KiB Swap:        0 total,        0 free,        0 used. 60112344 avail Mem\n\n";
        let machine = crate::paste::read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let [first, last] = [0, 13].map(|cpu| machine.cpu_use[&cpu]);
        assert!((first.softirq - 0.015).abs() < 1e-9 && (first.busy - 0.381).abs() < 1e-9, "{first:?}");
        assert_eq!(last.idle, 1.0);
    }

    #[test]
    fn columns_may_stand_before_the_id() {
        let text = " PPID   PID nTH USER      PR  NI    VIRT    RES    SHR   SWAP S  %CPU  %MEM     TIME+ COMMAND\n\
                    3100 41190  14 qemu      20   0   13.3g  11.2g   4948      0 S  27.6  17.9   6445:29 qemu-kvm\n\
                    3100 41203  14 qemu      20   0   13.3g  11.2g   4948      0 R  37.5  17.9   8973:06 CPU 0/KVM\n";
        let machine = crate::paste::read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let vcpu = &machine.threads[0];
        assert_eq!((vcpu.tid, vcpu.run_share.as_ref().unwrap().value), (Some(41203), 0.375));
    }

    #[test]
    fn times_are_minutes_and_hundredths() {
        assert_eq!(hundredths("1:35.98"), Some(9_598));
        assert_eq!(hundredths("153:31.10"), Some(921_110));
        assert_eq!(hundredths("1.5"), None);
        assert_eq!(percent("17,9"), Some(0.179));
    }
}
