//! What each device took while the guest stood still: `-trace 'vmstate_downtime*'` of one side.
//!
//! ```text
//! 15995@1795523691.271955:vmstate_downtime_checkpoint src-downtime-start
//! 15995@1795523691.272414:vmstate_downtime_save type=non-iterable idstr=cpu instance_id=0 downtime=79      printed when it was over, in us
//! ```
//! Sources: migration/trace-events, migration/savevm.c and migration/migration.c, QEMU 10.0; the first part of a line is
//! `log_timestamp` of scripts/tracetool/backend/log.py.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Side {
    /// In the order of the log.
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The thread that printed it, which is the one that did it (`qemu_get_thread_id`).
    pub tid: Option<i32>,
    /// CLOCK_REALTIME, to the microsecond: when it was over.
    pub at_ns: u64,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A place in the code was passed: `src-vm-stopped`.
    Checkpoint(String),
    /// A device was saved or loaded.
    Device {
        /// Its name in the stream: `0000:00:01.0/virtio-net`.
        name: String,
        instance: u32,
        /// True for memory and what else is sent while the guest runs.
        is_iterable: bool,
        took_ns: u64,
    },
}

/// A guest has some hundred devices; one log may hold several migrations.
const MOST_STEPS: usize = 100_000;
/// Where a log of either side begins to be about another migration: the source's first line, and what the target does last.
const BEGINS: &str = "src-downtime-start";
const ENDS: [&str; 2] = ["dst-precopy-bh-vm-started", "dst-postcopy-bh-vm-started"];

/// Names of checkpoints of the two sides begin so.
const OF_SOURCE: &str = "src-";

/// The migrations of a log, one after the other.
pub fn read(text: &str) -> Vec<Side> {
    let mut sides: Vec<Side> = Vec::new();
    let mut is_over = true;
    for step in text.lines().filter_map(step).take(MOST_STEPS) {
        let passed = |name: &str| matches!(&step.what, What::Checkpoint(passed) if passed == name);
        if is_over || passed(BEGINS) {
            sides.push(Side::default());
        }
        is_over = ENDS.iter().any(|end| passed(end));
        if let Some(side) = sides.last_mut() {
            side.steps.push(step);
        }
    }
    sides
}

fn step(line: &str) -> Option<Step> {
    let (stamp, event) = line.split_once(":vmstate_downtime_")?;
    let (thread, at) = stamp.rsplit_once('@')?;
    let tid = thread.rsplit(|letter: char| !letter.is_ascii_digit()).next().and_then(|tid| tid.parse().ok());
    let (seconds, us) = at.split_once('.')?;
    let us: u64 = us.parse().ok().filter(|us| *us < 1_000_000)?;
    let at_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(us * 1_000)?;
    let (kind, told) = event.split_once(' ')?;
    let field = |name: &str| told.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let what = match kind {
        "checkpoint" => What::Checkpoint(told.trim().to_owned()),
        // A device that took less than nothing met a clock that was set back.
        "save" | "load" => What::Device {
            name: field("idstr")?.to_owned(),
            instance: field("instance_id")?.parse().ok()?,
            is_iterable: field("type")? == "iterable",
            took_ns: field("downtime")?.parse::<i64>().ok()?.max(0).unsigned_abs().checked_mul(1_000)?,
        },
        _ => return None,
    };
    Some(Step { tid, at_ns, what })
}

impl Side {
    /// True for the side that the guest left.
    pub fn is_source(&self) -> bool {
        self.steps.iter().any(|step| matches!(&step.what, What::Checkpoint(name) if name.starts_with(OF_SOURCE)))
    }

    /// When a place was passed.
    pub fn passed(&self, name: &str) -> Option<u64> {
        let of = |step: &Step| matches!(&step.what, What::Checkpoint(passed) if passed == name).then_some(step.at_ns);
        self.steps.iter().find_map(of)
    }

    /// When the target let the guest run.
    pub fn started(&self) -> Option<u64> {
        ENDS.iter().find_map(|end| self.passed(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "2026-11-24T12:34:47.809520Z qemu-system-x86_64: warning: nic n0 has no peer\n\
        15995@1795523691.271955:vmstate_downtime_checkpoint src-downtime-start\n\
        15995@1795523691.272301:vmstate_downtime_save type=iterable idstr=ram instance_id=0 downtime=150\n\
        15995@1795523691.274513:vmstate_downtime_save type=non-iterable idstr=0000:00:02.0/virtio-rng instance_id=3 downtime=971\n\
        15995@1795523691.274546:vmstate_downtime_checkpoint src-downtime-end\n";

    #[test]
    fn devices_and_checkpoints_are_told_from_other_lines() {
        let [side] = &read(LOG)[..] else { panic!("one") };
        assert!(side.is_source() && side.started().is_none());
        assert_eq!(side.passed("src-downtime-end"), Some(1_795_523_691_274_546_000));
        let device = |name: &str, instance, is_iterable, took_ns| What::Device {
            name: name.to_owned(),
            instance,
            is_iterable,
            took_ns,
        };
        assert_eq!(side.steps[1].what, device("ram", 0, true, 150_000));
        assert_eq!(side.steps[2].what, device("0000:00:02.0/virtio-rng", 3, false, 971_000));
        assert_eq!(side.steps.len(), 4);
    }

    #[test]
    fn a_log_of_several_moves_is_parted_and_broken_lines_are_passed_over() {
        assert_eq!(read(&LOG.repeat(3)).len(), 3);
        let target = "7@1.000009:vmstate_downtime_load type=non-iterable idstr=cpu instance_id=0 downtime=-4\n\
            7@1.000010:vmstate_downtime_checkpoint dst-precopy-bh-vm-started\n";
        let sides = read(&target.repeat(2));
        assert_eq!((sides.len(), sides[1].is_source(), sides[1].started()), (2, false, Some(1_000_010_000)));
        let what = &sides[0].steps[0].what;
        assert!(matches!(what, What::Device { took_ns: 0, .. }), "a clock that was set back: {what:?}");
        for broken in [
            "7@1.5x:vmstate_downtime_save a",
            "7:vmstate_downtime_checkpoint x",
            "@99999999999999999999.0:vmstate_downtime_checkpoint x",
        ] {
            assert_eq!(read(broken), [], "{broken}");
        }
    }
}
