//! Does a window cost more than it has to, and is it open for longer than it has to be?

use super::super::machines::Host;
use super::super::measured::{Channel, MPROTECT, Measured, NONE, PKEY, Series};
use super::super::rules::{OPEN, WINDOW_SHARE};
use super::{MOST_SHOWN, by_machine, by_path, hit, of_path, seen, setup, timed};
use base::number::{duration, percent};
use base::shell::quoted;
use base::{Cost, CostKind, Severity};
use facts::ring::Model;
use facts::rule::Hit;

/// mprotect where keys would do.
pub(crate) fn mprotect(channel: &Channel<'_>) -> Vec<Hit> {
    let is_keyed = |host: &Host| {
        let has_measured = channel.measured().any(|one| one.machine == host.machine && one.setup.window == PKEY);
        has_measured || host.has_pku == Some(true)
    };
    let slow = |host: &Host, one: &Measured<'_>| {
        (timed(one) && one.setup.window == MPROTECT && is_keyed(host)).then(|| one.window_ns())?
    };
    let found = by_machine(channel, slow).into_iter().map(|(host, own)| {
        let (one, ns) = own[0];
        let keyed = channel.like(one, |setup| setup.window = PKEY.to_owned());
        let keyed = keyed.and_then(|series| Some((series.first(), series.first().window_ns()?)));
        let instead = match keyed {
            Some((_, keyed_ns)) => format!("{} with pkey", duration(keyed_ns)),
            None => "this processor has protection keys".to_owned(),
        };
        let title = format!("mprotect takes {} to open and close a window; {instead}", duration(ns));
        let mut found = hit(one, host.machine.clone(), Severity::Medium, title)
            .with(seen(format!("{}: {} for each batch", one.name(), duration(ns)), one));
        found.explains = own.iter().map(|(one, _)| format!("CHN-WINDOW@{}", of_path(one))).collect();
        found.explains.dedup();
        match keyed {
            Some((keyed, keyed_ns)) => {
                found = found.with(seen(format!("{}: {} for each batch", keyed.name(), duration(keyed_ns)), keyed));
                found.cost = Cost::of(CostKind::Measured, ns - keyed_ns, "ns per batch");
            }
            None => found = found.seen("the flags pku and ospke are there", host::processor::CPUINFO),
        }
        found
    });
    found.collect()
}

/// The share of a batch's time that its window takes. Both are medians, each of its own runs: above 1 they do not fit each other.
fn window_share(one: &Measured<'_>) -> Option<f64> {
    Some(one.window_ns()? / one.batch_ns()?)
}

/// Batches too small for their window.
pub(crate) fn window(channel: &Channel<'_>) -> Vec<Hit> {
    let paths = by_path(channel, |one| {
        let share = window_share(one).filter(|share| *share > WINDOW_SHARE)?;
        (timed(one) && one.setup.window != NONE).then_some(share)
    });
    let found = paths.into_iter().map(|own| {
        let (worst, share) = own[0];
        let series = channel.like(worst, |_| {});
        let halved = series.map(|series| halved(series, worst.setup.batch));
        let (words, batch) = match halved {
            Some((words, batch)) => (words, batch),
            None => (String::new(), None),
        };
        let (window, at) = (&worst.setup.window, worst.setup.batch);
        let title = if share > 1.0 {
            format!(
                "Opening and closing the {window} window takes about as long as a whole batch at batch {at}, measured apart; {words}"
            )
        } else {
            let share = percent(share);
            format!("{share} of a batch's time goes into opening and closing the {window} window at batch {at}; {words}")
        };
        let largest = series.and_then(|series| window_share(series.measured.last()?));
        let severity = if largest.is_some_and(|share| share > WINDOW_SHARE) { Severity::Medium } else { Severity::Low };
        let mut found = hit(worst, of_path(worst), severity, title);
        if share <= 1.0 {
            found.cost = Cost::of(CostKind::Measured, share, "share of a batch's time");
        }
        if let Some(batch) = batch {
            found.fix =
                vec![format!("kvmscope bench channel --window {} --batch {batch}", quoted(&worst.setup.window))];
        } else {
            found.fix = vec![format!(
                "kvmscope bench channel --window {} --batch 1,8,32,64,128,256   # which batch makes it cheap enough",
                quoted(&worst.setup.window)
            )];
        }
        own.iter().take(MOST_SHOWN).fold(found, |hit, (one, share)| {
            let [window, batch] =
                [one.window_ns(), one.batch_ns()].map(|ns| ns.map_or_else(|| "-".to_owned(), duration));
            let of = if *share > 1.0 {
                format!("{window} beside {batch}, which do not fit each other")
            } else {
                format!("{window} of {batch}, {}", percent(*share))
            };
            hit.with(seen(format!("{}: {of}", setup(one)), one))
        })
    });
    found.collect()
}

/// Which batch halves the window's share of this one, in words and as a number. Both shares are the model's: one that does not fit the batch
/// would else say that a smaller one does.
fn halved(series: &Series<'_>, batch: u32) -> (String, Option<u32>) {
    let half = |model: &Model| model.batch_with_window(model.window_ns / model.batch_ns(batch)? / 2.0);
    match series.model.as_ref().map(|model| (model, half(model))) {
        Ok((_, Ok(batch))) => (format!("by the model batch {batch} halves that"), Some(batch)),
        Ok((model, Err(_))) => {
            (format!("by the model no batch from {} to {} halves that", model.least, model.most), None)
        }
        Err(_) => {
            ("fewer than three batches have a clean rate, so no model predicts which one halves that".to_owned(), None)
        }
    }
}

/// Windows that are open most of the time.
pub(crate) fn open(channel: &Channel<'_>) -> Vec<Hit> {
    let paths = by_path(channel, |one| one.open_share().filter(|share| *share > OPEN && timed(one)));
    let found = paths.into_iter().map(|own| {
        let (worst, share) = own[0];
        let title = format!(
            "For {} of the time the {} window is open at batch {}",
            percent(share),
            worst.setup.window,
            worst.setup.batch
        );
        let mut found = hit(worst, of_path(worst), Severity::Medium, title);
        // There is no smaller batch than one frame.
        let smaller = Some(worst.setup.batch / 2).filter(|batch| *batch > 0);
        let window = quoted(&worst.setup.window);
        found.fix = smaller
            .map(|batch| format!("kvmscope bench channel --window {window} --batch {batch}"))
            .into_iter()
            .collect();
        own.iter().take(MOST_SHOWN).fold(found, |hit, (one, share)| {
            let sides = one.launches.iter().flat_map(|(_, run)| run.sides());
            let longest = sides.map(|side| side.open_max_ns).max().unwrap_or(0);
            let longest =
                if longest > 0 { format!(", {} at the longest", duration(longest as f64)) } else { String::new() };
            hit.with(seen(format!("{}: open {} of the time{longest}", setup(one), percent(*share)), one))
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{Made, of_batches};
    use super::super::tests::{NOTHING, found, ids};
    use base::channel::Side;
    use std::slice::from_ref;

    #[test]
    fn mprotect_is_told_where_keys_were_measured_or_could_be() {
        let window =
            |window, window_ns| Made { window, window_ns, batch_ns: 640.0 + 10.0 * window_ns, ..Made::default() };
        let (slow, keyed) = (window("mprotect", 7_795.0), window("pkey", 28.8));
        let findings = found(&[slow.clone(), keyed], |_| {});
        assert_eq!(findings.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["CHN-MPROTECT"]);
        assert_eq!(findings[0].title, "mprotect takes 7.8 us to open and close a window; 28.8 ns with pkey");
        assert_eq!(ids(from_ref(&slow)), NOTHING, "nobody knows whether this processor has keys");
        let with = |has_pku| found(from_ref(&slow), |channel| channel.hosts[0].has_pku = Some(has_pku)).len();
        assert_eq!((with(true), with(false)), (1, 0));
    }

    #[test]
    fn a_batch_too_small_for_its_window_is_told_with_the_one_that_halves_it() {
        let line = |window_ns: f64, batches: &[u32]| {
            of_batches(batches, |n| window_ns + 60.0 + 14.0 * n, |made| Made { window: "pkey", window_ns, ..made })
        };
        // 28.8 of 102.8 ns; 14.0 % of 205.7 ns: 116.9 ns are left for 8.35 frames.
        let findings = found(&line(28.8, &[1, 8, 32, 64]), |_| {});
        assert_eq!((findings.len(), findings[0].rule), (1, "CHN-WINDOW"));
        let title = "28.0 % of a batch's time goes into opening and closing the pkey window at batch 1; by the model batch 9 halves that";
        assert_eq!((findings[0].title.as_str(), findings[0].severity), (title, base::Severity::Low));
        assert_eq!(findings[0].fix, ["kvmscope bench channel --window pkey --batch 9"]);
        assert_eq!(ids(&line(28.8, &[8, 32, 64])), NOTHING, "14.2 %");
        let dear = found(&line(7_795.0, &[1, 8, 32, 64]), |_| {});
        assert!(dear[0].title.ends_with("by the model no batch from 1 to 64 halves that"), "{}", dear[0].title);
        assert_eq!(dear[0].severity, base::Severity::Medium);
        let two = found(&line(28.8, &[1, 8]), |_| {});
        assert!(two[0].title.contains("no model predicts which"), "{}", two[0].title);
    }

    #[test]
    fn a_window_that_takes_longer_than_the_batch_is_no_share_of_it() {
        let one = Made { window: "mprotect", window_ns: 7_795.0, batch_ns: 7_750.0, ..Made::default() };
        let findings = found(from_ref(&one), |_| {});
        let window = findings.iter().find(|finding| finding.rule == "CHN-WINDOW").unwrap();
        let title =
            "Opening and closing the mprotect window takes about as long as a whole batch at batch 32, measured apart";
        assert!(window.title.starts_with(title), "{}", window.title);
        assert!(window.cost.value.is_none() && !format!("{window:?}").contains('%'), "{window:?}");
        assert!(format!("{:?}", window.evidence).contains("which do not fit each other"), "{:?}", window.evidence);
    }

    #[test]
    fn a_window_that_is_open_most_of_the_time_is_told() {
        let side =
            |open_ns| Side { windows: 1_000, open_ns, open_max_ns: 81_000, cpu_ns: 300_000_000, ..Side::default() };
        let made = |open_ns| Made { window: "pkey", window_ns: 28.8, consumer: side(open_ns), ..Made::default() };
        let findings = found(&[made(156_000_000)], |_| {});
        assert_eq!(findings[0].title, "For 52.0 % of the time the pkey window is open at batch 32");
        assert_eq!(findings[0].fix, ["kvmscope bench channel --window pkey --batch 16"]);
        let single = found(&[Made { batch: 1, window_ns: 0.0, ..made(156_000_000) }], |_| {});
        assert!(single[0].fix.is_empty(), "no batch is smaller than one");
        assert_eq!((ids(&[made(156_000_000)]), ids(&[made(147_000_000)])), (vec!["CHN-OPEN"], vec![]));
    }
}
