//! `kvmexit` of bcc (tools/kvmexit.py, 0.30): exits by reason, of each thread or of one.
//!
//! ```text
//! Display kvm exit reasons and statistics for all threads after sleeping 10 secs.
//! PID      TID      KVM_EXIT_REASON                     COUNT
//! 16761    16768    EXTERNAL_INTERRUPT                  93
//! 16761    16768    HLT                                 5965
//! ```
//! Of one process or thread the columns in front are missing; versions have `EXIT_TIME_AVG` in ns behind, and one of arm64 the thread's name
//! (`b'CPU 3/KVM'`) and `AVG_TIME`. What threads have of one
//! reason is added up.

use super::{Row, count};
use std::collections::BTreeMap;

/// Exits of one reason, and how long all took in ns, where each row tells its mean.
#[derive(Default)]
struct Sum {
    count: u64,
    ns: f64,
    is_timed: bool,
}

pub(super) fn read(text: &str) -> (Vec<Row>, Option<f64>) {
    let (mut head, mut seconds): (Vec<&str>, Option<f64>) = (Vec::new(), None);
    let mut reasons: BTreeMap<&str, Sum> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        seconds = seconds.or_else(|| slept(&words));
        if words.contains(&"KVM_EXIT_REASON") && words.contains(&"COUNT") {
            head = words;
            continue;
        }
        // Ctrl-C, which ends it, is printed before the first row.
        let of = |name: &str| {
            let place = head.iter().position(|column| *column == name)?;
            // Names of threads have blanks, so that the columns behind them count from the end.
            let comm = head.iter().position(|column| *column == "COMM");
            let more = words
                .len()
                .checked_sub(head.len())
                .filter(|more| *more == 0 || comm.is_some_and(|comm| comm < place))?;
            words.get(place + more).map(|word| word.trim_start_matches("^C"))
        };
        let (Some(reason), Some(exits)) = (of("KVM_EXIT_REASON"), of("COUNT").and_then(count)) else { continue };
        let mean_ns = of("EXIT_TIME_AVG")
            .or_else(|| of("AVG_TIME"))
            .and_then(|ns| ns.parse::<f64>().ok())
            .filter(|ns| ns.is_finite());
        let sum = reasons.entry(reason.trim_start_matches("EXIT_REASON_").trim_start_matches("EC_")).or_default();
        sum.is_timed = mean_ns.is_some() && (sum.is_timed || sum.count == 0);
        sum.count = sum.count.saturating_add(exits);
        sum.ns += mean_ns.unwrap_or(0.0) * exits as f64;
    }
    let all = reasons.values().fold(0_u64, |all, sum| all.saturating_add(sum.count)) as f64;
    let row = |(name, sum): (&str, Sum)| Row {
        name: name.to_owned(),
        count: sum.count,
        count_share: (all > 0.0).then(|| sum.count as f64 / all),
        mean_ns: (sum.is_timed && sum.count > 0).then(|| sum.ns / sum.count as f64),
        per_second: seconds.map(|seconds| sum.count as f64 / seconds),
        ..Row::default()
    };
    (reasons.into_iter().map(row).collect(), seconds)
}

/// `.. after sleeping 10 secs.`
fn slept(words: &[&str]) -> Option<f64> {
    let place = words.iter().position(|word| *word == "sleeping")?;
    words.get(place + 1)?.parse().ok().filter(|seconds: &f64| *seconds > 0.0 && words.contains(&"kvm"))
}
