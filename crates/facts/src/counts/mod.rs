//! What programs counted, without the events: `perf kvm stat`, `perf-prof kvm-exit`, `kvm_stat`, bcc's
//! `kvmexit`, `perf stat -e kvm:*`, and exits by number of bpftrace and SystemTap.
//!
//! ```text
//! text --words--> rows of a name with its numbers --> Counted: one a program
//! ```
//! A mailer may have wrapped the rows, so they are found among the words, not the lines. Sources: tools/perf/builtin-kvm.c and
//! builtin-stat.c, tools/kvm/kvm_stat/kvm_stat, Linux 6.12.

mod by_number;
mod debugfs;
mod devices;
mod kvm_stat;
mod kvmexit;
mod perf_kvm;
mod perf_prof;
mod perf_stat;

pub use devices::{Device, device};

use base::Problem;
use base::recording::{PartKind, Recording};
use std::io::Read;

/// A text of sums has some hundred rows.
const MOST_BYTES: u64 = 4 << 20;

/// Rows of one text that are kept: KVM has some hundred tracepoints, exits by port or address some thousand.
const MOST_ROWS: usize = 10_000;

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Counter {
        PerfKvmStat = "perf kvm stat",
        PerfProf = "perf-prof kvm-exit",
        KvmStat = "kvm_stat",
        KvmExit = "bcc kvmexit",
        PerfStat = "perf stat",
        Debugfs = "KVM's debugfs",
        Bpftrace = "bpftrace",
        SystemTap = "SystemTap's kvm_service_time",
    }
}

/// What a program counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    pub machine: String,
    /// The file, as the user names it.
    pub path: String,
    pub by: Counter,
    pub rows: Vec<Row>,
    /// What it says that all rows add up to, of which somebody may have left some out.
    pub total: Option<Total>,
    /// For how long it counted, where it tells.
    pub seconds: Option<f64>,
}

impl Counted {
    /// Whether each row counts exits of one reason, so that all of them add up to the exits.
    pub fn is_of_exits(&self) -> bool {
        !matches!(self.by, Counter::KvmStat | Counter::PerfStat | Counter::Debugfs)
    }
}

/// The last line of `perf kvm stat`: how many exits, and how long all were handled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total {
    pub count: u64,
    pub ns: f64,
}

/// One kind of event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    pub name: String,
    pub count: u64,
    /// Of all that the text has, or of the row that it is a part of.
    pub count_share: Option<f64>,
    /// The row that it is a part of: `kvm_exit` of its reasons.
    pub share_of: Option<String>,
    /// Of the time in which exits were handled.
    pub time_share: Option<f64>,
    pub min_ns: Option<f64>,
    pub mean_ns: Option<f64>,
    pub max_ns: Option<f64>,
    pub per_second: Option<f64>,
}

/// All that the recording has of it.
#[derive(Debug, Default)]
pub struct Counts {
    pub list: Vec<Counted>,
}

impl Counts {
    /// Reads the parts of `recording`; what cannot be read becomes a problem.
    pub fn of(recording: &Recording) -> (Self, Vec<Problem>) {
        let (mut counts, mut problems) = (Self::default(), Vec::new());
        for part in recording.parts.iter().filter(|part| part.kind == PartKind::Counts) {
            let path = recording.as_named(&part.path.display().to_string()).into_owned();
            let mut bytes = Vec::new();
            let read = base::files::open(&recording.root.join(&part.path))
                .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
            let text = String::from_utf8_lossy(&bytes);
            match (read, counted(&text)) {
                (Ok(_), Some((by, rows, seconds))) => {
                    let total = (by == Counter::PerfKvmStat).then(|| perf_kvm::total(&text)).flatten();
                    counts.list.push(Counted { machine: part.machine.clone(), path, by, rows, total, seconds });
                }
                (Ok(_), None) => {
                    let sentence = format!("{path}: no row has a count");
                    problems.push(Problem::at(
                        path,
                        None,
                        "rows of perf kvm stat, kvm_stat or perf stat",
                        "none",
                        0,
                        sentence,
                    ));
                }
                (Err(error), _) => problems.push(Problem::at(path, None, "counts", "none", 0, error.to_string())),
            }
        }
        (counts, problems)
    }
}

/// Finds rows in a text, and for how long they were counted.
type Reader = fn(&str) -> (Vec<Row>, Option<f64>);

const READERS: [(Counter, Reader); 8] = [
    (Counter::Bpftrace, by_number::bpftrace),
    (Counter::SystemTap, by_number::service_time),
    (Counter::KvmExit, kvmexit::read),
    (Counter::PerfProf, perf_prof::read),
    (Counter::Debugfs, debugfs::read),
    (Counter::PerfKvmStat, perf_kvm::read),
    (Counter::KvmStat, kvm_stat::read),
    (Counter::PerfStat, perf_stat::read),
];

/// What a text has of one program: the first that finds rows in it.
fn counted(text: &str) -> Option<(Counter, Vec<Row>, Option<f64>)> {
    READERS.into_iter().find_map(|(by, read)| {
        let (mut rows, seconds) = read(text);
        rows.truncate(MOST_ROWS);
        (!rows.is_empty()).then_some((by, rows, seconds))
    })
}

/// A count as programs print it: `331506`, `331,506`, or with what a locale puts between thousands: `331.506`, `331'506`, `331 506`.
fn count(word: &str) -> Option<u64> {
    let is_between = |letter: char| ",.'\u{2019} \u{202f}\u{a0}".contains(letter);
    let mut groups = word.split(is_between);
    let is_number = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next().filter(|first| !first.is_empty() && is_number(first))?;
    let fits =
        groups.all(|group| group.len() == 3 && is_number(group)) && (first.len() <= 3 || first.len() == word.len());
    fits.then(|| word.chars().filter(|letter| !is_between(*letter)).collect::<String>().parse().ok())?
}

/// A number with a unit behind it: `95.85%`, `29.41us`.
fn with_unit(word: &str, unit: &str) -> Option<f64> {
    word.strip_suffix(unit)?.replace(',', ".").parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests;
