//! What speaks against a migration as it is planned: rules as data.

use super::checks::{limited, never, perhaps, throttled};
use super::predict::{Asked, Prediction};
use base::rule::{Words, limit};
use facts::rule::Hit;

#[derive(Clone, Copy)]
pub(super) struct Planned<'a> {
    pub asked: &'a Asked,
    pub said: &'a Prediction,
}

type Rule = facts::rule::Rule<fn(Planned<'_>) -> Option<Hit>>;

/// Below this share of the link, `max-bandwidth` is what holds a migration up.
pub(super) const LINK_IN_USE: f64 = 0.8;

/// All rules, in the order in which equal findings are shown.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "MIG-NEVER",
        per: "guest",
        looks_at: "Whether passes ever get so short that what is left can be sent within the limit.",
        why: "The guest dirties in each pass what the next one has to send. Passes shrink until sending and dirtying are in balance, \
              and no further; QEMU stops the guest only when what is left fits into the limit. The ways out stand in the order in which to try them.",
        source: "docs/read/migration.md, \"When it never ends\"; migration_iteration_run in migration/migration.c, QEMU 7.2",
        ..Rule::checked_by(never)
    },
    Rule {
        id: "MIG-PERHAPS",
        per: "guest",
        looks_at: "Whether it ends only where a page that is written to before its turn is sent once.",
        why: "Where dirty bits are cleared as a pass begins, every page written to during it is sent again; where they are cleared \
              as pages are sent, those written to before their turn are not. Which holds depends on the accelerator and the kernel.",
        source: "docs/read/migration.md, \"An interval\"; migration_clear_memory_region_dirty_bitmap in migration/ram.c, QEMU 7.2",
        ..Rule::checked_by(perhaps)
    },
    Rule {
        id: "MIG-BANDWIDTH",
        per: "guest",
        looks_at: "Whether max-bandwidth leaves much of the link unused.",
        limits: &[limit("max-bandwidth of what the link carries", LINK_IN_USE, "share")],
        why: "QEMU sends no faster than max-bandwidth, 128 MiB/s unless it was set, however fast the link is.",
        source: "MAX_THROTTLE in migration/migration.c, QEMU 7.2",
        ..Rule::checked_by(limited)
    },
    Rule {
        id: "MIG-THROTTLE",
        per: "guest",
        looks_at: "Whether taking time from the guest makes it dirty fewer pages in a pass.",
        why: "A guest that writes to all its hot pages in each pass even when it is throttled loses work, and the pass after \
              it has as much to send.",
        source: "docs/read/migration.md, \"When it never ends\"",
        ..Rule::checked_by(throttled)
    },
];

pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).chain(super::memory::rules::words()).collect()
}
