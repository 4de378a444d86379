//! What did `bench exits` measure of this host? The two points that the model starts from.
//!
//! In: what each test of `bench exits` took. Out: c1, what nesting adds, and what other exits cost at L1.
//! ```text
//! bench at L0, whose tiny L1 ran an L2    cpuid of the guest, l2_cpuid     D is a lower bound: that L1 does next to nothing
//! bench in L1                             cpuid here, cpuid of the guest   D as real hypervisors have it
//! ```
//! A CPUID that this KVM did not see (0 exits an operation) was answered by somebody else and is no point of either.

use super::inputs::Stated;
use crate::measured::exits::Row;
use facts::estimate::Estimate;

/// From this on an operation exited each time.
const ONE_EXIT: f64 = 0.5;

/// Tests of `bench exits` and the reasons, as table `exits` of `flow` calls them, whose cost at L1 they are.
const TESTS: &[(&str, &[&str])] = &[
    ("inl_from_kernel", &["IO", "IOIO"]),
    ("rd_tsc_adjust_msr", &["MSR"]),
    ("vmcall", &["VMCALL", "VMMCALL"]),
    ("touch_4k", &["EPT_VIOLATION", "NPF"]),
    ("ud2", &["EXCEPTION_NMI", "UD_EXCP"]),
    ("tscdeadline_immed", &["TSC_DEADLINE"]),
];

/// Adds what was measured to what the user gave; what the user gave stays. The text says where D comes from.
pub fn add(stated: &mut Stated, rows: &[Row]) -> Option<&'static str> {
    let find = |name: &str, place: &str| rows.iter().find(|row| row.name == name && row.place == place);
    let guest = |name: &str| find(name, "guest").filter(|row| row.exits_per_op >= Some(ONE_EXIT));
    let l1 = guest("cpuid").and_then(cost);
    let (c1, c2, how) = match guest("l2_cpuid").and_then(cost) {
        Some(c2) => (l1?, c2, "measured with a minimal L1, which does next to nothing: a lower bound"),
        None => {
            let below = find("cpuid", "here").filter(|row| row.handled_by == Some("outer level"));
            (below.and_then(cost)?, l1?, "measured in L1 and in its guest")
        }
    };
    if guest("l2_cpuid").is_some() {
        let measured = |(test, reasons): &(&str, &'static [&'static str])| Some((*reasons, cost(guest(test)?)?));
        for (reasons, cost) in TESTS.iter().filter_map(measured) {
            let new = reasons.iter().filter(|reason| stated.costs.iter().all(|(known, _)| known != **reason));
            let new: Vec<_> = new.map(|reason| ((*reason).to_owned(), cost)).collect();
            stated.costs.extend(new);
        }
    }
    stated.c1.get_or_insert(c1);
    stated.d.get_or_insert(c2.less(c1));
    Some(how)
}

/// The median, with the interval between launches where there were several.
fn cost(row: &Row) -> Option<Estimate> {
    let mid = row.p50()?;
    let (low, high) = row.interval().unwrap_or((mid, mid));
    Some(Estimate { low: low.min(mid), mid, high: high.max(mid) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&str, &str, u64, f64, &'static str)]) -> Vec<Row> {
        let row = |(name, place, cycles, exits, by): &(&str, &str, u64, f64, &'static str)| {
            Row::of_one_launch(name, place, *cycles, *exits, by)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn two_points_come_from_a_tiny_l1_or_from_a_bench_inside_l1() {
        let mut stated = Stated::default();
        let tiny = rows(&[
            ("cpuid", "here", 120, 0.0, "native"),
            ("cpuid", "guest", 1_200, 1.0, "kernel"),
            ("l2_cpuid", "guest", 9_200, 5.0, "kernel"),
            ("inl_from_kernel", "guest", 1_900, 1.0, "kernel"),
        ]);
        assert!(add(&mut stated, &tiny).unwrap().contains("lower bound"));
        let within = |value: f64, exact: f64| (value - exact).abs() <= exact / 1_000.0;
        assert!(within(stated.c1.unwrap().mid, 1_200.0) && within(stated.d.unwrap().mid, 8_000.0), "{stated:?}");
        assert!(stated.costs[0].0 == "IO" && within(stated.costs[0].1.mid, 1_900.0), "{stated:?}");
        let mut inside = Stated { c1: Some(Estimate::exact(1_000.0)), ..Stated::default() };
        let l1 = rows(&[("cpuid", "here", 1_350, 0.0, "outer level"), ("cpuid", "guest", 20_700, 1.0, "kernel")]);
        assert!(add(&mut inside, &l1).is_some());
        assert!(inside.c1.unwrap().mid == 1_000.0 && within(inside.d.unwrap().mid, 19_350.0), "{inside:?}");
    }

    #[test]
    fn an_exit_that_somebody_else_answered_is_no_point() {
        let mut stated = Stated::default();
        let pvm = rows(&[("cpuid", "here", 2_600, 0.0, "outer level"), ("cpuid", "guest", 2_675, 0.0, "outer level")]);
        assert_eq!((add(&mut stated, &pvm), stated), (None, Stated::default()));
    }
}
