//! The courses that a migration may take, and what they say of it.

use super::model::passes::{Course, Setting};
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
    /// What saving and loading devices adds to the time that the guest is dark.
    pub devices_s: f64,
    /// What setting up adds to the time in all.
    pub setup_s: f64,
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

/// What the model says.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// The course that sends most.
    pub at_sync: Course,
    /// As if the guest never wrote to a page twice.
    pub naive: Course,
    /// Of those that send less, the one in the middle; the same as `at_sync` where no other is possible.
    pub middle: Course,
    /// Until the guest runs on the target.
    pub total_s: Interval,
    /// How long it stands still.
    pub downtime_s: Interval,
    /// Before the final one.
    pub passes: Interval,
    /// On the wire.
    pub bytes: Interval,
    /// What passes shrink to, in seconds of sending.
    pub fixed_point_s: f64,
    /// Where the course that sends most never ends.
    pub ways_out: Option<WaysOut>,
}

impl Prediction {
    /// That for what is asked.
    pub fn of(asked: &Asked) -> Self {
        let setting = &asked.setting;
        let (at_sync, naive) = (Course::cleared_at_sync(setting), Course::naive(setting));
        let mut courses = match asked.order {
            Order::AtSync => Vec::new(),
            Order::Unknown => cleared_on_send(setting),
        };
        courses.sort_by(|a, b| ending(a.total_s()).total_cmp(&ending(b.total_s())));
        let middle = courses.get(courses.len() / 2).unwrap_or(&at_sync).clone();
        courses.push(at_sync.clone());
        let interval = |of: &dyn Fn(&Course) -> Option<f64>| {
            let values = || courses.iter().map(of);
            let low = values().map(ending).fold(f64::INFINITY, f64::min);
            let high = values().map(ending).fold(0.0, f64::max);
            // Between the middle of those that send less and the one that sends most.
            let likely = of(&middle).zip(of(&at_sync)).map(|(a, b)| f64::midpoint(a, b)).or(of(&middle));
            Interval { low: ends(low), likely, high: ends(high), naive: of(&naive) }
        };
        let total_s = interval(&|course| Some(course.total_s()? + asked.setup_s + asked.devices_s));
        let dark = interval(&|course| Some(course.last_s()? + asked.devices_s));
        // What is left when a pass ends may be anything up to the limit, if pages are dirtied a little sooner or later.
        let downtime_s = match asked.order {
            Order::AtSync => dark,
            Order::Unknown => Interval {
                low: dark.low.map(|_| asked.devices_s),
                high: dark.high.map(|_| setting.limit_s + asked.devices_s),
                ..dark
            },
        };
        Self {
            total_s,
            downtime_s,
            passes: interval(&|course| course.last_bytes.map(|_| course.passes_bytes.len() as f64)),
            bytes: interval(&Course::bytes),
            fixed_point_s: fixed_point_s(&setting.working_set, setting.bytes_per_s, setting.throttle),
            ways_out: WaysOut::of(setting),
            at_sync,
            naive,
            middle,
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
            ("devices, s", asked.devices_s.to_string()),
            ("setup, s", asked.setup_s.to_string()),
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

    pub fn asked(working_set: impl Fn(Hot) -> WorkingSet, pages_per_s: f64, order: Order) -> Asked {
        let setting = bed(working_set, pages_per_s);
        Asked { link_bytes_per_s: setting.bytes_per_s, setting, order, devices_s: 0.0, setup_s: 0.0 }
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
        let more = Asked { devices_s: 0.01, setup_s: 0.1, ..asked(WorkingSet::Uniform, 10_000.0, Order::AtSync) };
        let more = Prediction::of(&more);
        assert_eq!(ms(more.total_s.high), Some(1_570 + 110));
        assert_eq!(ms(more.downtime_s.high), ms(plain.downtime_s.high.map(|dark| dark + 0.01)));
    }
}
