//! How long is the longest of so many samples?

use super::goals_of;
use base::Figure;
use base::figure::{Axis, Curve, Curves, Drawing, Form, On};
use base::number::{duration, many, thousands};
use facts::Case;
use facts::samples::{SampleFile, Samples, by_percentile};
use std::cmp::Reverse;

/// Curves that are told apart.
const MOST_CURVES: usize = 6;

/// A curve for each thread of a result, the one with the longest sample first; none where no lengths were kept.
pub(super) fn figure(case: &Case, place: usize, file: &SampleFile) -> Option<Figure> {
    let mut threads: Vec<&Samples> = file.samples.iter().filter(|samples| samples.buckets.len() > 1).collect();
    threads.sort_by_key(|samples| Reverse(samples.extremes_ns().1));
    let left_out = threads.len().saturating_sub(MOST_CURVES) as u64;
    threads.truncate(MOST_CURVES);
    let first = threads.first()?;
    let one_in = |share: f64| first.quantile_ns(share).map(|ns| duration(ns as f64));
    let mut caption = format!("{} of {}", many(first.count, "sample"), label(first, file));
    // Of fewer samples than lie beyond it, a share is that of the longest one.
    let is_told = |share: f64| first.count as f64 * (1.0 - share) >= 1.0;
    for (share, name) in
        [(0.5, "half"), (0.99, "99 %"), (0.9999, "99.99 %")].into_iter().filter(|(share, _)| is_told(*share))
    {
        caption.extend(one_in(share).map(|ns| format!(", {name} within {ns}")));
    }
    caption.push('.');
    let curve = |samples: &&Samples| Curve {
        label: label(samples, file),
        form: Form::Steps,
        points: by_percentile(std::slice::from_ref(samples)),
    };
    let unkept: u64 = threads.iter().flat_map(|samples| unkept(samples)).sum();
    if unkept > 0 {
        let text =
            format!(" Of {} the file does not tell the length: drawn is the least it can be.", thousands(unkept));
        caption.push_str(&text);
    }
    if left_out > 0 {
        caption.push_str(&format!(" {} with shorter samples are not drawn.", many(left_out, "thread")));
    }
    Some(Figure {
        id: format!("percentiles-{place}"),
        title: format!("{} by percentile", title(file)),
        caption,
        in_terminals: false,
        drawing: Drawing::Curves(Curves {
            x: Axis { title: "1 in N samples is this long or longer".into(), unit: "count", is_logarithmic: true },
            y: Axis { title: "length".into(), unit: "ns", is_logarithmic: true },
            curves: threads.iter().map(curve).collect(),
            limits: goals_of(case, first).map(|goal| goal.drawn(On::Y)).collect(),
        }),
    })
}

/// What a picture of a result is about.
pub(super) fn title(file: &SampleFile) -> String {
    let program = file.samples.first().map_or("", |samples| samples.source.name());
    format!("Samples of {program} on {}", file.machine)
}

fn label(samples: &Samples, file: &SampleFile) -> String {
    let cpu = samples.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    match file.samples.len() {
        1 => format!("{}{cpu}", samples.source.name()),
        _ => format!("thread {}{cpu}", samples.thread),
    }
}

/// Counts of samples whose lengths the program did not keep.
pub(super) fn unkept(samples: &Samples) -> impl Iterator<Item = u64> {
    samples.buckets.iter().filter(|bucket| !samples.is_kept(bucket)).map(|bucket| bucket.count)
}
