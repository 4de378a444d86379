//! Which lines are of a result that a latency test printed, and where does the next result begin?
//!
//! A result is a run of lines that its program prints, with at least one that nothing else prints ([`ResultFile::of`] has those).
//! Sources: rt-tests 2.4 (cyclictest.c `print_stat`, `print_hist`; oslat.c `write_summary`; hwlatdetect.py), Linux 6.12
//! (tools/tracing/rtla/src: timerlat_top.c, timerlat_hist.c, timerlat_aa.c, osnoise_top.c, osnoise_hist.c; kernel/trace/trace_output.c
//! `trace_timerlat_print`), kvm-unit-tests (x86/tscdeadline_latency.c).

use base::recording::ResultFile;

/// Lines of one program.
struct Shape {
    kind: ResultFile,
    /// How lines begin that stand at the head of a result: behind its numbers they begin another one.
    heads: &'static [&'static str],
    /// How its other lines begin.
    lines: &'static [&'static str],
    /// Its rows of numbers.
    is_row: fn(&str) -> bool,
}

const SHAPES: &[Shape] = &[
    Shape {
        kind: ResultFile::NoiseTrace,
        heads: &["# tracer: timerlat", "# tracer: osnoise"],
        lines: &["#"],
        is_row: is_noise,
    },
    Shape {
        kind: ResultFile::RtlaHistogram,
        heads: &["# RTLA "],
        lines: &["# Time unit", "# Duration", "Index", "over:", "count:", "min:", "avg:", "max:", "ALL:", "rtla "],
        is_row: is_columns,
    },
    Shape {
        kind: ResultFile::RtlaTop,
        heads: &[
            "# timerlat ",
            "# osnoise ",
            "# rtla ",
            "Timer Latency",
            "Operating System Noise",
            "Hardware-related Noise",
        ],
        lines: &[
            "CPU COUNT",
            "CPU Period",
            "duration:",
            "timerlat hit stop tracing",
            "rtla timerlat hit stop tracing",
            "osnoise hit stop tracing",
            "## CPU ",
            "Previous IRQ interference",
            "IRQ handler delay:",
            "IRQ latency:",
            "Timerlat IRQ duration:",
            "Blocking thread:",
            "Blocking thread stack trace",
            "->",
            "IRQ interference",
            "Softirq interference",
            "Thread interference",
            "NMI interference",
            "Thread latency:",
            "Max timerlat IRQ latency",
            "Saving trace to",
            "-----",
            "ALL #",
        ],
        is_row: is_rtla_row,
    },
    Shape {
        kind: ResultFile::OslatText,
        heads: &["oslat V", "Total runtime:"],
        lines: &[
            "Thread priority:",
            "CPU list:",
            "CPU for main thread:",
            "Workload:",
            "Workload mem:",
            "Preheat cores:",
            "Pre-heat for",
            "Bucket size:",
            "Trace threshold:",
            "Single preheat",
            "Bias",
            "Test starts",
            "Test completed",
            "Core:",
            "Counter Freq:",
            "CPU Freq:",
            "Minimum:",
            "Average:",
            "Maximum:",
            "Max-Min:",
            "Duration:",
            "Zoom mode",
        ],
        // `-z` leaves out lengths that nobody met, and writes three dots for them.
        is_row: |line| line.contains("(us):") || line.contains("(ns):") || line.trim() == "...",
    },
    Shape {
        kind: ResultFile::Hwlatdetect,
        heads: &["hwlatdetect:", "# tracer: hwlat"],
        lines: &[
            "#  ",
            "# entries-in-buffer",
            "detector:",
            "parameters:",
            "CPU list:",
            "Latency threshold:",
            "Sample window:",
            "Sample width:",
            "Non-sampling period:",
            "Output File:",
            "Starting test",
            "test finished",
            "Max Latency:",
            "Samples recorded:",
            "Samples exceeding threshold:",
            "SMIs during run:",
        ],
        is_row: |line| {
            line.starts_with("ts: ") && line.contains("inner:")
                || line.contains(" inner/outer(us): ")
                || is_old_hwlat(line)
                // Whoever left rows out.
                || line == "."
        },
    },
    Shape {
        kind: ResultFile::CyclictestText,
        heads: &["# /dev/cpu_dma_latency", "# Histogram", "policy:"],
        lines: &[
            "# Total:",
            "# Min Latencies:",
            "# Avg Latencies:",
            "# Max Latencies:",
            "# Histogram Overflow",
            "# Thread ",
            "# Break ",
            "# Thread Ids:",
            "Max CPUs",
            "Online CPUs",
            "Thread ",
            "WARN",
            "INFO",
        ],
        is_row: is_cyclictest_row,
    },
    Shape {
        kind: ResultFile::VmTrace,
        heads: &["Number of VM events = "],
        lines: &["Average VM Exit-Entry", "Maximum VM Exit-Entry", "Maximum cumulative latency"],
        is_row: |_| false,
    },
    Shape {
        kind: ResultFile::Xenomai,
        heads: &["== Sampling period:"],
        lines: &["== Test mode:", "== All results in", "warming up", "RTT|", "RTH|", "---|", "HSH|", "HSS|", "HSD|"],
        is_row: |line| line.starts_with("RTD|") || line.starts_with("RTS|"),
    },
    Shape {
        kind: ResultFile::StressCyclic,
        heads: &[],
        lines: &["stress-ng: info:", "^Cstress-ng: info:", "stress-ng, version "],
        is_row: |line| line.contains("stress-ng: ") && line.contains("] cyclic:"),
    },
    Shape {
        kind: ResultFile::PqosCsv,
        heads: &["Time,Core,"],
        lines: &[],
        is_row: |line| line.matches(',').count() >= 3 && line.starts_with(|first: char| first.is_ascii_digit()),
    },
    Shape {
        kind: ResultFile::JitterdebuggerSamples,
        heads: &[],
        lines: &[],
        is_row: |line| {
            line.matches(';').count() == 2 && line.bytes().all(|byte| byte.is_ascii_digit() || b";.".contains(&byte))
        },
    },
    Shape {
        kind: ResultFile::JitterdebuggerText,
        heads: &["affinity: "],
        lines: &[],
        is_row: |line| line.starts_with("T:") && line.contains(" A:") && line.contains(" Avg:"),
    },
    Shape {
        kind: ResultFile::TscDeadline,
        heads: &["enabling apic"],
        lines: &["paging enabled", "cr0", "cr3", "cr4", "starting host"],
        is_row: |line| line.strip_prefix("latency: ").is_some_and(is_number),
    },
];

/// What a line may be of: the places of its shapes.
fn place_of(kind: ResultFile) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.kind == kind)
}

/// Whether the program behind `kind` prints such a line; blank ones are nobody's.
pub(crate) fn is_of(kind: ResultFile, line: &str) -> bool {
    let line = line.trim();
    place_of(kind).is_some_and(|shape| is_head(shape, line) || is_inner(shape, line))
}

/// Whether a result of `kind` begins with such a line.
pub(crate) fn begins(kind: ResultFile, line: &str) -> bool {
    place_of(kind).is_some_and(|shape| is_head(shape, line.trim()))
}

/// Whether such a line has what was measured.
pub(crate) fn is_row(kind: ResultFile, line: &str) -> bool {
    place_of(kind).is_some_and(|shape| (shape.is_row)(line.trim()))
}

/// Every kind of result of which such a line may be, with its place among all.
pub(crate) fn kinds_of(line: &str) -> impl Iterator<Item = (usize, ResultFile)> {
    let line = line.trim();
    let may_be = move |(_, shape): &(usize, &Shape)| is_head(shape, line) || is_inner(shape, line);
    SHAPES.iter().enumerate().filter(may_be).map(|(place, shape)| (place, shape.kind))
}

fn is_head(shape: &Shape, line: &str) -> bool {
    // `# Histogram Overflows` stands behind a histogram.
    shape.heads.iter().any(|head| line.starts_with(head))
        && !shape.lines.iter().any(|begin| line.starts_with(begin) && begin.len() > 2)
}

fn is_inner(shape: &Shape, line: &str) -> bool {
    // Between the comments above a trace.
    let is_empty_comment = line == "#" && shape.heads.iter().any(|head| head.starts_with("# tracer"));
    is_empty_comment
        || !line.is_empty() && (shape.lines.iter().any(|begin| line.starts_with(begin)) || (shape.is_row)(line))
}

fn is_number(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `1408928107.0286324723   18   17`: a time with ten digits behind the point, and two lengths.
fn is_old_hwlat(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [time, inner, outer] = words[..] else { return false };
    let time = time.split_once('.').filter(|(seconds, ns)| seconds.len() >= 9 && ns.len() == 10);
    time.is_some_and(|(seconds, ns)| [seconds, ns, inner, outer].into_iter().all(is_number))
}

/// `<idle>-0 [002] d.h1. 900.000100: #5001 context irq timer_latency 12045 ns`, or a line of osnoise.
fn is_noise(line: &str) -> bool {
    ResultFile::is_noise_row(line)
}

/// A row of a histogram: an index and counts.
fn is_columns(line: &str) -> bool {
    line.split_whitespace().count() >= 2 && line.split_whitespace().all(|cell| is_number(cell) || cell == "-")
}

/// `9 #1000 | 28 0 1 28 | ..`, and of osnoise `0 #599 599000000 67 99.99998 ..`; a clock stands in the first line of a screen.
fn is_rtla_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let is_count = second.strip_prefix('#').is_some_and(is_number);
    let is_clock = second.matches(':').count() == 2 && second.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    // What it found out about the sample that stopped it: threads and interrupts with their times.
    let is_part = line.ends_with(" us") || line.ends_with("%)") && line.contains(" us (");
    is_number(first) && (is_count || is_clock) || is_part
}

/// `T: 0 (17159) P: 0 ..`, a row of a histogram (`000017 000003 000028`), or a sample (`0: 12: 77`).
fn is_cyclictest_row(line: &str) -> bool {
    let is_histogram = || {
        let mut cells = line.split_whitespace();
        // The length is padded with zeros: a histogram of 100 ms has no six digits without one.
        let is_length = cells.next().is_some_and(|cell| cell.len() == 6 && cell.starts_with('0') && is_number(cell));
        is_length && cells.clone().next().is_some() && cells.all(|cell| cell.len() >= 6 && is_number(cell))
    };
    (line.starts_with("T:") && line.contains(" Max:"))
        || is_histogram()
        || (line.matches(':').count() == 2 && line.split(':').all(is_number))
}

/// The thread of a row of cyclictest: `T: 3 (1001) ..`.
pub(crate) fn thread_of(row: &str) -> Option<u64> {
    row.trim().strip_prefix("T:")?.split('(').next()?.trim().parse().ok()
}

/// Whether a row of cyclictest belongs to another run than `last`, a row before it: the same thread has another id, or counted fewer
/// cycles.
pub(crate) fn begins_anew(last: &str, row: &str) -> bool {
    let told = |line: &str| {
        let rest = line.trim().strip_prefix("T:")?;
        let number = |rest: &str| rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok();
        Some((number(rest)?, number(rest.split_once('(')?.1)?, number(rest.split_once(" C:")?.1)?))
    };
    match (told(last), told(row)) {
        (Some((thread, id, cycles)), Some((other, other_id, fewer))) => {
            thread == other && (id != other_id || fewer < cycles)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_programs_are_told_from_words_of_people() {
        use ResultFile::{CyclictestText, Hwlatdetect, OslatText, RtlaTop};
        for (kind, line) in [
            (CyclictestText, "T: 0 ( 1001) P:80 I:1000 C:  10000 Min:      5 Act:    9 Avg:   12 Max:     340"),
            (CyclictestText, "000007 000003\t000001"),
            (CyclictestText, "# Max Latencies: 00090 00141"),
            (OslatText, "    001 (us):\t 1000 2000"),
            (OslatText, "    CPU Freq:\t 2096 2096 (Mhz)"),
            (RtlaTop, "  9 #1000      |       28         0         1        28 |"),
            (RtlaTop, "  0 00:00:12   |          IRQ Timer Latency (us)        |"),
            (Hwlatdetect, "ts: 1646000000.100000000, inner:48, outer:12"),
        ] {
            assert!(is_of(kind, line), "{line}");
        }
        for line in ["Without isolation:", "and cyclictest in the guest:", "Max was 340", "12 times", ""] {
            assert_eq!(kinds_of(line).count(), 0, "{line}");
        }
    }

    #[test]
    fn a_second_run_is_told_from_the_same_run_later() {
        let row = |id: u32, cycles: u32| format!("T: 0 ( {id}) P:80 I:1000 C: {cycles} Min: 5 Act: 9 Avg: 12 Max: 340");
        assert!(!begins_anew(&row(7, 100), &row(7, 200)));
        assert!(begins_anew(&row(7, 100), &row(8, 200)));
        assert!(begins_anew(&row(7, 100), &row(7, 50)));
    }
}
