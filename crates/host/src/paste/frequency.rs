//! How fast CPUs run and how deep they sleep: turbostat's columns, and `cpupower frequency-info`.
//!
//! ```text
//! Core  CPU  Avg_MHz  Busy%  Bzy_MHz  TSC_MHz  SMI  C1%  C6%        a row for all CPUs, then one for each
//! analyzing CPU 1:
//!   current policy: frequency should be within 1000 MHz and 2.20 GHz.
//! ```
//! Sources: turbostat(8), Linux 6.12; cpupower-frequency-info(1).

use super::{Pasted, Text};
use base::number::{counted, plain};

/// Rows of CPUs that are shown: the columns of the others are in the row of all.
const MOST_ROWS: usize = 64;

/// Columns that turbostat may be asked for by themselves, and that say what they are.
const SHOWN: [&str; 6] = ["SMI", "IRQ", "NMI", "IPC", "POLL", "TSC_MHz"];

/// The head of turbostat and its rows.
pub(super) fn turbostat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header: Vec<&str> = text.at(at).split_whitespace().collect();
    let column = |name: &str| header.iter().position(|known| *known == name);
    let place = ["Package", "Die", "Node", "Core", "CPU"];
    // `--show CPU,SMI`: nothing but columns of its own.
    let is_shown =
        |name: &&str| place.contains(name) || SHOWN.contains(name) || name.ends_with("Watt") || name.ends_with("Tmp");
    let is_short = column("CPU").is_some() && header.len() > 1 && header.iter().all(is_shown);
    if column("Bzy_MHz").or(column("Busy%")).or(column("Avg_MHz")).is_none() && !is_short {
        return 0;
    }
    let (mut end, mut interrupted) = (at + 1, 0);
    loop {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let is_cell = |cell: &&str| *cell == "-" || cell.parse::<f64>().is_ok();
        // A core's and a package's values stand in the row of its first CPU alone.
        if cells.is_empty() || cells.len() > header.len() || !cells.iter().all(is_cell) {
            break;
        }
        let subject = match column("CPU").and_then(|column| cells.get(column)) {
            Some(cpu) if *cpu != "-" => format!("CPU {cpu}"),
            _ => "all CPUs".to_owned(),
        };
        let of_firmware = column("SMI").and_then(|column| cells.get(column)?.parse::<u64>().ok()).unwrap_or(0);
        // The first row is of all CPUs together.
        interrupted = if subject == "all CPUs" { interrupted } else { interrupted.max(of_firmware) };
        let told = header.iter().zip(&cells).filter(|(name, _)| !place.contains(name));
        if end - at <= MOST_ROWS {
            told.for_each(|(name, cell)| pasted.quote(name, &subject, cell, text.place(end)));
        } else {
            pasted.leave_out("rows of turbostat beyond the first", MOST_ROWS);
        }
        end += 1;
    }
    if interrupted > 0 {
        // `-i 10`: otherwise it is whatever turbostat was told, or 5 s.
        let words: Vec<&str> = text.at(at.saturating_sub(1)).split_whitespace().collect();
        let seconds = words
            .windows(2)
            .find(|pair| matches!(pair[0], "-i" | "--interval"))
            .and_then(|pair| pair[1].parse::<f64>().ok());
        let rate = seconds
            .filter(|seconds| *seconds > 0.0)
            .map_or(String::new(), |seconds| format!(", {} a second", plain(interrupted as f64 / seconds)));
        let said = format!(
            "turbostat counted {} on a CPU at most{rate}: firmware takes the CPU from the kernel and from vCPUs, and nothing on the host can put it off.",
            counted(interrupted, "SMI", "SMIs")
        );
        pasted.summarize(said, text.place(at));
    }
    if end == at + 1 { 0 } else { end - at }
}

/// `analyzing CPU 1:` and what is said of it: a name and a value, or the rest of the sentence before.
pub(super) fn cpupower(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(cpu) = text.at(at).strip_prefix("analyzing CPU").map(|rest| rest.trim().trim_end_matches(':')) else {
        return 0;
    };
    let cpu = format!("CPU {cpu}");
    let (mut end, mut told): (usize, Vec<(usize, String, String)>) = (at + 1, Vec::new());
    while text.lines.get(end).is_some_and(|line| line.starts_with([' ', '\t'])) && !text.at(end).is_empty() {
        let line = text.at(end);
        match line.split_once(':') {
            Some((name, value)) => told.push((end, name.trim().to_owned(), value.trim().to_owned())),
            None => match told.last_mut() {
                Some((_, _, value)) => value.push_str(&format!(" {line}")),
                None => break,
            },
        }
        end += 1;
    }
    for (line, name, value) in told.iter().filter(|(.., value)| !value.is_empty()) {
        pasted.quote(name, &cpu, value, text.place(*line));
    }
    if told.is_empty() { 0 } else { end - at }
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn turbostat_tells_of_all_cpus_and_of_each() {
        let text = "Core\tCPU\tBusy%\tBzy_MHz\tSMI\tPkgWatt\n-\t-\t50.00\t1800\t4\t61.2\n0\t0\t99.00\t1200\t2\t61.2\n0\t4\t1.00\t2400\t2\nBusy is 50\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        let told = |what: &str, of: &str| {
            machine.quoted.iter().find(|told| told.what == what && told.subject == of).map(|told| told.value.as_str())
        };
        let said = &machine.summaries[0].value;
        assert!(said.starts_with("turbostat counted 2 SMIs on a CPU at most: firmware"), "{said}");
        assert_eq!((told("Bzy_MHz", "all CPUs"), told("Bzy_MHz", "CPU 0")), (Some("1800"), Some("1200")));
        assert_eq!((told("PkgWatt", "CPU 0"), told("PkgWatt", "CPU 4")), (Some("61.2"), None), "of the package");
        assert_eq!(told("Core", "CPU 0"), None, "where a CPU is says nothing of its speed");
    }

    #[test]
    fn cpupower_tells_names_and_values_or_the_rest_of_a_sentence() {
        let text = "analyzing CPU 1:\n  driver: intel_cpufreq\n  current policy: frequency should be within 1000 MHz and 2.20 GHz.\n\
            \x20                 The governor \"powersave\" may decide which speed to use\n\nbye\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        let told: Vec<_> = machine
            .quoted
            .iter()
            .map(|told| (told.subject.as_str(), told.what.as_str(), told.value.as_str()))
            .collect();
        let policy = "frequency should be within 1000 MHz and 2.20 GHz. The governor \"powersave\" may decide which speed to use";
        assert_eq!(told, [("CPU 1", "driver", "intel_cpufreq"), ("CPU 1", "current policy", policy)]);
    }
}
