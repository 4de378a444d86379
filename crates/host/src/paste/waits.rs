//! How long tasks ran and waited for a CPU: `/proc/PID/schedstat`, of threads by their names, and `/proc/schedstat` of CPUs.
//!
//! Source: Documentation/scheduler/sched-stats.rst, Linux 6.12: of a task ran, waited (ns), turns; of a CPU the same in its seventh to
//! ninth number.

use super::{Pasted, Text, named};
use crate::machine::{GaugeKind, role_of};
use base::number::duration;

/// `/proc/PID/schedstat`: ran, waited, turns.
pub(super) fn of_file(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let announced = named::announced(text.at(at));
    let (file, line, told) = match (named::prefixed(text.at(at)), announced.as_slice()) {
        (Some((file, told)), _) => (file, at, told),
        (None, [file]) => (*file, at + 1, text.at(at + 1)),
        _ => return 0,
    };
    let ids: Vec<i32> = file.split('/').filter_map(|part| part.parse().ok()).collect();
    match (three(told), ids.last()) {
        (Some([ran, waited, _]), Some(thread)) if file.ends_with("/schedstat") => {
            note(pasted, &format!("thread {thread}"), (ran, waited), text.place(line));
            line + 1 - at
        }
        _ => 0,
    }
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
    for ((name, [ran, waited, _]), line) in rows.iter().zip(at..) {
        note(pasted, name, (*ran, *waited), text.place(line));
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

fn note(pasted: &mut Pasted, who: &str, (ran, waited): (f64, f64), place: String) {
    if ran + waited > 0.0 {
        pasted.gauge(GaugeKind::Waited, who, waited / (ran + waited), place);
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
}
