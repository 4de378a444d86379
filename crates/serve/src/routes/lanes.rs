//! Lanes as an address names them: `0-15,20`, and groups of them `16-19;30-33`.

use super::asked::lane;
use crate::error::Refused;
use base::timeline::{LaneId, Timeline};

/// The most lanes of an answer that has pixels or slices of each.
pub(super) const MOST_LANES: usize = 512;

/// The most lanes of an answer that sums over them.
pub(super) const MOST_SUMMED: usize = 8_192;

/// Lanes by number or range, as `0-15,20`; all, where nothing is said.
///
/// # Errors
/// If `timeline` lacks one of them, or if they are more than `most`.
pub(super) fn lanes(timeline: &impl Timeline, asked: Option<&str>, most: usize) -> Result<Vec<LaneId>, Refused> {
    let too_many = || Refused::wrong(format!("an answer has at most {most} lanes; ask for fewer by lanes="));
    let Some(list) = asked else {
        let all = timeline.lanes().len();
        if all > most {
            return Err(too_many());
        }
        return Ok((0..all as u32).map(LaneId).collect());
    };
    let number =
        |text: &str| text.parse().map_err(|_| Refused::wrong("write lane numbers and ranges, as in lanes=0,1,4-7"));
    let mut out = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (lane(timeline, number(first)?)?, lane(timeline, number(last)?)?);
        if out.len() + (last.0.saturating_sub(first.0) as usize) >= most {
            return Err(too_many());
        }
        out.extend((first.0..=last.0).map(LaneId));
    }
    Ok(out)
}

/// Groups of lanes, `0-3;8,9`; none, where nothing is said.
///
/// # Errors
/// As [`lanes`].
pub(super) fn groups(timeline: &impl Timeline, asked: Option<&str>) -> Result<Vec<Vec<LaneId>>, Refused> {
    let mut rest = MOST_SUMMED;
    let group = |list| {
        let group = lanes(timeline, Some(list), rest)?;
        rest -= group.len();
        Ok(group)
    };
    let groups: Vec<_> = asked.into_iter().flat_map(|list| list.split(';')).map(group).collect::<Result<_, _>>()?;
    if groups.len() > MOST_LANES {
        return Err(Refused::wrong(format!("a tile has at most {MOST_LANES} groups; ask for fewer by means=")));
    }
    Ok(groups)
}
