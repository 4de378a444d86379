//! What a paced train of packets tells of a guest that was moved.
//!
//! ```text
//! number   0 1 2 3 4 5 6 7 8 9     sent at a pace
//! reply    s s s . . . t t . t     from source and target; 3, 4, 5 and 8 are lost
//! count    1 2 3       4 6   7     what the guest had received: 5 was the reply to one that is lost, so that its way out lost it
//!              |--net--|           from the last reply by the source to the first one by the target
//! ```
//! Packets are late, not lost, where something held them until the guest could be reached again.

use base::network::{Down, Link, MOST_PACKETS, Network, Place, Reply};
use base::number::{duration, thousands};

/// A sender that was late by more than this of what it says invents dark time.
const MOST_GAP_SHARE: f64 = 0.1;

/// One train, summed up. Times are CLOCK_REALTIME.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Train {
    /// Between two packets, as it was meant.
    pub interval_ns: u64,
    pub sent: u64,
    pub answered: u64,
    /// Those that the guest never received; not known where its count does not go on.
    pub lost_in: Option<u64>,
    /// Those whose answer was lost.
    pub lost_out: Option<u64>,
    /// Sent before the target answered anything, and answered by it after more than an interval.
    pub late: u64,
    /// Replies that came after one to a later packet.
    pub reordered: u64,
    /// Replies that had come before.
    pub duplicates: u64,
    /// When the last reply by the source came.
    pub last_on_source_ns: Option<u64>,
    /// When the first one by the target came.
    pub first_on_target_ns: Option<u64>,
    /// The longest time between two packets, from the last one that the source answered to the first reply by the target.
    pub sender_gap_ns: u64,
    /// When the guest was first announced at the target.
    pub announced_ns: Option<u64>,
    /// By how many packets the guest's count went back when it was moved.
    pub back_by: Option<u64>,
    /// What went over the link between both sides.
    pub link: Option<Link>,
    pub downs: Vec<Down>,
    /// It had as many packets as a train may have, and ended before the guest had moved, for all that it tells.
    pub is_cut: bool,
}

impl Train {
    pub fn of(network: &Network) -> Self {
        let sent_at = |reply: &Reply| network.sent_ns.get(reply.number as usize).copied();
        let is_of = |place: Place| move |reply: &&Reply| reply.from == place;
        let first = network.replies.iter().find(is_of(Place::Target));
        let last = network
            .replies
            .iter()
            .filter(is_of(Place::Source))
            .rfind(|reply| first.is_none_or(|first| reply.at_ns <= first.at_ns));
        let mut times = vec![0_u64; network.sent_ns.len()];
        let (mut reordered, mut duplicates, mut latest) = (0, 0, 0);
        for reply in &network.replies {
            let Some(times) = times.get_mut(reply.number as usize) else { continue };
            *times += 1;
            duplicates += u64::from(*times > 1);
            reordered += u64::from(*times == 1 && reply.number < latest);
            latest = latest.max(reply.number);
        }
        let is_late = |reply: &&Reply| {
            let times = sent_at(reply).zip(first);
            times.is_some_and(|(sent_ns, first)| {
                sent_ns < first.at_ns && reply.at_ns.saturating_sub(sent_ns) > network.interval_ns
            })
        };
        let late = network.replies.iter().filter(is_of(Place::Target)).filter(is_late).count();
        let absolute = |reply: &Reply| network.from_ns.saturating_add(reply.at_ns);
        let window = last.and_then(sent_at).zip(first.map(|first| first.at_ns));
        let back_by = last.zip(first).map(|(last, first)| last.count.wrapping_sub(first.count));
        let (lost_in, lost_out) = ways(&network.replies, &times);
        Self {
            interval_ns: network.interval_ns,
            sent: network.sent_ns.len() as u64,
            answered: times.iter().filter(|times| **times > 0).count() as u64,
            lost_in,
            lost_out,
            late: late as u64,
            reordered,
            duplicates,
            last_on_source_ns: last.map(absolute),
            first_on_target_ns: first.map(absolute),
            sender_gap_ns: window.map_or(0, |(from_ns, to_ns)| longest_gap(&network.sent_ns, from_ns, to_ns)),
            announced_ns: network.announced_ns,
            back_by: back_by.filter(|by| *by < u32::MAX / 2).map(|by| u64::from(by) + 1),
            link: network.link,
            downs: network.downs.clone(),
            is_cut: first.is_none() && network.sent_ns.len() >= MOST_PACKETS,
        }
    }

    /// Packets without an answer.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.answered)
    }

    /// From the last reply by the source to the first one by the target; else why that is not known.
    ///
    /// # Errors
    /// A sentence.
    pub fn dark_ns(&self) -> Result<u64, String> {
        if self.is_cut {
            return Err(format!("packets ended after {}, before the guest had moved", thousands(self.sent)));
        }
        let Some(first_ns) = self.first_on_target_ns else { return Err("no reply came from the target".to_owned()) };
        let Some(last_ns) = self.last_on_source_ns else { return Err("no reply came from the source".to_owned()) };
        let dark_ns = first_ns.saturating_sub(last_ns);
        let late_ns = self.sender_gap_ns.saturating_sub(self.interval_ns);
        if late_ns as f64 > dark_ns as f64 * MOST_GAP_SHARE {
            let (late, dark) = (duration(late_ns as f64), duration(dark_ns as f64));
            return Err(format!("rejected: the sender was {late} late, of {dark}"));
        }
        Ok(dark_ns)
    }

    /// The guest was reachable for up to a packet's time after the last reply, and before the first one.
    pub fn error_ns(&self) -> u64 {
        self.interval_ns.max(self.sender_gap_ns).saturating_mul(2)
    }
}

/// The longest time between two of `times` that has a part between the two ends.
fn longest_gap(times: &[u64], from_ns: u64, to_ns: u64) -> u64 {
    let pairs = times.windows(2).filter(|pair| pair[1] > from_ns && pair[0] < to_ns);
    pairs.map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or_default()
}

/// How many were lost on the way in and on the way out, between the first and the last packet that was answered: each that the guest
/// received raised its count by one. Nothing is known where the count does not rise.
fn ways(replies: &[Reply], times: &[u64]) -> (Option<u64>, Option<u64>) {
    let (Some(first), Some(last)) = (replies.first(), replies.last()) else { return (None, None) };
    let is_rising =
        replies.windows(2).all(|pair| (1..u32::MAX / 2).contains(&pair[1].count.wrapping_sub(pair[0].count)));
    if !is_rising {
        return (None, None);
    }
    let received = u64::from(last.count.wrapping_sub(first.count)) + 1;
    let out = received.saturating_sub(replies.len() as u64);
    let answered = |times: &u64| *times > 0;
    let (from, to) = (times.iter().position(answered), times.iter().rposition(answered));
    let between = from.zip(to).map_or(&[][..], |(from, to)| &times[from..=to]);
    let lost = between.iter().filter(|times| !answered(times)).count() as u64;
    (Some(lost.saturating_sub(out)), Some(out.min(lost)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::network::SCHEMA;

    const MS: u64 = 1_000_000;

    /// A packet each millisecond; what came back: when, to which, with which count, and from where (`s`, `t`).
    fn train(sent: u64, replies: &[(u64, u32, u32, char)]) -> Network {
        let reply = |(ms, number, count, from): &(u64, u32, u32, char)| Reply {
            at_ns: ms * MS + MS / 2,
            number: *number,
            count: *count,
            from: if *from == 's' { Place::Source } else { Place::Target },
        };
        Network {
            schema: SCHEMA.to_owned(),
            from_ns: 1_000 * MS,
            to_ns: 2_000 * MS,
            interval_ns: MS,
            sent_ns: (0..sent).map(|number| number * MS).collect(),
            replies: replies.iter().map(reply).collect(),
            announced_ns: None,
            link: None,
            downs: Vec::new(),
        }
    }

    #[test]
    fn the_guests_own_count_tells_which_way_lost_a_packet() {
        let moved =
            [(0, 0, 11, 's'), (1, 1, 12, 's'), (2, 2, 13, 's'), (6, 6, 14, 't'), (7, 7, 16, 't'), (9, 9, 17, 't')];
        let seen = Train::of(&train(11, &moved));
        assert_eq!((seen.sent, seen.answered, seen.lost()), (11, 6, 5));
        // 3, 4, 5 and 8, one of them received; 10 may have been lost either way.
        assert_eq!((seen.lost_in, seen.lost_out), (Some(3), Some(1)));
        assert_eq!((seen.late, seen.reordered, seen.duplicates, seen.back_by), (0, 0, 0, None));
        assert_eq!((seen.dark_ns(), seen.error_ns()), (Ok(4 * MS), 2 * MS));
        assert_eq!(seen.first_on_target_ns, Some(1_006 * MS + MS / 2));
    }

    #[test]
    fn what_was_held_is_late_and_what_comes_again_or_too_late_is_counted_apart() {
        // 1 to 3 were held and came at once, the last of them first; 2 came again.
        let held = [(0, 0, 1, 's'), (5, 3, 2, 't'), (5, 1, 3, 't'), (5, 2, 4, 't'), (6, 2, 5, 't'), (6, 6, 6, 't')];
        let seen = Train::of(&train(7, &held));
        assert_eq!((seen.late, seen.reordered, seen.duplicates), (4, 2, 1));
        assert_eq!((seen.answered, seen.lost(), seen.lost_in, seen.lost_out), (5, 2, Some(2), Some(0)));
    }

    #[test]
    fn a_sender_that_was_late_by_more_than_a_tenth_invents_dark_time_and_before_it_does_not_matter() {
        let moved = |late_ns: u64| {
            let mut network = train(40, &[(10, 10, 1, 's'), (31, 30, 2, 't')]);
            network.sent_ns[20..].iter_mut().for_each(|at_ns| *at_ns += late_ns);
            network.sent_ns[..5].iter_mut().for_each(|at_ns| *at_ns = 0);
            Train::of(&network)
        };
        let seen = moved(2 * MS);
        assert_eq!((seen.sender_gap_ns, seen.dark_ns(), seen.error_ns()), (3 * MS, Ok(21 * MS), 6 * MS));
        assert_eq!(moved(2_100_001).dark_ns(), Err("rejected: the sender was 2.1 ms late, of 21.0 ms".to_owned()));
        let never = Train::of(&train(9, &[(1, 1, 1, 's')]));
        assert_eq!(never.dark_ns(), Err("no reply came from the target".to_owned()));
        assert_eq!(Train::of(&train(9, &[])).lost(), 9);
        let cut = Train::of(&train(MOST_PACKETS as u64, &[(1, 1, 1, 's')]));
        assert_eq!(cut.dark_ns(), Err("packets ended after 400,000, before the guest had moved".to_owned()));
    }

    #[test]
    fn a_guest_whose_count_goes_back_runs_on_older_memory_and_its_ways_are_not_known() {
        let moved = |count| Train::of(&train(9, &[(1, 1, 874, 's'), (5, 5, count, 't')]));
        assert_eq!(moved(692).back_by, Some(183));
        assert_eq!((moved(874).back_by, moved(875).back_by), (Some(1), None));
        assert_eq!((moved(692).lost_in, moved(876).lost_out), (None, Some(1)));
    }
}
