//! The gauge wall of `lab ovs`: what trials count while they run, written to `live.json` where the recording will be.
//!
//! ```text
//! first sample --> DIR/recording.json, no part yet     each sample --> DIR/live.json     end: the whole recording, in its place
//! ```
//! The directory is made when there is something to show, and removed if the lab does not come to its end.

use analysis::datapath::measured::dials;
use base::datapath::{DatapathRuns, RateSample};
use base::gauges::{Gauges, RateLook, TrialName};
use base::recording::{Destination, Identity, Live, Machine, Recording};
use lab::Error;
use std::time::Duration;

/// Between the windows of two trials a lab may have nothing to show for so long: it waits a minute for any program.
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) struct Wall {
    destination: Destination,
    recording: Recording,
    live: Option<Live>,
    gauges: Gauges<RateLook>,
    /// When the first window began.
    origin_ns: Option<u64>,
    number: u64,
}

impl Wall {
    /// Of the lab called `tool` that writes to `destination`, and counts so often.
    pub(super) fn new(destination: &Destination, tool: &str, created: String, every: Duration) -> Self {
        let machine =
            Machine { id: "L0".to_owned(), level: 0, parent: None, name: None, identity: Identity::default() };
        Self {
            destination: destination.clone(),
            recording: Recording { machines: vec![machine], ..Recording::made(tool, created) },
            live: None,
            gauges: Gauges::new(every).with_patience(PATIENCE),
            origin_ns: None,
            number: 0,
        }
    }

    /// Shows a sample of `trial` that counts from `from_ns` on; `before` has the trials before it.
    pub(super) fn show(
        &mut self,
        before: &DatapathRuns,
        trial: TrialName,
        from_ns: u64,
        sample: &RateSample,
    ) -> Result<(), Error> {
        if self.live.is_none() {
            self.live = Some(Live::begin(&self.destination, self.recording.clone())?);
        }
        let origin_ns = *self.origin_ns.get_or_insert(from_ns);
        let (ceiling, published) = (dials::ceiling(before, &trial), dials::published(&trial));
        let look = RateLook::of(trial, from_ns, sample, origin_ns);
        self.gauges.push(RateLook { number: self.number, ceiling, published, ..look });
        self.number += 1;
        self.write()
    }

    /// Says that the lab has come to its end; its recording lies in its place.
    pub(super) fn end(mut self) -> Result<(), Error> {
        self.gauges.ended = true;
        if self.live.is_some() { self.write() } else { Ok(()) }
    }

    /// Removes what was made for a lab that has not come to its end.
    pub(super) fn abandon(self) -> Result<(), Error> {
        Ok(self.live.map_or(Ok(()), Live::abandon)?)
    }

    fn write(&self) -> Result<(), Error> {
        let path = &self.destination.path;
        self.gauges.write(path).map_err(|source| Error::Io { path: path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::datapath::Traffic;
    use std::collections::BTreeMap;

    fn shown(wall: &mut Wall, from_ns: u64) {
        let trial = TrialName {
            design: "ovs-dpdk".into(),
            pattern: Traffic::Chain,
            vnfs: 1,
            size_bytes: 64,
            repeat: 0,
            repeats: 1,
        };
        let sample = RateSample { to_ns: from_ns + 500_000_000, read_ns: 1, sent: 9, received: 4, vnfs: vec![4] };
        wall.show(&DatapathRuns::new(BTreeMap::new()), trial, from_ns, &sample).unwrap();
    }

    #[test]
    fn the_place_is_a_recording_from_the_first_sample_on_and_free_again_if_nothing_comes_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let place = Destination::from(&directory.path().join("chain"));
        let wall =
            || Wall::new(&place, "kvmscope lab ovs", "2026-01-01T00:00:00Z".to_owned(), Duration::from_millis(500));
        let mut one = wall();
        assert!(!place.path.exists());
        shown(&mut one, 7_000);
        shown(&mut one, 500_007_000);
        assert!(Recording::open(&place.path).unwrap().parts.is_empty());
        let gauges = Gauges::<RateLook>::read(&place.path).unwrap();
        let (first, second) = (&gauges.samples[0], &gauges.samples[1]);
        assert_eq!((first.from_ns, second.from_ns, second.number, first.received_pps), (0, 500_000_000, 1, 8.0));
        assert_eq!(first.ceiling, None, "nothing was measured before");
        assert!(!first.published.is_empty() && gauges.is_live(Duration::from_secs(60)));
        one.abandon().unwrap();
        assert!(!place.path.exists());
        let mut other = wall();
        shown(&mut other, 7_000);
        other.end().unwrap();
        assert!(Gauges::<RateLook>::read(&place.path).unwrap().ended);
    }
}
