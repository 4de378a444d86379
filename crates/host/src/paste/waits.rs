//! How long tasks ran and waited for a CPU: `/proc/PID/schedstat`, of threads by their names, and `/proc/schedstat` of CPUs.
//!
//! Source: Documentation/scheduler/sched-stats.rst, Linux 6.12: of a task ran, waited (ns), turns; of a CPU the same in its seventh to
//! ninth number.

use super::{Pasted, Text, named};
use crate::budget;
use crate::machine::{GaugeKind, Screen, TopRow, role_of};
use base::number::duration;
use std::collections::BTreeMap;

/// `/proc/PID/schedstat`: ran, waited, turns.
pub(super) fn of_file(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let announced = named::announced(text.at(at));
    if let Some((file, told)) = named::prefixed(text.at(at)) {
        return usize::from(of_thread(file, told, text.place(at), pasted));
    }
    // `cat FILE; sleep 10; cat FILE` prints a line for each.
    let rows = (at + 1..).zip(&announced);
    let taken = rows.take_while(|(line, file)| of_thread(file, text.at(*line), text.place(*line), pasted)).count();
    if taken == 0 { 0 } else { taken + 1 }
}

/// Takes what a thread's file holds, if it is one.
fn of_thread(file: &str, told: &str, place: String, pasted: &mut Pasted) -> bool {
    let mut ids = file.split('/').filter_map(|part| part.parse::<i32>().ok());
    match (three(told), ids.next_back()) {
        (Some([ran, waited, _]), Some(thread)) if file.ends_with("/schedstat") => {
            note(pasted, (format!("thread {thread}"), 0), (ran, waited), place);
            true
        }
        _ => false,
    }
}

/// `/proc/71200/task/71210/comm:CPU 0/KVM`, as `grep -H` prints files: what threads are called, and whose they are.
pub(super) fn comms(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let of = |line: usize| {
        let (file, command) = named::prefixed(text.at(line))?;
        let ["", "proc", process, "task", thread, "comm"] = file.split('/').collect::<Vec<_>>()[..] else {
            return None;
        };
        Some(TopRow {
            place: text.place(line),
            pid: thread.parse().ok()?,
            process: Some(process.parse().ok()?),
            state: '?',
            share: None,
            average: true,
            wait: None,
            time_cs: None,
            command: command.to_owned(),
            last_cpu: None,
        })
    };
    let rows: Vec<TopRow> = (at..text.lines.len()).map_while(of).collect();
    let taken = rows.len();
    let rows: Vec<TopRow> = rows.into_iter().filter(|_| pasted.may_take_row()).collect();
    if taken > 0 {
        pasted.machine.screens.push(Screen { place: text.place(at), rows });
    }
    taken
}

/// `CPU 0/KVM 91201122331122 40112233112211 88112233`: a loop over threads printed their names before the same numbers.
pub(super) fn of_names(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let row = |line: usize| {
        let words: Vec<&str> = text.at(line).split_whitespace().collect();
        let (name, numbers) = words.split_at_checked(words.len().checked_sub(3)?)?;
        (!name.is_empty()).then_some(())?;
        Some((name.join(" "), three(&numbers.join(" "))?))
    };
    // Within a run of them they were asked before.
    if at.checked_sub(1).and_then(row).is_some() {
        return 0;
    }
    let rows: Vec<_> = (at..text.lines.len()).map_while(row).collect();
    // Three numbers behind a name may be anybody's: an id and a priority are no times.
    let above = (0..at).rev().map(|line| text.at(line)).find(|line| !line.is_empty()).unwrap_or_default();
    let is_known = |(name, [ran, ..]): &(String, [f64; 3])| role_of(name).is_some() && *ran >= LEAST_NS;
    if !above.contains("schedstat") && !rows.iter().any(is_known) {
        return 0;
    }
    // Several threads may have one name: each is the one that had its turn before.
    let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
    for ((name, [ran, waited, _]), line) in rows.iter().zip(at..) {
        let turn = turns.entry(name).or_default();
        note(pasted, (name.clone(), *turn), (*ran, *waited), text.place(line));
        *turn += 1;
    }
    rows.len()
}

/// What a thread ran at least, so that its number is taken for a time: ids of threads end at 2^22 (PID_MAX_LIMIT).
const LEAST_NS: f64 = 1e7;

fn three(told: &str) -> Option<[f64; 3]> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let numbers: Option<Vec<f64>> =
        told.split_whitespace().map(|word| word.parse().ok().filter(|_| is_number(word))).collect();
    numbers?.try_into().ok()
}

/// What a thread ran and waited, by its last copy, and since the one before.
pub(super) struct Sums {
    who: String,
    sums: (f64, f64),
    since: Option<(f64, f64)>,
    place: String,
}

/// Takes what a thread ran and waited since it began; of a second copy the difference counts.
pub(super) fn note(pasted: &mut Pasted, who: (String, usize), sums: (f64, f64), place: String) {
    if let Some(index) = pasted.waiting.0.get(&who) {
        let known = &mut pasted.waiting.1[*index];
        let since = (sums.0 - known.sums.0, sums.1 - known.sums.1);
        // A sum that is smaller now is of another thread.
        (known.since, known.sums) = ((since.0 >= 0.0 && since.1 >= 0.0).then_some(since), sums);
        known.place = place;
    } else if pasted.waiting.1.len() < budget::SCREEN_ROWS {
        pasted.waiting.1.push(Sums { who: who.0.clone(), sums, since: None, place });
        pasted.waiting.0.insert(who, pasted.waiting.1.len() - 1);
    } else {
        pasted.leave_out("values of the host beyond the first", budget::SCREEN_ROWS);
    }
}

/// The waiting of all threads, in the order of the texts.
pub(super) fn finish(pasted: &mut Pasted) {
    for Sums { who, sums, since, place } in std::mem::take(&mut pasted.waiting.1) {
        if let Some((ran, waited)) = since {
            let told = format!("ran {}, waited {}", duration(ran), duration(waited));
            pasted.quote("threads, between two copies", &who, &told, place.clone());
        }
        let (kind, (ran, waited)) = match since {
            Some(since) => (GaugeKind::WaitedBetween, since),
            None => (GaugeKind::Waited, sums),
        };
        if ran + waited > 0.0 {
            pasted.gauge(kind, &who, waited / (ran + waited), place);
        }
    }
}

/// `version 15`, `timestamp ..`, `cpu0 ..`, `domain0 ..`; of a second copy what came between.
pub(super) fn of_cpus(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let begins = |line: usize, name: &str| text.at(line).starts_with(name);
    if !(begins(at, "version ") && begins(at + 1, "timestamp ")) {
        return 0;
    }
    let cpu = |line: &str| {
        let mut words = line.split_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse::<u32>().ok()?;
        let numbers: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
        let [.., ran, waited, _turns] = numbers.as_slice() else { return None };
        (numbers.len() >= 9).then_some((cpu, *ran, *waited))
    };
    let mut end = at + 2;
    loop {
        match cpu(text.at(end)) {
            Some((cpu, ran, waited)) => {
                let before = pasted.queues.insert(cpu, (ran, waited));
                let (since, (ran, waited)) = match before.filter(|before| before.0 <= ran && before.1 <= waited) {
                    Some(before) => ("between two copies", (ran - before.0, waited - before.1)),
                    None => ("since boot", (ran, waited)),
                };
                let told = format!("ran {}, waited {}", duration(ran), duration(waited));
                pasted.quote(&format!("tasks of a CPU, {since}"), &format!("CPU {cpu}"), &told, text.place(end));
            }
            None if begins(end, "domain") => {}
            None => break,
        }
        end += 1;
    }
    end - at
}

#[cfg(test)]
mod tests {
    use crate::machine::GaugeKind;
    use crate::paste::read;

    #[test]
    fn threads_are_told_by_their_names_and_cpus_by_their_numbers() {
        let text = "CPU 0/KVM 90000000 10000000 7\nIO iothread1 50 50 2\n\nCPU 1/KVM 4127 2 19\nversion 15\ntimestamp 1\ncpu3 0 0 0 0 0 0 5000000000 1000000000 9\ndomain0 ff 0 0\n\
            version 15\ntimestamp 2\ncpu3 0 0 0 0 0 0 7000000000 4000000000 9\n\nwe waited 3 4 5\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 2, "a thread's id is no time: {:?}", machine.strange);
        let told: Vec<_> =
            machine.gauges.iter().map(|gauge| (gauge.kind, gauge.subject.as_str(), gauge.value)).collect();
        assert_eq!(told, [(GaugeKind::Waited, "CPU 0/KVM", 0.1), (GaugeKind::Waited, "IO iothread1", 0.5)]);
        let told: Vec<_> = machine.quoted.iter().map(|told| (told.subject.as_str(), told.value.as_str())).collect();
        assert_eq!(told, [("CPU 3", "ran 5.0 s, waited 1.0 s"), ("CPU 3", "ran 2.0 s, waited 3.0 s")]);
    }

    #[test]
    fn two_copies_are_what_came_between_them() {
        let copy = |ran: u64, waited: u64| {
            format!("# threads, schedstat\nCPU 0/KVM {ran} {waited} 7\nvhost-9 50 50 2\nvhost-9 90 10 2\n\n")
        };
        let text = format!("{}{}", copy(88_000_000_000, 9_000_000_000), copy(94_000_000_000, 13_000_000_000));
        let machine = read(&[("t".to_owned(), text)]);
        let told: Vec<_> =
            machine.gauges.iter().map(|gauge| (gauge.kind, gauge.subject.as_str(), gauge.value)).collect();
        assert_eq!(told, [(GaugeKind::WaitedBetween, "CPU 0/KVM", 0.4)], "who neither ran nor waited says nothing");
        assert_eq!(machine.quoted[0].value, "ran 6.0 s, waited 4.0 s");
    }
}
