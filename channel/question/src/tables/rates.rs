//! Table `rates`: what each setup carried and what a packet costs, by measurement and, with other windows, by a model.

use super::super::costs::{Costs, notify_ns};
use super::super::measured::{Channel, Measured, NONE, Series};
use super::super::windows;
use super::{MPPS, rounded};
use base::channel::Setup;
use base::{Cell, Shown, Table, TableSpec, shown, table};
use facts::ring::Model;

/// What was measured, in column `window_kind`.
const MEASURED: &str = "measured";
const MODELLED: &str = "modelled";
/// The path whose window is swapped for published ones.
const SWAPPED_ON: &str = "ring";

/// What each setup carried.
pub(super) const RATES: TableSpec = table! {
    channel.rates version 1:
    "What one setup carried: medians over launches, clean_mpps over slices that neither side saw a gap in (none where fewer than a fifth of \
          them were), low_mpps and high_mpps the range of its launches. Times are per packet: a window's is measured, copy_ns and index_ns are \
          fitted over the batches of a setup, residual_ns is what the fit leaves. Rows of window_kind `modelled` are such a fit with a window \
          of a published or given price: none of them was measured. Of more than two machines, and through a switch, rates are sums over all that receive, and \
          dropped are frames that a switch had no room for. Times of emulated rows are the emulator's.";
    key machine, key path, key window, key window_kind, key_u64("bytes") size_bytes, key_u64("count") batch, key policy,
    key_u64("count") vms, f64(MPPS) raw_mpps, f64(MPPS) clean_mpps, f64(MPPS) low_mpps, f64(MPPS) high_mpps,
    f64("ns") copy_ns, f64("ns") index_ns, f64("ns") window_ns, f64("ns") notify_ns, f64("ns") residual_ns,
    f64("s/Mpkt") cpu_s_per_mpkt, share open_share, count lost, count duplicated, count reordered, count torn,
    count dropped, flag emulated;
    Shown {
        grouped_by: Some("window_kind"),
        ..shown![
            "What each path carries, and what a packet costs", 60;
            path, window, window_kind: "kind", size_bytes: "frame", batch, policy, vms: "VMs", clean_mpps: "clean",
            low_mpps: "from", high_mpps: "to", raw_mpps: "raw", copy_ns: "copy", index_ns: "index",
            window_ns: "window", notify_ns: "kicks", residual_ns: "residual", open_share: "open",
        ]
    }
};

/// Table [`RATES`]: what was measured, then what models say.
pub(crate) fn rates(channel: &Channel<'_>) -> Table {
    let mut table = Table::new(&RATES);
    for series in &channel.series {
        for one in &series.measured {
            table.push_named(row(one, &Costs::of(channel, series, one)));
        }
    }
    for (series, _, window, model) in swapped(channel) {
        let notify_ns = notify_ns(channel, series);
        for one in &series.measured {
            let frames = f64::from(one.setup.batch);
            let Ok(mpps) = model.mpps(one.setup.batch) else { continue };
            let costs = Costs {
                copy_ns: Some(model.copy_ns),
                index_ns: Some((model.index_ns - notify_ns.unwrap_or(0.0)) / frames),
                window_ns: Some(model.window_ns / frames),
                notify_ns: notify_ns.map(|ns| ns / frames),
                residual_ns: None,
            };
            let rate = ("clean_mpps", rounded(Some(mpps), 1e4));
            table.push_named(names(one, window, MODELLED).into_iter().chain([rate]).chain(steps(&costs)));
        }
    }
    table
}

/// Series without a window whose model tells what a published one, or one that was given, would change: the series, its machine, the
/// window's name, the model.
pub(crate) fn swapped<'c, 'b>(
    channel: &'c Channel<'b>,
) -> impl Iterator<Item = (&'c Series<'b>, &'c str, &'c str, Model)> {
    let open = |series: &&Series<'_>| {
        let setup = series.first().setup;
        setup.path == SWAPPED_ON && setup.window == NONE && setup.vms == 2
    };
    channel.series.iter().filter(open).flat_map(move |series| {
        let host = channel.host(series.first());
        let ns_per_tick = host.and_then(|host| host.ns_per_tick);
        let given = host.map_or(&[][..], |host| &host.given);
        windows::modelled(given, ns_per_tick).into_iter().filter_map(move |(name, ns, ..)| {
            Some((series, series.first().machine, name, series.model.as_ref().ok()?.with_window(ns)))
        })
    })
}

type Named = (&'static str, Cell);

fn row(one: &Measured<'_>, costs: &Costs) -> impl Iterator<Item = Named> {
    let (low, high) = one.range_mpps().unzip();
    let rates = [
        ("raw_mpps", rounded(one.raw_mpps(), 1e4)),
        ("clean_mpps", rounded(one.clean_mpps(), 1e4)),
        ("low_mpps", rounded(low, 1e4)),
        ("high_mpps", rounded(high, 1e4)),
        ("cpu_s_per_mpkt", rounded(one.cpu_s_per_mpkt(), 1e6)),
        ("open_share", rounded(one.open_share(), 1e6)),
        ("dropped", one.sum(|run| run.dropped).into()),
        ("emulated", one.is_emulated().into()),
    ];
    let wrong = one.wrong().map(|(name, count)| (name, Cell::from(count)));
    names(one, &one.setup.window, MEASURED).into_iter().chain(rates).chain(steps(costs)).chain(wrong)
}

fn names(one: &Measured<'_>, window: &str, kind: &str) -> [Named; 8] {
    let Setup { path, size_bytes, batch, policy, vms, .. } = one.setup;
    [
        ("machine", one.machine.into()),
        ("path", path.as_str().into()),
        ("window", window.into()),
        ("window_kind", kind.into()),
        ("size_bytes", u64::from(*size_bytes).into()),
        ("batch", u64::from(*batch).into()),
        ("policy", policy.as_str().into()),
        ("vms", u64::from(*vms).into()),
    ]
}

fn steps(costs: &Costs) -> [Named; 5] {
    let Costs { copy_ns, index_ns, window_ns, notify_ns, residual_ns } = *costs;
    let named = [
        ("copy_ns", copy_ns),
        ("index_ns", index_ns),
        ("window_ns", window_ns),
        ("notify_ns", notify_ns),
        ("residual_ns", residual_ns),
    ];
    named.map(|(name, ns)| (name, rounded(ns, 1e3)))
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{Made, benches, of_batches};
    use super::*;
    use facts::machines::Machines;

    fn rates_of(made: &[Made]) -> Table {
        let benches = benches(made);
        rates(&Channel::of(&benches, &Machines::default()))
    }

    #[test]
    fn launches_of_a_setup_are_a_row_with_their_median_and_range() {
        let launch = |launch, batch_ns| Made { launch, batch_ns, raw: 0.5, ..Made::default() };
        let rates = rates_of(&[launch(0, 640.0), launch(1, 800.0), launch(2, 500.0)]);
        let row = rates.rows().next().unwrap();
        let number = |name| (row.number(name).unwrap() * 10.0).round() / 10.0;
        assert_eq!(["raw_mpps", "clean_mpps", "low_mpps", "high_mpps"].map(number), [25.0, 50.0, 40.0, 64.0]);
        assert_eq!((rates.rows.len(), row.number("lost"), row.number("copy_ns")), (1, Some(0.0), None));
        // 300 ms of either side for 7.5 million frames.
        assert!((row.number("cpu_s_per_mpkt").unwrap() - 0.08).abs() < 1e-6, "{row:?}");
    }

    #[test]
    fn what_nobody_looked_at_is_unknown_and_not_nothing() {
        let made = Made { verified: false, clean: 0.19, ..Made::default() };
        let rates = rates_of(&[made]);
        let row = rates.rows().next().unwrap();
        for name in ["clean_mpps", "low_mpps", "lost", "torn", "open_share", "notify_ns"] {
            assert_eq!(row.cell(name), Some(&Cell::Missing), "{name}");
        }
        assert!(row.number("raw_mpps").is_some());
    }

    #[test]
    fn frames_that_both_ends_counted_are_known_to_be_lost_though_nobody_looked() {
        let made = Made { path: "memif", verified: false, counted: true, wrong: [3, 0, 0, 0], ..Made::default() };
        let rates = rates_of(&[made]);
        let row = rates.rows().next().unwrap();
        assert_eq!((row.number("lost"), row.cell("duplicated")), (Some(3.0), Some(&Cell::Missing)));
    }

    #[test]
    fn published_windows_are_rows_of_their_own_kind_without_an_interval() {
        let made = of_batches(&[1, 8, 32], |n| 60.0 + 14.0 * n, |made| made);
        let rates = rates_of(&made);
        let modelled: Vec<_> = rates.rows().filter(|row| row.text("window_kind") == Some("modelled")).collect();
        assert_eq!((rates.rows.len(), modelled.len()), (3 + 9, 9));
        let is = |row: &&base::table::Row<'_>| {
            row.text("window") == Some("vmfunc+trampoline") && row.number("batch") == Some(32.0)
        };
        let row = modelled.iter().copied().find(|row| is(&row)).unwrap();
        // 196 + 60 + 448 ns.
        assert!((row.number("clean_mpps").unwrap() - 32_000.0 / 704.0).abs() < 0.01, "{row:?}");
        for name in ["raw_mpps", "low_mpps", "high_mpps", "residual_ns", "lost", "open_share", "cpu_s_per_mpkt"] {
            assert_eq!(row.cell(name), Some(&Cell::Missing), "{name}");
        }
        assert!(rates.rows().take(3).all(|row| row.text("window_kind") == Some("measured")));
    }

    #[test]
    fn a_price_that_was_given_is_modelled_beside_the_published_ones_and_instead_of_its_namesake() {
        let mut benches = benches(&of_batches(&[1, 8, 32], |n| 60.0 + 14.0 * n, |made| made));
        let given = "vmfunc=100, mine=20".to_owned();
        benches.runs[0].bench.environment.insert(base::channel::GIVEN_WINDOWS.to_owned(), given);
        let rates = rates(&Channel::of(&benches, &Machines::default()));
        let of = |window: &str| -> Vec<f64> {
            let rows =
                rates.rows().filter(|row| row.text("window") == Some(window) && row.number("batch") == Some(32.0));
            rows.map(|row| row.number("clean_mpps").unwrap().round()).collect()
        };
        // 100, 20 and 196 ns beside 60 + 448.
        assert_eq!([of("vmfunc"), of("mine"), of("vmfunc+trampoline")], [[53.0], [61.0], [45.0]]);
        assert!(
            rates
                .rows()
                .filter(|row| row.text("window") == Some("mine"))
                .all(|row| row.text("window_kind") == Some("modelled"))
        );
    }

    #[test]
    fn two_batches_and_other_windows_are_no_ground_for_models() {
        let two = of_batches(&[1, 8], |n| 60.0 + 14.0 * n, |made| made);
        let pkey =
            of_batches(&[1, 8, 32], |n| 90.0 + 14.0 * n, |made| Made { window: "pkey", window_ns: 30.0, ..made });
        let rates = rates_of(&[two, pkey].concat());
        assert!(rates.rows().all(|row| row.text("window_kind") == Some("measured")));
    }
}
