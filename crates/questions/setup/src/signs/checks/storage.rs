//! What a commit waits for: flushes against writes.

use crate::placements::Model;
use crate::signs::Scene;
use base::number::{duration, plain};
use base::{Level, Severity};
use facts::rule::Hit;
use host::machine::{GaugeKind, Quoted};

/// A flush that takes so long bounds what commits: our own threshold.
pub(in crate::signs) const SLOW_NS: f64 = 2e6;

/// So many times as long as a write, it is the flush and not the disk as a whole: our own threshold.
pub(in crate::signs) const TIMES: f64 = 5.0;

pub(in crate::signs) fn flushes(scene: &Scene<'_>) -> Vec<Hit> {
    scene.models.iter().flat_map(|model| by_sums(model).into_iter().chain(by_fio(model))).collect()
}

/// A finding about one disk or job.
fn hit(model: &Model, subject: &str, flush: (f64, &str), write: (f64, &str)) -> Option<Hit> {
    if flush.0 < SLOW_NS || flush.0 < TIMES * write.0 {
        return None;
    }
    let title = format!(
        "a flush of {subject} takes {}, a write {}: sequential commits reach {} per second at most",
        duration(flush.0),
        duration(write.0),
        plain((1e9 / (flush.0 + write.0)).round())
    );
    let mut hit = Hit::new(subject, Severity::High, title);
    // What a guest's flushes wait for is below it.
    hit.level = Some(match model.level {
        Level::At(level @ 1..) => Level::At(level - 1),
        level => level,
    });
    Some(
        hit.seen(format!("a flush takes {}", duration(flush.0)), flush.1)
            .seen(format!("a write takes {}", duration(write.0)), write.1),
    )
}

/// By libvirt's or iostat's times.
fn by_sums(model: &Model) -> Vec<Hit> {
    let of = |kind: GaugeKind| model.machine.gauges.iter().filter(move |gauge| gauge.kind == kind);
    let pairs = of(GaugeKind::DiskFlush).filter_map(|flush| {
        let write = of(GaugeKind::DiskWrite).find(|write| write.subject == flush.subject)?;
        let subject = flush.subject.split(',').next().unwrap_or_default();
        hit(model, subject, (flush.value, &flush.place), (write.value, &write.place))
    });
    pairs.collect()
}

/// By a job of fio that flushes after its writes.
fn by_fio(model: &Model) -> Vec<Hit> {
    let mean = |told: &Quoted| {
        let unit = told.what.rsplit_once('(')?.1.trim_end_matches(')');
        let ns = match unit {
            "nsec" => 1.0,
            "usec" => 1e3,
            "msec" => 1e6,
            _ => return None,
        };
        let mean = told.value.split(", ").find_map(|part| part.trim().strip_prefix("avg="))?;
        Some(mean.trim().parse::<f64>().ok()? * ns)
    };
    let quoted = &model.machine.quoted;
    let pairs =
        quoted.iter().filter(|told| told.what.starts_with("fio, fsync and fdatasync: sync (")).filter_map(|flush| {
            let is_write = |told: &&Quoted| {
                told.subject == flush.subject
                    && told.what.starts_with("fio, write: lat (")
                    && told.value.contains("avg=")
            };
            let write = quoted.iter().find(is_write)?;
            hit(
                model,
                &format!("fio's job {}", flush.subject),
                (mean(flush)?, &flush.place),
                (mean(write)?, &write.place),
            )
        });
    pairs.collect()
}
