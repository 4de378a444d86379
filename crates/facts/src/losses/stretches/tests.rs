//! Published vectors, the laws of windows, and brute force.

use super::*;
use proptest::prelude::*;

fn stretches(spans: &[(u64, u64)]) -> Stretches {
    Stretches::of(spans.iter().map(|(from_ns, to_ns)| Span { from_ns: *from_ns, to_ns: *to_ns }))
}

const fn until(to_ns: u64) -> Span {
    Span { from_ns: 0, to_ns }
}

/// Vectors whose answers were checked by another program: stretches, span, and what is lost in the worst window of 1,000.
const V1: &[(u64, u64)] = &[(200, 212), (990, 1_004), (1_500, 1_509), (1_985, 1_993), (2_600, 2_605)];
const V2: &[(u64, u64)] = &[(100, 110), (500, 8_498), (9_000, 9_005)];
const V3: &[(u64, u64)] = &[(10, 20), (950, 965), (1_015, 1_030), (1_990, 2_000), (3_005, 3_006)];

/// The largest sum in windows that stand side by side from 0 on: what most tools print.
fn tumbling(stretches: &Stretches, span: Span, window_ns: u64) -> u64 {
    let starts = (span.from_ns..span.to_ns).step_by(window_ns as usize);
    let windows = starts.map(|from_ns| Span { from_ns, to_ns: (from_ns + window_ns).min(span.to_ns) });
    windows.map(|window| stretches.within(window)).max().unwrap_or(0)
}

#[test]
fn the_worst_window_of_each_vector_is_found_and_tumbling_ones_miss_it() {
    for (spans, length_ns, at_ns, exact, aligned) in
        [(V1, 4_000, 990, 28, 22), (V2, 10_000, 500, 1_000, 1_000), (V3, 4_000, 30, 30, 25)]
    {
        let (stretches, span) = (stretches(spans), until(length_ns));
        assert_eq!(stretches.sup(span, 1_000), Some(Worst { at_ns, loss_ns: exact }));
        assert_eq!(tumbling(&stretches, span, 1_000), aligned);
    }
    let v3 = stretches(V3);
    assert_eq!(v3.within(Span { from_ns: 30, to_ns: 1_030 }), 30, "the window that ends at 1030");
}

#[test]
fn the_curve_of_the_first_vector_is_the_published_one() {
    let v1 = stretches(V1);
    let curve = [(5, 5), (14, 14), (100, 14), (500, 17), (520, 23), (1_000, 28), (1_003, 31), (2_000, 43)];
    for (window_ns, loss_ns) in curve {
        assert_eq!(v1.sup(until(4_000), window_ns).unwrap().loss_ns, loss_ns, "{window_ns}");
    }
}

#[test]
fn the_golden_thread_loses_what_its_three_stretches_say() {
    let lost = stretches(&[(1_000, 2_000), (5_000, 12_500), (29_000, 31_000)]);
    let sup = |window_ns| lost.sup(until(40_000), window_ns).unwrap().loss_ns;
    assert_eq!([12_000, 10_000, 30_000].map(sup), [8_500, 7_500, 10_500]);
}

#[test]
fn the_time_over_a_limit_is_measured_and_its_stretches_are_named() {
    let v1 = stretches(V1);
    let over = v1.over(until(4_000), 1_000, Limit::Above(20)).unwrap();
    assert_eq!((over.total_ns, over.of_ns), (701, 3_000));
    assert_eq!(over.spans.iter().map(Span::length_ns).sum::<u64>(), 701);
    assert!(over.spans.windows(2).all(|pair| pair[0].to_ns < pair[1].from_ns));
    assert_eq!(v1.over(until(4_000), 1_000, Limit::AtLeast(29)).unwrap().total_ns, 0);
    assert!(
        Limit::AtLeast(20).is_broken_by(20) && !Limit::Above(20).is_broken_by(20),
        "< 20 us is broken by 20.000 us"
    );
}

#[test]
fn a_recording_shorter_than_the_window_is_no_answer() {
    let v1 = stretches(V1);
    assert_eq!((v1.sup(until(999), 1_000), v1.over(until(999), 1_000, Limit::Above(1))), (None, None));
    assert!(v1.worst_disjoint(until(999), 1_000, 10).is_empty());
    assert!(v1.sup(until(1_000), 1_000).is_some() && v1.sup(until(1_000), 0).is_none());
    assert_eq!(stretches(&[]).sup(until(1_000), 10), Some(Worst { at_ns: 0, loss_ns: 0 }));
}

#[test]
fn the_next_worst_window_may_lie_at_the_border_of_the_one_before() {
    // The worst window of 10 is [20, 30); of what is left in front of it [10, 20) is, which neither starts nor ends at the
    // border of a stretch.
    let lost = stretches(&[(8, 30), (31, 32)]);
    let chosen = lost.worst_disjoint(until(60), 10, 9);
    assert_eq!(chosen[0], Worst { at_ns: 8, loss_ns: 10 });
    assert_eq!(chosen[1], Worst { at_ns: 18, loss_ns: 10 });
    assert_eq!(chosen[2], Worst { at_ns: 28, loss_ns: 3 });
    assert_eq!(chosen.len(), 3, "a window without a loss is none");
}

#[test]
fn stretches_that_touch_are_one() {
    let lost = stretches(&[(0, 5), (5, 9), (7, 8), (9, 9), (12, 13)]);
    assert_eq!(lost.spans(), [until(9), Span { from_ns: 12, to_ns: 13 }]);
    assert_eq!((lost.total_ns(), lost.longest()), (10, Some(until(9))));
    let both = lost.or(&stretches(&[(8, 12), (20, 21)]));
    assert_eq!(both.spans(), [until(13), Span { from_ns: 20, to_ns: 21 }]);
}

/// The answers by looking at every nanosecond and every window there is.
struct BruteForce {
    /// How many nanoseconds before each were lost.
    before_ns: Vec<u64>,
    span: Span,
    window_ns: u64,
    longest: Option<Span>,
}

impl BruteForce {
    fn of(stretches: &Stretches, span: Span, window_ns: u64) -> Self {
        let is_lost = |at_ns: u64| stretches.spans().iter().any(|lost| (lost.from_ns..lost.to_ns).contains(&at_ns));
        let sums = (0..span.to_ns).scan(0, |sum_ns, at_ns| {
            *sum_ns += u64::from(is_lost(at_ns));
            Some(*sum_ns)
        });
        let longest = stretches.longest();
        Self { before_ns: std::iter::once(0).chain(sums).collect(), span, window_ns, longest }
    }

    fn loss_ns(&self, at_ns: u64) -> u64 {
        self.before_ns[(at_ns + self.window_ns) as usize] - self.before_ns[at_ns as usize]
    }

    fn starts(&self) -> impl Iterator<Item = u64> + use<> {
        self.span.from_ns..(self.span.to_ns + 1).saturating_sub(self.window_ns).max(self.span.from_ns)
    }

    fn sup(&self, allowed: impl Fn(u64) -> bool) -> Option<Worst> {
        let all =
            self.starts().filter(|at_ns| allowed(*at_ns)).map(|at_ns| Worst { at_ns, loss_ns: self.loss_ns(at_ns) });
        all.reduce(|worst, next| if next.loss_ns > worst.loss_ns { next } else { worst })
    }

    fn worst_disjoint(&self, most: usize) -> Vec<Worst> {
        let is_lost = |at_ns: u64| self.before_ns[at_ns as usize + 1] > self.before_ns[at_ns as usize];
        let run_ns = |from_ns: u64| (from_ns..self.span.to_ns).take_while(|at_ns| is_lost(*at_ns)).count() as u64;
        // Where the longest stretch begins; one that begins before the span is as long as it was before it.
        let longest = self.longest.map(|longest| longest.from_ns.max(self.span.from_ns));
        let whole = longest.filter(|at_ns| *at_ns < self.span.to_ns && run_ns(*at_ns) >= self.window_ns);
        let mut chosen: Vec<Worst> = Vec::new();
        chosen.extend(whole.map(|at_ns| Worst { at_ns, loss_ns: self.window_ns }));
        while chosen.len() < most {
            let is_free = |at_ns: u64| chosen.iter().all(|one| one.at_ns.abs_diff(at_ns) >= self.window_ns);
            match self.sup(is_free).filter(|worst| worst.loss_ns > 0) {
                Some(worst) => chosen.push(worst),
                None => break,
            }
        }
        chosen
    }

    /// From one integer to the next f is linear.
    fn over_ns(&self, limit: Limit) -> f64 {
        let part = |at_ns: u64| {
            let (one, next) = (self.loss_ns(at_ns) as f64, self.loss_ns(at_ns + 1) as f64);
            let limit_ns = limit.ns() as f64;
            if one == next {
                f64::from(u8::from(limit.is_broken_by(one as u64)))
            } else {
                (one.max(next) - limit_ns).clamp(0.0, 1.0)
            }
        };
        self.starts().skip(1).map(|at_ns| part(at_ns - 1)).sum()
    }
}

prop_compose! {
    /// A few dozen stretches, some long, some touching, in a span that may cut the first and the last of them.
    fn any_case()(lengths in prop::collection::vec((0u64..30, prop_oneof![4 => 1u64..9, 1 => 1u64..60]), 0..60),
                  window_ns in prop_oneof![1u64..40, 40u64..400],
                  (cut_from, cut_to) in (0u64..50, 0u64..50)) -> (Stretches, Span, u64) {
        let mut at_ns = 0;
        let spans: Vec<Span> = lengths.iter().map(|(gap_ns, length_ns)| {
            let from_ns = at_ns + gap_ns;
            at_ns = from_ns + length_ns;
            Span { from_ns, to_ns: at_ns }
        }).collect();
        let span = Span { from_ns: cut_from.min(at_ns), to_ns: (at_ns + 20).saturating_sub(cut_to).max(cut_from.min(at_ns)) };
        (Stretches::of(spans), span, window_ns)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn every_answer_is_that_of_brute_force((stretches, span, window_ns) in any_case(), limit_ns in 0u64..60) {
        let brute = BruteForce::of(&stretches, span, window_ns);
        let fits = span.length_ns() >= window_ns;
        prop_assert_eq!(stretches.sup(span, window_ns), brute.sup(|_| true).filter(|_| fits));
        if !fits {
            return Ok(());
        }
        prop_assert_eq!(stretches.worst_disjoint(span, window_ns, 5), brute.worst_disjoint(5));
        for limit in [Limit::Above(limit_ns), Limit::AtLeast(limit_ns)] {
            let over = stretches.over(span, window_ns, limit).unwrap();
            prop_assert_eq!(over.total_ns as f64, brute.over_ns(limit));
            prop_assert_eq!(over.spans.iter().map(Span::length_ns).sum::<u64>(), over.total_ns);
            prop_assert!(over.spans.windows(2).all(|pair| pair[0].to_ns < pair[1].from_ns));
        }
    }

    #[test]
    fn what_is_held_in_parts_gives_the_same_worst_window((stretches, span, window_ns) in any_case(), most in 1usize..9) {
        let parts = sup_of_many(stretches.spans().iter().copied(), most, span, window_ns);
        prop_assert_eq!(parts, stretches.sup(span, window_ns));
    }

    #[test]
    fn the_laws_of_windows_hold((stretches, span, window_ns) in any_case(), more_ns in 1u64..200) {
        let Some(worst) = stretches.sup(span, window_ns) else { return Ok(()) };
        prop_assert!(worst.loss_ns <= window_ns);
        let whole = Span { to_ns: span.from_ns + span.length_ns() / window_ns * window_ns, ..span };
        prop_assert!(worst.loss_ns >= tumbling(&stretches, whole, window_ns));
        let other = stretches.sup(span, more_ns);
        if let (Some(both), Some(other)) = (stretches.sup(span, window_ns + more_ns), other) {
            prop_assert!(both.loss_ns >= worst.loss_ns, "monotone");
            prop_assert!(both.loss_ns <= worst.loss_ns + other.loss_ns, "sub-additive");
        }
    }
}
