//! Exits by the number of their reason: maps of `bpftrace`, and SystemTap's example `kvm_service_time.stp`.
//!
//! ```text
//! # bpftrace -e 'tracepoint:kvm:kvm_exit { @exits[args->exit_reason] = count(); } interval:s:10 { exit(); }'
//! @exits[12]: 18402
//! reason: count sum(us) min(us) avg(us) max(us)
//! 12: 182 29145513 58 160140 500054
//! ```
//! VMX and SVM number them apart, and neither program says which it counted: numbers that one of them alone has tell it, and without one the
//! numbers stay. Sources: arch/x86/include/uapi/asm/{vmx,svm}.h, Linux 6.12; bpftrace(8) 0.21; testsuite/systemtap.examples, SystemTap 5.0.

use super::{Row, count};
use std::collections::BTreeMap;
use walk::events::{Isa, Reason};

/// HLT, IOIO, MSR, INTR and NPF of SVM: VMX has no number above 77.
const OF_SVM: [u64; 5] = [0x60, 0x78, 0x7b, 0x7c, 0x400];

/// External interrupts, HLT and EPT violations of VMX: SVM's low numbers are accesses to control and debug registers, and there is no CR1 nor CR12.
const OF_VMX: [u64; 3] = [1, 12, 48];

/// The name of each number.
fn namer<'n>(numbers: impl Iterator<Item = &'n u64> + Clone) -> impl Fn(u64) -> String {
    let has = |known: &[u64]| numbers.clone().any(|number| known.contains(number));
    let isa = match (has(&OF_VMX), has(&OF_SVM)) {
        (true, false) => Some(Isa::Vmx),
        (false, true) => Some(Isa::Svm),
        _ => None,
    };
    move |number| isa.map_or_else(|| format!("reason {number}"), |isa| Reason::of(isa, number).name())
}

/// `@exits[CPU 0/KVM, 30]: 240113`: its last key and its count.
fn of_map(line: &str) -> Option<(u64, u64)> {
    let (key, told) = line.trim().strip_prefix('@')?.split_once("]:")?;
    let number = key.split_once('[')?.1.rsplit(',').next()?.trim();
    Some((number.parse().ok()?, count(told.trim())?))
}

/// For how long a script counts: `interval:s:10`, or `sleep 10`.
fn counted_for(line: &str) -> Option<f64> {
    let behind = ["interval:s:", "sleep "].iter().find_map(|sign| line.split_once(sign))?.1;
    let end = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
    behind[..end].parse().ok().filter(|seconds: &f64| *seconds > 0.0)
}

pub(super) fn bpftrace(text: &str) -> (Vec<Row>, Option<f64>) {
    let script = text.lines().find(|line| line.contains("bpftrace") && line.contains("kvm_exit"));
    let Some(script) = script else { return (Vec::new(), None) };
    let seconds = counted_for(script);
    let mut reasons: BTreeMap<u64, u64> = BTreeMap::new();
    for (number, exits) in text.lines().filter_map(of_map) {
        let sum = reasons.entry(number).or_default();
        *sum = sum.saturating_add(exits);
    }
    let all = reasons.values().fold(0_u64, |all, exits| all.saturating_add(*exits)).max(1) as f64;
    let name = namer(reasons.keys());
    let row = |(number, exits): (&u64, &u64)| Row {
        name: name(*number),
        count: *exits,
        count_share: Some(*exits as f64 / all),
        per_second: seconds.map(|seconds| *exits as f64 / seconds),
        ..Row::default()
    };
    (reasons.iter().map(row).collect(), seconds)
}

/// Count, sum, least, mean and most in us behind the number and its colon.
fn of_service(line: &str) -> Option<(u64, [u64; 5])> {
    let (number, told) = line.trim().split_once(':')?;
    let told: Vec<u64> = told.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some((number.parse().ok()?, told.try_into().ok()?))
}

pub(super) fn service_time(text: &str) -> (Vec<Row>, Option<f64>) {
    let Some(head) = text.lines().position(|line| line.contains(SERVICE_TIME)) else { return (Vec::new(), None) };
    let rows: Vec<(u64, [u64; 5])> = text.lines().skip(head + 1).map_while(of_service).collect();
    let sum = |of: usize| rows.iter().fold(0_u64, |sum, (_, told)| sum.saturating_add(told[of])).max(1) as f64;
    let (all, us) = (sum(0), sum(1));
    let numbers: Vec<u64> = rows.iter().map(|(number, _)| *number).collect();
    let name = namer(numbers.iter());
    let row = |(number, [exits, sum, least, _, most]): &(u64, [u64; 5])| Row {
        name: name(*number),
        count: *exits,
        count_share: Some(*exits as f64 / all),
        time_share: Some(*sum as f64 / us),
        min_ns: Some(*least as f64 * 1e3),
        // Its own mean is cut to whole ones.
        mean_ns: (*exits > 0).then(|| *sum as f64 * 1e3 / *exits as f64),
        max_ns: Some(*most as f64 * 1e3),
        ..Row::default()
    };
    (rows.iter().map(row).collect(), None)
}

/// The head of its columns.
const SERVICE_TIME: &str = "reason: count sum(us) min(us)";
