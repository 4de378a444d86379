//! Independent pieces of work, on all CPUs, or on one where others have theirs.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on this thread alone: whoever runs several pieces of work at a time has given each its CPU.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    /// Also where `work` panics.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(true));
    work()
}

/// Threads that work which is asked for here may take, this one among them.
pub fn threads() -> usize {
    if ALONE.get() { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) }
}

/// What `work` makes of 0, 1, ... `count` - 1, in this order.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_with(count, || (), |(), number| work(number))
}

/// The same with something that each thread makes once and uses again.
pub fn map_with<S, T: Send>(
    count: usize,
    make: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut own = make();
        let numbers =
            std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < count));
        numbers.map(|number| (number, work(&mut own, number))).collect::<Vec<_>>()
    };
    let threads = threads().min(count);
    let mut all = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
        let mut all = some();
        for helper in helpers {
            all.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_order_whoever_made_them() {
        let squares = map(1_000, |number| number * number);
        assert!(squares.iter().enumerate().all(|(number, square)| *square == number * number));
        assert_eq!(squares.len(), 1_000);
        assert!(map(0, |number| number).is_empty());
        let counted = map_with(
            100,
            || 0,
            |done, _| {
                *done += 1;
                *done
            },
        );
        let began = counted.iter().filter(|done| **done == 1).count();
        let threads = threads();
        assert!((1..=threads).contains(&began), "made once by each thread: {began} times by {threads}");
    }
    #[test]
    fn work_alone_stays_on_its_thread_and_what_comes_later_does_not() {
        let here = std::thread::current().id();
        let everywhere = threads();
        let ran_on = alone(|| map(100, |_| (std::thread::current().id(), alone(threads))));
        assert!(ran_on.iter().all(|ran| *ran == (here, 1)));
        assert!(std::panic::catch_unwind(|| alone(|| panic!("as a piece of work may"))).is_err());
        assert_eq!(threads(), everywhere);
    }
}
