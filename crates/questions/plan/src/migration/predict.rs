//! The courses that a migration may take, and what they say of it.

use super::model::pace::{Pace, Sender};
use super::model::passes::{Course, Setting};
use super::model::scan::Scan;
use super::model::sweep::cleared_on_send;
use super::model::ways_out::{WaysOut, fixed_point_s};
use base::prediction::Said;

/// When dirty bits are cleared, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Either as a pass begins or as pages are sent: which one depends on the accelerator.
    #[default]
    Unknown,
    /// As a pass begins.
    AtSync,
}

/// What the user asks the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Guest, bandwidth and limit.
    pub setting: Setting,
    /// See [`Order`].
    pub order: Order,
    /// What the link carries, where `max-bandwidth` holds the migration below that.
    pub link_bytes_per_s: f64,
    /// How fast QEMU sends where `max-bandwidth` does not hold it, from the fastest that is to be expected to the slowest; none where that is
    /// not known, or makes no difference.
    pub senders: Vec<Sender>,
    /// What saving and loading devices adds to the time that the guest is dark: least and most.
    pub devices_s: [f64; 2],
    /// What setting up adds to the time in all.
    pub setup_s: f64,
    /// What one core looks at in a second to find zeros, where that was stated; else it is between what was published.
    pub scan_bytes_per_s: Option<f64>,
}

impl Asked {
    /// An even pace with the least and with the most that looking for zeros may take.
    pub(super) fn even(&self) -> [Pace; 2] {
        self.scans_s().map(|scan_s| Pace::even(self.setting.bytes_per_s).with_scan(scan_s))
    }

    fn scans_s(&self) -> [f64; 2] {
        Scan::of(self).map_or([0.0; 2], |scan| [scan.least_s, scan.likely_s])
    }
}

/// An answer with its interval; `None` is never.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: Option<f64>,
    pub likely: Option<f64>,
    pub high: Option<f64>,
    /// What the model without a working set says.
    pub naive: Option<f64>,
}

impl Interval {
    /// The same with something added that is known between bounds.
    fn plus(self, least: f64, most: f64) -> Self {
        let add = |value: Option<f64>, more: f64| value.map(|value| value + more);
        let likely = f64::midpoint(least, most);
        let Self { low, likely: between, high, naive } = self;
        Self { low: add(low, least), likely: add(between, likely), high: add(high, most), naive: add(naive, likely) }
    }
}

/// The courses that a migration may take at one pace.
struct Courses {
    /// With dirty bits that are cleared as pages are sent, by how long they take; none if that is known not to be so.
    on_send: Vec<Course>,
    /// With bits that are cleared as passes begin.
    at_sync: Course,
}

impl Courses {
    fn of(setting: &Setting, pace: Pace) -> Self {
        let mut on_send = cleared_on_send(setting, pace);
        on_send.sort_by(|a, b| ending(a.total_s()).total_cmp(&ending(b.total_s())));
        Self { on_send, at_sync: Course::cleared_at_sync(setting, pace) }
    }

    fn middle(&self) -> &Course {
        self.on_send.get(self.on_send.len() / 2).unwrap_or(&self.at_sync)
    }

    fn all(&self) -> impl Iterator<Item = &Course> {
        self.on_send.iter().chain([&self.at_sync])
    }
}

#[derive(Debug, Clone)]
pub struct Prediction {
    /// The course that sends most.
    pub at_sync: Course,
    /// As if the guest never wrote to a page twice.
    pub naive: Course,
    /// Of those that send less, the one in the middle; the same as `at_sync` where no other is possible.
    pub middle: Course,
    /// Until the guest runs on the target.
    pub(crate) total_s: Interval,
    /// How long it stands still.
    pub(crate) downtime_s: Interval,
    /// Before the final one.
    pub passes: Interval,
    pub bytes: Interval,
    /// What passes shrink to, in seconds of sending.
    pub(crate) fixed_point_s: f64,
    /// Where the course that sends most never ends.
    pub ways_out: Option<WaysOut>,
}

impl Prediction {
    pub fn of(asked: &Asked) -> Self {
        let setting = &asked.setting;
        let [soonest, even] = asked.even();
        let (at_sync, naive) = (Course::cleared_at_sync(setting, even), Course::naive(setting, even));
        let paces = asked.senders.iter().filter(|sender| sender.tells(setting));
        let scans_s = asked.scans_s();
        let paces = paces.map(|sender| Pace::of(*sender, setting.bytes_per_s).with_scan(scans_s[1]));
        let courses = |pace: Pace| match asked.order {
            Order::AtSync => Courses { on_send: Vec::new(), at_sync: Course::cleared_at_sync(setting, pace) },
            Order::Unknown => Courses::of(setting, pace),
        };
        let in_windows = match asked.order {
            Order::AtSync => Vec::new(),
            Order::Unknown => paces.map(courses).collect::<Vec<_>>(),
        };
        // Looking for zeros makes no difference where sending takes longer.
        let is_felt = scans_s[0] < scans_s[1] && scans_s[1] > setting.memory.sent_bytes() / setting.bytes_per_s;
        let (evenly, sooner) = (courses(even), is_felt.then(|| courses(soonest)));
        let nearest = in_windows.get(in_windows.len() / 2).unwrap_or(&evenly);
        let all = || in_windows.iter().chain([&evenly]).chain(&sooner).flat_map(Courses::all);
        let interval = |of: &dyn Fn(&Course) -> Option<f64>| {
            let low = all().map(of).map(ending).fold(f64::INFINITY, f64::min);
            let high = all().map(of).map(ending).fold(0.0, f64::max);
            // Between the middle of those that send less and the one that sends most.
            let (middle, most) = (of(nearest.middle()), of(&nearest.at_sync));
            let likely = middle.zip(most).map(|(a, b)| f64::midpoint(a, b)).or(middle);
            Interval { low: ends(low), likely, high: ends(high), naive: of(&naive) }
        };
        let [least_s, most_s] = asked.devices_s;
        let total_s = interval(&Course::total_s).plus(asked.setup_s + least_s, asked.setup_s + most_s);
        let sent_s = interval(&Course::last_s);
        let dark_s = sent_s.plus(least_s, most_s);
        // What is left when a pass ends may be anything up to the limit, if pages are dirtied a little sooner or later.
        let downtime_s = match asked.order {
            Order::AtSync => dark_s,
            Order::Unknown => Interval {
                low: sent_s.low.map(|_| least_s),
                // Nor is it longer than all of it, and what is left of a guest that writes nothing is nothing.
                high: sent_s.high.map(|high_s| {
                    let writes = setting.working_set.most_pages() > 0.0;
                    let up_to_s = if writes { high_s.max(setting.limit_s) } else { high_s };
                    total_s.high.map_or(up_to_s, |all_s| up_to_s.min(all_s).max(high_s)) + most_s
                }),
                ..dark_s
            },
        };
        Self {
            total_s,
            downtime_s,
            passes: interval(&|course| Some(course.passes()).filter(|_| course.last_bytes.is_some())),
            bytes: interval(&Course::bytes),
            fixed_point_s: fixed_point_s(&setting.working_set, setting.bytes_per_s, setting.throttle),
            ways_out: WaysOut::of(setting),
            middle: evenly.middle().clone(),
            at_sync,
            naive,
        }
    }
}

impl Prediction {
    /// Every quantity that it answers for.
    pub(super) fn intervals(&mut self) -> [(&'static str, &mut Interval); 4] {
        [
            ("total", &mut self.total_s),
            ("downtime", &mut self.downtime_s),
            ("passes", &mut self.passes),
            ("bytes", &mut self.bytes),
        ]
    }

    /// As it is kept before a run, with what the model was given.
    pub fn kept(&self, asked: &Asked) -> base::prediction::Prediction {
        let rows = [
            ("total", self.total_s, 1e9, "ns"),
            ("downtime", self.downtime_s, 1e9, "ns"),
            ("passes", self.passes, 1.0, "count"),
            ("bytes", self.bytes, 1.0, "bytes"),
        ];
        let said = rows.into_iter().map(|(what, Interval { low, likely, high, naive }, scale, unit)| {
            let [low, likely, high, naive] = [low, likely, high, naive].map(|value| value.map(|value| value * scale));
            Said { what: what.to_owned(), low, likely, high, naive, unit: unit.to_owned() }
        });
        let setting = &asked.setting;
        let given = [
            ("method", "precopy".to_owned()),
            ("pages", setting.memory.pages.to_string()),
            ("zero share", setting.memory.zero_share.to_string()),
            ("working set", format!("{:?}", setting.working_set)),
            ("bytes per second", setting.bytes_per_s.to_string()),
            ("downtime limit, s", setting.limit_s.to_string()),
            ("throttle", setting.throttle.to_string()),
            ("senders", format!("{:?}", asked.senders)),
            ("devices, s", format!("{:?}", asked.devices_s)),
            ("setup, s", asked.setup_s.to_string()),
            ("scan, bytes per second", format!("{:?}", asked.scan_bytes_per_s)),
        ];
        base::prediction::Prediction {
            schema: base::prediction::SCHEMA.to_owned(),
            about: "migration".to_owned(),
            given: given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            said: said.collect(),
        }
    }
}

fn ending(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::INFINITY)
}

fn ends(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::model::passes::tests::bed;
    use super::super::model::working_set::{Hot, WorkingSet};
    use super::*;

    pub(crate) fn asked(working_set: impl Fn(Hot) -> WorkingSet, pages_per_s: f64, order: Order) -> Asked {
        let setting = bed(working_set, pages_per_s);
        Asked {
            link_bytes_per_s: setting.bytes_per_s,
            setting,
            order,
            senders: Vec::new(),
            devices_s: [0.0; 2],
            setup_s: 0.0,
            scan_bytes_per_s: None,
        }
    }

    fn ms(value: Option<f64>) -> Option<u64> {
        value.map(|seconds| (seconds * 1e3).round() as u64)
    }

    #[test]
    fn the_interval_reaches_from_bits_cleared_on_send_to_bits_cleared_at_sync() {
        let said = Prediction::of(&asked(WorkingSet::Cyclic, 40_000.0, Order::Unknown));
        let Interval { low, likely, high, naive } = said.total_s;
        assert_eq!([low, high, naive].map(ms), [Some(1_713), Some(3_007), Some(7_290)]);
        assert!(low < likely && likely < high);
        assert_eq!((said.passes.low, said.passes.high, said.passes.naive), (Some(2.0), Some(11.0), Some(17.0)));
        assert_eq!((said.downtime_s.low, said.downtime_s.high), (Some(0.0), Some(0.05)), "up to the limit");
        let said = Prediction::of(&asked(WorkingSet::Cyclic, 40_000.0, Order::AtSync));
        assert_eq!([said.total_s.low, said.total_s.likely, said.total_s.high].map(ms), [Some(3_007); 3]);
    }

    #[test]
    fn never_is_no_number_and_has_ways_out() {
        let said = Prediction::of(&asked(WorkingSet::Cyclic, 60_000.0, Order::Unknown));
        assert_eq!([said.total_s.low, said.total_s.high, said.downtime_s.high, said.bytes.naive], [None; 4]);
        assert_eq!(ms(said.ways_out.map(|ways| ways.limit_s)), Some(336));
    }

    #[test]
    fn devices_and_setting_up_are_added() {
        let plain = Prediction::of(&asked(WorkingSet::Uniform, 10_000.0, Order::AtSync));
        let more = Asked { devices_s: [0.01; 2], setup_s: 0.1, ..asked(WorkingSet::Uniform, 10_000.0, Order::AtSync) };
        let more = Prediction::of(&more);
        assert_eq!(ms(more.total_s.high), Some(1_570 + 110));
        assert_eq!(ms(more.downtime_s.high), ms(plain.downtime_s.high.map(|dark| dark + 0.01)));
    }

    #[test]
    fn looking_for_zeros_is_part_of_the_time_in_all() {
        // 256 MiB of zeros are sent in 3 ms and looked at in 12.5 to 24 ms, before the guest is stopped if that is above the limit.
        let mut zeros = asked(WorkingSet::Cyclic, 0.0, Order::Unknown);
        zeros.setting.memory.zero_share = 1.0;
        let said = Prediction::of(&zeros);
        assert_eq!([said.total_s.low, said.total_s.high].map(ms), [Some(13), Some(24)]);
        zeros.scan_bytes_per_s = Some(1e9);
        let said = Prediction::of(&zeros);
        assert_eq!([said.total_s.low, said.total_s.high, said.total_s.naive].map(ms), [Some(268); 3]);
        assert_eq!((said.passes.high, said.downtime_s.high), (Some(1.0), Some(0.0)));
        // What is dirtied meanwhile is sent after it.
        zeros.setting.working_set = WorkingSet::Cyclic(Hot { pages: 16_384.0, pages_per_s: 10_000.0 });
        let Interval { low, high, .. } = Prediction::of(&zeros).total_s;
        assert_eq!([low, high].map(ms), [Some(268), Some(335)], "written before its turn, and after it");
        zeros.setting.memory.zero_share = 0.0;
        let all = Prediction::of(&zeros).total_s;
        assert_eq!(
            all,
            Prediction::of(&Asked { scan_bytes_per_s: None, ..zeros }).total_s,
            "no zeros are found at once"
        );
    }
}
