//! What does one frame cost, step by step?
//!
//! ```text
//! 1000 / Mpps = copy + (index + notify + window) / n + residual
//! ```
//! A series in which nobody is kicked tells what an index costs; what a batch of a series with kicks costs beyond that is notifying.

use super::measured::{Channel, Measured, POLL, Series};

/// Steps of one frame, in ns; `None` where nothing tells.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Costs {
    pub copy_ns: Option<f64>,
    /// Its share of publishing and reading an index.
    pub index_ns: Option<f64>,
    /// Its share of opening and closing the window.
    pub window_ns: Option<f64>,
    /// Its share of kicks.
    pub(crate) notify_ns: Option<f64>,
    /// What was measured beyond these; below 0 where less was.
    pub(crate) residual_ns: Option<f64>,
}

impl Costs {
    /// Those of a batch of `series`.
    pub(crate) fn of(channel: &Channel<'_>, series: &Series<'_>, one: &Measured<'_>) -> Self {
        let frames = f64::from(one.setup.batch);
        let window_ns = one.window_ns().map(|ns| ns / frames);
        let Ok(model) = &series.model else { return Self { window_ns, ..Self::default() } };
        let notify_ns = notify_ns(channel, series);
        let whole_ns = one.batch_ns().map(|ns| ns / frames);
        let by_model_ns = model.batch_ns(one.setup.batch).ok().map(|ns| ns / frames);
        Self {
            copy_ns: Some(model.copy_ns),
            index_ns: Some((model.index_ns - notify_ns.unwrap_or(0.0)) / frames),
            window_ns: Some(model.window_ns / frames),
            notify_ns: notify_ns.map(|ns| ns / frames),
            residual_ns: whole_ns.zip(by_model_ns).map(|(whole, by_model)| whole - by_model),
        }
    }
}

/// What kicks cost in each batch of a series: what its index costs beyond that of the series where both sides poll.
pub(crate) fn notify_ns(channel: &Channel<'_>, series: &Series<'_>) -> Option<f64> {
    let first = series.first();
    if first.setup.policy == POLL || series.measured.iter().all(|one| one.sum(|run| run.kicks) == 0) {
        return None;
    }
    let polled = channel.like(first, |setup| setup.policy = POLL.to_owned())?;
    let notify_ns = series.model.as_ref().ok()?.index_ns - polled.model.as_ref().ok()?.index_ns;
    (notify_ns >= 0.0).then_some(notify_ns)
}

/// Of a series whose model does not fit: the largest residual of a batch in ns per packet, where it is larger than each step that the model has of that packet.
pub(crate) fn unfitted(channel: &Channel<'_>, series: &Series<'_>) -> Option<f64> {
    let exceeds = |one: &Measured<'_>| {
        let costs = Costs::of(channel, series, one);
        let fitted_ns = costs.copy_ns?.max(costs.index_ns?);
        costs.residual_ns.map(f64::abs).filter(|residual_ns| *residual_ns > fitted_ns)
    };
    series.measured.iter().filter_map(exceeds).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Made, benches, of_batches};
    use super::*;
    use facts::machines::Machines;

    fn costs(made: &[Made], policy: &str, batch: u32) -> Costs {
        let benches = benches(made);
        let channel = Channel::of(&benches, &Machines::default());
        let series = channel.series.iter().find(|series| series.first().setup.policy == policy).unwrap();
        Costs::of(&channel, series, series.at(batch).unwrap())
    }

    fn is_near(a: Option<f64>, b: f64) -> bool {
        // Rates are those of whole packets.
        a.is_some_and(|a| (a - b).abs() < 0.01 * b.abs().max(0.1))
    }

    #[test]
    fn steps_add_up_to_what_a_frame_took() {
        let line = of_batches(
            &[1, 8, 32, 64],
            |n| 28.8 + 60.0 + 14.0 * n,
            |made| Made { window: "pkey", window_ns: 28.8, ..made },
        );
        let of = costs(&line, "poll", 32);
        assert!(is_near(of.copy_ns, 14.0) && is_near(of.index_ns, 60.0 / 32.0) && is_near(of.window_ns, 0.9), "{of:?}");
        assert!(of.notify_ns.is_none() && of.residual_ns.unwrap().abs() < 0.05, "{of:?}");
    }

    #[test]
    fn kicks_cost_what_an_index_costs_beyond_that_of_polling() {
        let polled = of_batches(&[1, 8, 32], |n| 60.0 + 14.0 * n, |made| made);
        let kicked =
            of_batches(&[1, 8, 32], |n| 360.0 + 14.0 * n, |made| Made { policy: "kick", kicks: 1_000, ..made });
        let of = costs(&[polled, kicked.clone()].concat(), "kick", 8);
        assert!(is_near(of.notify_ns, 300.0 / 8.0) && is_near(of.index_ns, 60.0 / 8.0), "{of:?}");
        let alone = costs(&kicked, "kick", 8);
        assert!(alone.notify_ns.is_none() && is_near(alone.index_ns, 360.0 / 8.0), "{alone:?}");
    }
}
