//! What the rules see.

use super::model::methods::Throttled;
use super::model::working_set::WorkingSet;
use super::rules::{LINK_IN_USE, Planned};
use base::number::{bytes, counted, duration, percent};
use base::{Cost, CostKind, Evidence, Severity};
use facts::rule::Hit;

/// What a plan is about: nobody named the guest.
const GUEST: &str = "guest";
/// QEMU counts and libvirt sets bandwidth in these.
const MIB: f64 = 1_048_576.0;

/// Passes never get short enough, whichever way dirty bits are cleared.
pub(super) fn never(Planned { asked, said }: Planned<'_>) -> Option<Hit> {
    let ways = said.ways_out.filter(|_| said.total_s.low.is_none())?;
    let title = format!(
        "Never ends: passes get no shorter than {}, the limit is {}",
        duration(said.fixed_point_s * 1e9),
        duration(asked.setting.limit_s * 1e9)
    );
    let mut hit = Hit::new(GUEST, Severity::High, title).with(Evidence::in_table(
        format!(
            "dirties up to {} in passes of that length",
            counted(asked.setting.working_set.pages(said.fixed_point_s).round() as u64, "page", "pages")
        ),
        "migration.working_set",
    ));
    hit.cost =
        Cost::of(CostKind::Modelled, said.fixed_point_s * 1e9, "ns of dark time, at the least limit that ends it");
    // Rounded up: a little less would not do.
    hit.fix = vec![format!(
        "virsh migrate-setspeed DOMAIN {:.0}   # MiB/s, where the link carries that: first virsh migrate-getspeed DOMAIN; price: the link; undo: what that said",
        (ways.bytes_per_s / MIB).floor() + 1.0
    )];
    // QEMU takes time in steps: more than the least that is enough.
    let throttled = Throttled::of(&asked.setting, asked.even()[1]);
    hit.fix.extend(throttled.course.total_s().zip(ways.throttle).map(|(_, enough)| {
        format!(
            "virsh migrate --live --auto-converge DOMAIN DESTINATION   # price: {} of the guest's time would do, QEMU's steps go up to {}; where one runs, virsh domjobabort DOMAIN first",
            percent(enough),
            percent(throttled.most)
        )
    }));
    hit.fix.extend([
        "virsh migrate --live --postcopy --postcopy-after-precopy DOMAIN DESTINATION   # goes over after one pass; price: the guest waits for pages, and a failure of either host or of the link loses it; no VFIO, no undo".to_owned(),
        format!(
            "virsh migrate-setmaxdowntime DOMAIN {:.0}   # last, while it runs: price: the guest is dark for so long; undo: {:.0}",
            (ways.limit_s * 1e3).floor() + 1.0,
            asked.setting.limit_s * 1e3
        ),
    ]);
    Some(hit)
}

/// It depends on when dirty bits are cleared.
pub(super) fn perhaps(Planned { asked, said }: Planned<'_>) -> Option<Hit> {
    let low_s = said.total_s.low.filter(|_| said.total_s.high.is_none())?;
    let title = format!("May never end: at best it takes {}", duration(low_s * 1e9));
    let seen = format!(
        "passes get no shorter than {} if dirty bits are cleared as passes begin, the limit is {}",
        duration(said.fixed_point_s * 1e9),
        duration(asked.setting.limit_s * 1e9)
    );
    Some(Hit::new(GUEST, Severity::Medium, title).with(Evidence::in_table(seen, "migration.ways_out")))
}

/// max-bandwidth is the bottleneck, and need not be.
pub(super) fn limited(Planned { asked, .. }: Planned<'_>) -> Option<Hit> {
    let used = asked.setting.bytes_per_s / asked.link_bytes_per_s;
    if used >= LINK_IN_USE {
        return None;
    }
    let title = format!("max-bandwidth leaves {} of the link unused", percent(1.0 - used));
    let seen = format!(
        "{}/s are sent, the link carries {}/s",
        bytes(asked.setting.bytes_per_s),
        bytes(asked.link_bytes_per_s)
    );
    let mut hit = Hit::new(GUEST, Severity::Medium, title).seen(seen, "what was asked");
    hit.fix = vec![format!("virsh migrate-setspeed DOMAIN {:.0}   # MiB/s", (asked.link_bytes_per_s / MIB).floor())];
    Some(hit)
}

/// The guest is throttled, and dirties as many pages all the same.
pub(super) fn throttled(Planned { asked, said }: Planned<'_>) -> Option<Hit> {
    let setting = &asked.setting;
    let whole_s = said.fixed_point_s;
    let dirtied = |running: f64| setting.working_set.pages(whole_s * running);
    let is_idle = setting.throttle > 0.0 && said.ways_out.is_some() && whole_s > 0.0;
    if !is_idle || dirtied(1.0 - setting.throttle) < dirtied(1.0) * SAME {
        return None;
    }
    let title = format!("Taking {} of the guest's time saves no page", percent(setting.throttle));
    let seen = format!("{:.0} pages are dirty after {}, throttled or not", dirtied(1.0), duration(whole_s * 1e9));
    let what = if matches!(setting.working_set, WorkingSet::Measured(_)) { "as measured" } else { "by the model" };
    Some(
        Hit::new(GUEST, Severity::Medium, title)
            .with(Evidence::in_table(format!("{seen}, {what}"), "migration.working_set")),
    )
}

/// From here on two numbers of pages are the same.
const SAME: f64 = 0.999;
