//! What an end of a ring takes for a frame, out of the user's own `kvmscope bench channel`.
//!
//! ```text
//! clean rate of each size, at the batch that is asked for --1000 / Mpps--> ns of the slower end
//! window that was measured: its own rates; one that was modelled: the line of the rates without a window, with its price in it
//! ns of all sizes --least squares--> ns + ns_per_byte s; ranges of launches and what the line leaves are the spread
//! ```
//! Nothing is said of sizes outside of those that were measured, and nothing comes from guests that were emulated.

use crate::measured::{Channel, Series};
use base::channel::{BENCH, Setup};
use base::number::{decimals, list};
use facts::benches::Benches;
use facts::machines::Machines;
use facts::ring::{ChannelCost, ChannelUse, Model};
use facts::{Input, Known};

/// The paths that can stand for a ring, the plain one first.
const PATHS: [&str; 2] = ["ring", "ring-ro"];

struct Point {
    bytes: f64,
    ns: f64,
    /// Between the fastest and the slowest launch.
    range_ns: (f64, f64),
}

/// The cost of an end of a ring `used` so, by what `input`, a recording of name `from`, measured; `None` if it has no bench of the channel.
pub fn ring_cost(input: &Input, used: &ChannelUse, from: &str) -> Option<Result<Known<ChannelCost>, String>> {
    let has_bench = input.benches.runs.iter().any(|run| run.bench.bench == BENCH);
    has_bench.then(|| cost(&input.benches, &input.machines, used, from))
}

/// The cost of an end, as `used`, by benches of the channel; `from` is the recording's name.
///
/// # Errors
/// A sentence for the user: what the recording lacks, and how to measure it.
fn cost(benches: &Benches, machines: &Machines, used: &ChannelUse, from: &str) -> Result<Known<ChannelCost>, String> {
    let channel = Channel::of(benches, machines);
    let ChannelUse { window, batch } = used;
    let how = "measure them: kvmscope bench channel --batch 1,8,32,64 --size 64,512,1518 -o DIR";
    let Some(path) = PATHS.iter().find(|path| rings(&channel, path).next().is_some()) else {
        return Err(format!("{from} has no verified rates of a ring between two processes that poll; {how}"));
    };
    let priced = |machine: &str| {
        let host = channel.hosts.iter().find(|host| host.machine == machine)?;
        host.modelled().into_iter().find(|(name, ..)| name == window).map(|(_, ns, ..)| ns)
    };
    let own: Vec<&Series<'_>> = rings(&channel, path).filter(|series| series.first().setup.window == *window).collect();
    let is_modelled = own.is_empty();
    let (mut points, mut sweeps, mut refused) = (Vec::new(), Vec::new(), None);
    let plain = || rings(&channel, path).filter(|series| series.first().setup.window == "none").collect();
    for series in if is_modelled { plain() } else { own } {
        let first = series.first();
        let price = if is_modelled { priced(first.machine) } else { None };
        if is_modelled && price.is_none() {
            continue;
        }
        let bytes = first.setup.size_bytes;
        match (&series.model, price) {
            (Ok(model), Some(ns)) => sweeps.push((bytes, model.with_window(ns))),
            (Ok(model), None) => sweeps.push((bytes, model.clone())),
            (Err(why), _) => refused = Some(why.to_string()),
        }
        points.extend(point(series, *batch, price));
    }
    if points.is_empty() {
        let windows = windows(&channel, path);
        return Err(match refused {
            _ if !windows.contains(window) => {
                format!("{from} says nothing of window {window}; it has {}", list(&windows))
            }
            Some(why) => format!("{from} has no clean rate of batch {batch} with window {window}, and {why}; {how}"),
            None => format!(
                "{from} has no clean rate of batch {batch} with window {window}, nor of batches around it; {how}"
            ),
        });
    }
    let value = fit(&points, sweeps);
    let kind = if is_modelled { "window modelled, rest measured" } else { "measured" };
    let sizes = if points.len() > 1 {
        format!("{} to {} bytes", value.sizes.start(), value.sizes.end())
    } else {
        format!("{} bytes alone", value.sizes.start())
    };
    let from = format!(
        "{kind}, from {from}: {path}, window {window}, batch {batch}, {sizes}; off by a factor of {} at most",
        decimals(value.spread, 2)
    );
    Ok(Known { value, from })
}

/// Series of a path between two processes of one machine that poll, whose frames were looked at.
fn rings<'c, 'b>(channel: &'c Channel<'b>, path: &'c str) -> impl Iterator<Item = &'c Series<'b>> {
    let machine = channel.hosts.first().map(|host| host.machine.as_str());
    channel.series.iter().filter(move |series| {
        let one = series.first();
        let Setup { path: own, policy, vms, .. } = one.setup;
        let is_ring = own == path && policy == "poll" && *vms == 2 && Some(one.machine) == machine;
        is_ring && !one.is_emulated() && series.measured.iter().all(|one| one.is_verified())
    })
}

/// Windows of which something is known: those that were measured, then those that are modelled.
fn windows(channel: &Channel<'_>, path: &str) -> Vec<String> {
    let mut windows: Vec<String> = rings(channel, path).map(|series| series.first().setup.window.clone()).collect();
    let modelled = channel.hosts.first().map(|host| host.modelled()).unwrap_or_default();
    windows.extend(modelled.into_iter().map(|(name, ..)| name.to_owned()));
    let mut seen = std::collections::BTreeSet::new();
    windows.retain(|window| seen.insert(window.clone()));
    windows
}

/// What an end takes at one size: as it was measured, or by the line where the batch lies between measured ones or the window is modelled.
fn point(series: &Series<'_>, batch: u32, price: Option<f64>) -> Option<Point> {
    let frames = f64::from(batch);
    let bytes = f64::from(series.first().setup.size_bytes);
    let measured = series.at(batch).filter(|_| price.is_none()).and_then(|one| Some((one.batch_ns()?, one)));
    if let Some((batch_ns, one)) = measured {
        let ns = batch_ns / frames;
        let range_ns = one.range_mpps().map_or((ns, ns), |(low, high)| (1_000.0 / high, 1_000.0 / low));
        return Some(Point { bytes, ns, range_ns });
    }
    let model = series.model.as_ref().ok()?;
    let model = price.map_or_else(|| model.clone(), |ns| model.with_window(ns));
    let ns = model.batch_ns(batch).ok()? / frames;
    // The line is as far off there as it is anywhere in its sweep.
    let off = series.measured.iter().filter_map(|one| {
        let (seen, said) = (one.batch_ns()?, series.model.as_ref().ok()?.batch_ns(one.setup.batch).ok()?);
        Some((seen / said).max(said / seen))
    });
    let off = off.fold(1.0, f64::max);
    Some(Point { bytes, ns, range_ns: (ns / off, ns * off) })
}

/// The line of least squares over sizes; a time that falls with the size is noise, and the spread says how far off the line is.
fn fit(points: &[Point], sweeps: Vec<(u32, Model)>) -> ChannelCost {
    let count = points.len() as f64;
    let bytes = points.iter().map(|point| point.bytes).sum::<f64>() / count;
    let ns = points.iter().map(|point| point.ns).sum::<f64>() / count;
    let across: f64 = points.iter().map(|point| (point.bytes - bytes).powi(2)).sum();
    let rise = points.iter().map(|point| (point.bytes - bytes) * (point.ns - ns)).sum::<f64>();
    let rise = if across > 0.0 { (rise / across).clamp(0.0, ns / bytes) } else { 0.0 };
    let line = |size: f64| ns + (size - bytes) * rise;
    let off = |point: &Point| {
        let said = line(point.bytes);
        (point.range_ns.1 / said).max(said / point.range_ns.0)
    };
    let sizes = points.iter().map(|point| point.bytes as u32);
    ChannelCost {
        ns: line(0.0),
        ns_per_byte: rise,
        spread: points.iter().map(off).fold(1.0, f64::max),
        sizes: sizes.clone().min().unwrap_or(0)..=sizes.max().unwrap_or(0),
        sweeps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Made, benches, of_batches};

    /// A sweep of batches for two sizes, of which each byte costs 0.02 ns.
    fn sweeps(change: impl Fn(Made) -> Made) -> Vec<Made> {
        let of = |size: u32| {
            let ns = move |n: f64| 64.0 + n * (10.0 + 0.02 * f64::from(size));
            of_batches(&[1, 8, 32, 64], ns, |made| change(Made { size, ..made }))
        };
        [64, 512].into_iter().flat_map(of).collect()
    }

    fn known(made: &[Made], window: &str, batch: u32) -> Result<Known<ChannelCost>, String> {
        cost(&benches(made), &Machines::default(), &ChannelUse { window: window.into(), batch }, "bed")
    }

    #[test]
    fn a_rate_at_the_batch_becomes_the_time_of_an_end() {
        let Known { value, from } = known(&sweeps(|made| made), "none", 32).unwrap();
        // 64 ns over 32 frames, and 10 and 0.02 for each byte.
        assert!((value.ns - 12.0).abs() < 0.01 && (value.ns_per_byte - 0.02).abs() < 1e-5, "{value:?}");
        assert_eq!((value.sizes.clone(), value.sweeps.len()), (64..=512, 2));
        assert!(from.starts_with("measured, from bed: ring, window none, batch 32, 64 to 512 bytes; off by"), "{from}");
        let between = known(&sweeps(|made| made), "none", 16).unwrap().value;
        assert!((between.ns - 14.0).abs() < 0.01, "by the line between 8 and 32: {between:?}");
        assert!(known(&sweeps(|made| made), "none", 128).unwrap_err().contains("no clean rate of batch 128"));
    }

    #[test]
    fn a_window_that_nobody_has_stands_on_the_rates_without_one_and_says_so() {
        let Known { value, from } = known(&sweeps(|made| made), "vmfunc+trampoline", 32).unwrap();
        // 196 ns more for a batch of 32.
        assert!((value.ns - 12.0 - 196.0 / 32.0).abs() < 0.01, "{value:?}");
        assert!(from.starts_with("window modelled, rest measured, from bed"), "{from}");
        let why = known(&sweeps(|made| made), "pkey", 32).unwrap_err();
        assert!(why.starts_with("bed says nothing of window pkey; it has none, vmfunc"), "{why}");
    }

    #[test]
    fn emulated_unverified_and_sleeping_ends_say_nothing_of_a_ring() {
        let changes: [fn(Made) -> Made; 4] = [
            |made| Made { emulated: true, ..made },
            |made| Made { verified: false, ..made },
            |made| Made { policy: "kick", ..made },
            |made| Made { path: "memif", ..made },
        ];
        for change in changes {
            let why = known(&sweeps(change), "none", 32).unwrap_err();
            assert!(why.starts_with("bed has no verified rates of a ring between two processes that poll"), "{why}");
        }
    }

    fn point(bytes: f64, ns: f64, off: f64) -> Point {
        Point { bytes, ns, range_ns: (ns / off, ns * off) }
    }

    #[test]
    fn the_line_goes_through_sizes_and_its_spread_has_every_launch_in_it() {
        let cost = fit(&[point(64.0, 14.0, 1.1), point(512.0, 22.96, 1.0), point(1518.0, 43.08, 1.2)], Vec::new());
        assert!((cost.ns - 12.72).abs() < 1e-6 && (cost.ns_per_byte - 0.02).abs() < 1e-9, "{cost:?}");
        assert!((cost.spread - 1.2).abs() < 1e-9 && cost.sizes == (64..=1518), "{cost:?}");
        let one = fit(&[point(64.0, 14.0, 1.05)], Vec::new());
        assert_eq!((one.ns, one.ns_per_byte, one.sizes), (14.0, 0.0, 64..=64));
        let falling = fit(&[point(64.0, 20.0, 1.0), point(512.0, 10.0, 1.0)], Vec::new());
        assert!(falling.ns_per_byte == 0.0 && (falling.spread - 1.5).abs() < 1e-9, "{falling:?}");
    }
}
