//! How much of any window of a length was lost, exactly?
//!
//! ```text
//! lost      ####   ##      #######         S(t): what was lost before t
//! window      |<----- W ----->|            f(t) = S(t) - S(t - W), for every t that a window can end at
//! ```
//! f is piecewise linear with slopes -1, 0 and 1, so it is largest where a window ends at the end of a stretch or starts at the
//! start of one, or at the ends of what was recorded. Times are integers and stretches half-open. (A. Mok and others call
//! W - max f(W) the supply bound of a resource.)

use base::Span;
use std::ops::Range;

/// Stretches of time in order, none of which touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretches {
    spans: Vec<Span>,
    /// How much of them lies before each, and before the end.
    before_ns: Vec<u64>,
    /// Those that are longer than all before them; the last one is the longest.
    longer: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InAll {
    pub total_ns: u64,
    pub longest_ns: u64,
    /// The worst window; `None` if what was looked at is shorter.
    pub worst: Option<Worst>,
}

/// The window in which most was lost; the earliest of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worst {
    pub at_ns: u64,
    /// How much of it was lost.
    pub loss_ns: u64,
}

/// What a loss is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A loss as large as this is too large: the goal is `<`.
    AtLeast(u64),
    /// Only a larger one is: the goal is `<=`.
    Above(u64),
}

/// When the window that ends just then had lost too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// The ends of such windows, in order.
    pub spans: Vec<Span>,
    /// How long these are together.
    pub total_ns: u64,
    /// How long the ends of all windows are.
    pub of_ns: u64,
}

/// Stretches that are ruled out together.
const BLOCK: usize = 16;

/// Of very many stretches so many are held at a time: 1.5 MB.
pub(super) const HELD: usize = 1 << 16;

impl Worst {
    fn or(&mut self, at_ns: u64, loss_ns: u64) {
        if loss_ns > self.loss_ns || loss_ns == self.loss_ns && at_ns < self.at_ns {
            *self = Worst { at_ns, loss_ns };
        }
    }

    /// True if no window of a group can take its place that loses `most_ns` at most and starts at `first_ns` at the earliest.
    fn rules_out(&self, most_ns: u64, first_ns: u64) -> bool {
        most_ns < self.loss_ns || most_ns == self.loss_ns && self.at_ns <= first_ns
    }
}

impl Limit {
    fn ns(self) -> u64 {
        match self {
            Limit::AtLeast(ns) | Limit::Above(ns) => ns,
        }
    }

    /// True if so much is too much.
    pub(crate) fn is_broken_by(self, loss_ns: u64) -> bool {
        match self {
            Limit::AtLeast(ns) => loss_ns >= ns,
            Limit::Above(ns) => loss_ns > ns,
        }
    }
}

impl Over {
    /// The share of all windows that had lost too much, where `outside_ns` of their ends are no time of the guest.
    pub fn share_without(&self, outside_ns: u64) -> f64 {
        let of_ns = self.of_ns.saturating_sub(outside_ns);
        if of_ns == 0 { 0.0 } else { self.total_ns.min(of_ns) as f64 / of_ns as f64 }
    }
}

/// [`Stretches::sup`] of very many spans in order, of which `most` are held at a time, and those that any window may need.
///
/// ```text
/// span       |-----------------------------------------|
/// looked at  |---------------|
///                        |------------|                   each begins a window before the end of the one before,
///                                 |--------------------|  so every window lies in one of them
/// ```
pub(super) fn sup_of_many(spans: impl Iterator<Item = Span>, most: usize, span: Span, window_ns: u64) -> Option<Worst> {
    let mut worst: Option<Worst> = None;
    let mut look = |held: &[Span], part: Span| {
        let found = Stretches::of(held.iter().copied()).sup(part, window_ns);
        match (&mut worst, found) {
            (Some(worst), Some(found)) => worst.or(found.at_ns, found.loss_ns),
            (None, found) => worst = found,
            (Some(_), None) => {}
        }
    };
    let (mut held, mut from_ns) = (Vec::with_capacity(most), span.from_ns);
    for next in spans.take_while(|next| next.from_ns < span.to_ns) {
        let is_long = next.from_ns.saturating_sub(from_ns) >= window_ns.saturating_mul(2);
        if held.len() >= most && is_long {
            look(&held, Span { from_ns, to_ns: next.from_ns });
            from_ns = next.from_ns - window_ns;
            held.retain(|known: &Span| known.to_ns > from_ns);
        }
        held.push(next);
    }
    look(&held, Span { from_ns, to_ns: span.to_ns });
    worst
}

impl Stretches {
    /// Of `spans` in the order of their starts; those that touch or overlap become one, empty ones nothing.
    pub fn of(spans: impl IntoIterator<Item = Span>) -> Self {
        let spans = spans.into_iter();
        // Those that are given are in memory as well.
        let most = spans.size_hint().1.unwrap_or(0);
        Self::of_most(most, spans)
    }

    /// The same of `most` spans at most.
    fn of_most(most: usize, spans: impl Iterator<Item = Span>) -> Self {
        let mut merged: Vec<Span> = Vec::with_capacity(most);
        for span in spans.filter(|span| span.length_ns() > 0) {
            match merged.last_mut() {
                Some(last) if span.from_ns <= last.to_ns => last.to_ns = last.to_ns.max(span.to_ns),
                _ => merged.push(span),
            }
        }
        let mut before_ns = Vec::with_capacity(merged.len() + 1);
        let (mut sum_ns, mut longest_ns, mut longer) = (0, 0, Vec::new());
        for (place, span) in merged.iter().enumerate() {
            before_ns.push(sum_ns);
            sum_ns += span.length_ns();
            if span.length_ns() > longest_ns {
                longest_ns = span.length_ns();
                longer.push(place);
            }
        }
        before_ns.push(sum_ns);
        Self { spans: merged, before_ns, longer }
    }

    #[must_use]
    pub fn or(&self, other: &Stretches) -> Self {
        let (mut own, mut others) = (self.spans.iter().peekable(), other.spans.iter().peekable());
        let earlier = std::iter::from_fn(|| match (own.peek(), others.peek()) {
            (Some(one), Some(other)) if other.from_ns < one.from_ns => others.next(),
            (None, _) => others.next(),
            _ => own.next(),
        });
        Self::of_most(self.spans.len() + other.spans.len(), earlier.copied())
    }

    /// The stretches, in order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The longest one; the earliest of several.
    pub fn longest(&self) -> Option<Span> {
        self.longer.last().map(|place| self.spans[*place])
    }

    /// What they come to, with the worst window of `window_ns` inside `span`.
    pub fn in_all(&self, span: Span, window_ns: u64) -> InAll {
        let longest_ns = self.longest().map_or(0, |longest| longest.length_ns());
        InAll { total_ns: self.total_ns(), longest_ns, worst: self.sup(span, window_ns) }
    }

    pub fn total_ns(&self) -> u64 {
        self.before_ns[self.spans.len()]
    }

    /// How much of them lies in `span`.
    pub fn within(&self, span: Span) -> u64 {
        self.until(span.to_ns).saturating_sub(self.until(span.from_ns))
    }

    /// S(t).
    fn until(&self, at_ns: u64) -> u64 {
        self.begun_until(self.spans.partition_point(|span| span.from_ns < at_ns), at_ns)
    }

    /// S(t), before which the first `begun` start.
    fn begun_until(&self, begun: usize, at_ns: u64) -> u64 {
        let Some(last) = begun.checked_sub(1) else { return 0 };
        let Span { from_ns, to_ns } = self.spans[last];
        self.before_ns[last] + to_ns.min(at_ns) - from_ns
    }

    /// The worst window of `window_ns` inside `span`; `None` if that is shorter than the window.
    pub fn sup(&self, span: Span, window_ns: u64) -> Option<Worst> {
        if window_ns == 0 || span.length_ns() < window_ns {
            return None;
        }
        // The last start of a window, and the first end of one.
        let (last_ns, first_ns) = (span.to_ns - window_ns, span.from_ns + window_ns);
        // None loses more than one that is lost whole.
        let fills = self.longer.iter().map(|place| self.spans[*place]).find(|long| long.length_ns() >= window_ns);
        if let Some(at_ns) = fills.map(|long| long.from_ns).filter(|at_ns| (span.from_ns..=last_ns).contains(at_ns)) {
            return Some(Worst { at_ns, loss_ns: window_ns });
        }
        let loss_from = |at_ns: u64| self.within(Span { from_ns: at_ns, to_ns: at_ns + window_ns });
        let mut worst = Worst { at_ns: span.from_ns, loss_ns: loss_from(span.from_ns) };
        // What is likely to be the worst rules out most of the rest.
        let likely = self.longest().map(|longest| longest.from_ns.clamp(span.from_ns, last_ns));
        likely.into_iter().chain([last_ns]).for_each(|at_ns| worst.or(at_ns, loss_from(at_ns)));
        let starts_before = |at_ns: u64| self.spans.partition_point(|span| span.from_ns < at_ns);
        self.starting(starts_before(span.from_ns)..starts_before(last_ns), window_ns, &mut worst);
        let ends_before = |at_ns: u64| self.spans.partition_point(|span| span.to_ns < at_ns);
        self.ending(ends_before(first_ns)..ends_before(span.to_ns), window_ns, &mut worst);
        Some(worst)
    }

    /// Windows that start where one of the stretches at `places` does.
    fn starting(&self, places: Range<usize>, window_ns: u64, worst: &mut Worst) {
        // Of all blocks the first `blocks`, and of all stretches the first `begun`, start before the window's end.
        let (mut blocks, mut begun) = (places.start / BLOCK, 0);
        for first in places.clone().step_by(BLOCK) {
            let block = &self.spans[first..(first + BLOCK).min(places.end)];
            let (from_ns, last_end_ns) = (block[0].from_ns, block[block.len() - 1].from_ns + window_ns);
            let known = blocks * BLOCK;
            while self.spans.get(blocks * BLOCK).is_some_and(|span| span.from_ns < last_end_ns) {
                blocks += 1;
            }
            let most_ns = self.before_ns[(blocks * BLOCK).min(self.spans.len())] - self.before_ns[first];
            if worst.rules_out(most_ns.min(window_ns), from_ns) {
                continue;
            }
            begun = begun.max(known.saturating_sub(BLOCK)).max(first);
            for (place, span) in (first..).zip(block) {
                let end_ns = span.from_ns + window_ns;
                while self.spans.get(begun).is_some_and(|span| span.from_ns < end_ns) {
                    begun += 1;
                }
                worst.or(span.from_ns, self.begun_until(begun, end_ns) - self.before_ns[place]);
            }
        }
    }

    /// Windows that end where one of the stretches at `places` does.
    fn ending(&self, places: Range<usize>, window_ns: u64, worst: &mut Worst) {
        // The block at `blocks`, and the first `begun` stretches, start before the window's start.
        let (mut blocks, mut begun) = (0, 0);
        for first in places.clone().step_by(BLOCK) {
            let behind = (first + BLOCK).min(places.end);
            let from_ns = self.spans[first].to_ns - window_ns;
            while self.spans.get((blocks + 1) * BLOCK).is_some_and(|span| span.from_ns <= from_ns) {
                blocks += 1;
            }
            let most_ns = self.before_ns[behind] - self.before_ns[blocks * BLOCK];
            if worst.rules_out(most_ns.min(window_ns), from_ns) {
                continue;
            }
            begun = begun.max(blocks * BLOCK);
            for place in first..behind {
                let at_ns = self.spans[place].to_ns - window_ns;
                while self.spans.get(begun).is_some_and(|span| span.from_ns < at_ns) {
                    begun += 1;
                }
                worst.or(at_ns, self.before_ns[place + 1] - self.begun_until(begun, at_ns));
            }
        }
    }

    /// The worst windows that do not overlap, `most` at most: the worst of all, then the worst of what is left, and so on. Those
    /// without a loss are left out. Of several that are lost whole the first is where the longest stretch begins.
    pub fn worst_disjoint(&self, span: Span, window_ns: u64, most: usize) -> Vec<Worst> {
        let with_worst = |span: Span| self.sup(span, window_ns).map(|worst| (span, worst));
        let at_longest = self.longest().and_then(|longest| {
            let at_ns = longest.from_ns.max(span.from_ns);
            let is_whole = window_ns > 0 && longest.to_ns.min(span.to_ns) >= at_ns.saturating_add(window_ns);
            is_whole.then_some((span, Worst { at_ns, loss_ns: window_ns }))
        });
        let mut free: Vec<(Span, Worst)> = at_longest.or_else(|| with_worst(span)).into_iter().collect();
        let mut chosen = Vec::new();
        while chosen.len() < most {
            let rank = |(_, worst): &(Span, Worst)| (worst.loss_ns, std::cmp::Reverse(worst.at_ns));
            let Some(place) = (0..free.len()).max_by_key(|place| rank(&free[*place])) else { break };
            let (span, worst) = free.swap_remove(place);
            if worst.loss_ns == 0 {
                break;
            }
            chosen.push(worst);
            let before = Span { to_ns: worst.at_ns, ..span };
            let behind = Span { from_ns: worst.at_ns + window_ns, ..span };
            free.extend([before, behind].into_iter().filter_map(with_worst));
        }
        chosen
    }

    /// When the last `window_ns` had lost too much, for all windows inside `span`; `None` if that is shorter than the window.
    pub fn over(&self, span: Span, window_ns: u64, limit: Limit) -> Option<Over> {
        if window_ns == 0 || span.length_ns() < window_ns {
            return None;
        }
        let (mut now_ns, end_ns) = (span.from_ns + window_ns, span.to_ns);
        let mut over = Over { spans: Vec::new(), total_ns: 0, of_ns: end_ns - now_ns };
        let (mut enters, mut leaves) = (Edge::at(self, now_ns), Edge::at(self, span.from_ns));
        let mut loss_ns = self.until(now_ns) - self.until(span.from_ns);
        while now_ns < end_ns {
            let next_ns = enters.next_ns(self).min(leaves.next_ns(self).saturating_add(window_ns)).min(end_ns);
            let length_ns = next_ns - now_ns;
            let limit_ns = limit.ns();
            let (from_ns, to_ns) = match (enters.is_inside, leaves.is_inside) {
                (true, false) => (now_ns + limit_ns.saturating_sub(loss_ns).min(length_ns), next_ns),
                (false, true) => (now_ns, now_ns + loss_ns.saturating_sub(limit_ns).min(length_ns)),
                _ if limit.is_broken_by(loss_ns) => (now_ns, next_ns),
                _ => (now_ns, now_ns),
            };
            over.add(Span { from_ns, to_ns });
            loss_ns += if enters.is_inside { length_ns } else { 0 };
            loss_ns -= if leaves.is_inside { length_ns } else { 0 };
            now_ns = next_ns;
            enters.pass(self, now_ns);
            leaves.pass(self, now_ns - window_ns);
        }
        Some(over)
    }
}

impl Over {
    fn add(&mut self, span: Span) {
        if span.length_ns() == 0 {
            return;
        }
        self.total_ns += span.length_ns();
        match self.spans.last_mut().filter(|last| last.to_ns == span.from_ns) {
            Some(last) => last.to_ns = span.to_ns,
            None => self.spans.push(span),
        }
    }
}

/// One end of a window on its way over the stretches.
struct Edge {
    /// The stretch that it is in, or reaches next.
    place: usize,
    is_inside: bool,
}

impl Edge {
    fn at(stretches: &Stretches, at_ns: u64) -> Self {
        let place = stretches.spans.partition_point(|span| span.to_ns <= at_ns);
        Self { place, is_inside: stretches.spans.get(place).is_some_and(|span| span.from_ns <= at_ns) }
    }

    /// Where it enters or leaves a stretch next.
    fn next_ns(&self, stretches: &Stretches) -> u64 {
        let next = stretches.spans.get(self.place);
        next.map_or(u64::MAX, |span| if self.is_inside { span.to_ns } else { span.from_ns })
    }

    fn pass(&mut self, stretches: &Stretches, at_ns: u64) {
        if self.next_ns(stretches) == at_ns {
            self.place += usize::from(self.is_inside);
            self.is_inside = !self.is_inside;
        }
    }
}

#[cfg(test)]
mod tests;
