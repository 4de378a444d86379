//! What the options of a trace.dat file say.
//!
//! Source: trace-cmd.dat.v7(5) of trace-cmd 3.1.6; the fraction bits behind TIME_SHIFT from its code, which writes them
//! though the page does not name them.

use super::cursor::Cursor;
use super::layout::Layout;
use crate::facts::{Facts, Guest, StatedLoss, TimeShift};
use crate::format::Endian;
use base::{Clock, ClockSource};

/// Ends a list of options; in version 7 it holds the place of the next list.
pub(super) const DONE: u16 = 0;
/// Offset between the trace clock and the time of day, as text.
pub(super) const DATE: u16 = 1;
/// Text of `per_cpu/cpuN/stats`.
pub(super) const CPUSTAT: u16 = 2;
/// A trace instance.
pub(super) const BUFFER: u16 = 3;
/// Text of `trace_clock`, the clock in use in brackets.
pub(super) const TRACECLOCK: u16 = 4;
/// `uname` of the machine.
pub(super) const UNAME: u16 = 5;
/// A time to add to every stamp, as text.
pub(super) const OFFSET: u16 = 7;
/// Number of CPUs.
pub(super) const CPUCOUNT: u16 = 8;
/// Version of trace-cmd.
pub(super) const VERSION: u16 = 9;
/// Number of this recording.
pub(super) const TRACEID: u16 = 11;
/// Clock samples against a peer.
pub(super) const TIME_SHIFT: u16 = 12;
/// A guest recorded with this host.
pub(super) const GUEST: u16 = 13;
/// Scale of the time-stamp counter.
pub(super) const TSC2NSEC: u16 = 14;
/// `header_page` and `header_event`.
pub(super) const HEADER_INFO: u16 = 16;
/// Formats of the tracers' own events.
pub(super) const FTRACE_EVENTS: u16 = 17;
/// Formats of all other events.
pub(super) const EVENT_FORMATS: u16 = 18;
/// Addresses and names of the kernel's functions.
pub(super) const KALLSYMS: u16 = 19;
/// Texts of `trace_printk`.
pub(super) const PRINTK: u16 = 20;
/// Thread names.
pub(super) const CMDLINES: u16 = 21;

/// Scale of the time-stamp counter, as the option gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TscScale {
    /// Nanoseconds = ticks x `mult` >> `shift`.
    pub mult: u32,
    /// See `mult`.
    pub shift: u32,
}

/// Fills `facts` from the options and returns what all buffers' clocks need.
pub(super) fn apply(layout: &Layout, facts: &mut Facts) -> ClockHints {
    let mut hints = ClockHints::default();
    for (id, data) in &layout.options {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').trim().to_owned();
        let mut cursor = Cursor::new(data, 0, layout.endian);
        match *id {
            CPUSTAT => facts.losses.extend(stated_losses(&text())),
            TRACECLOCK => hints.in_use = bracketed(&text()),
            UNAME => facts.uname = Some(text()),
            VERSION => {
                facts.env.insert("trace-cmd".into(), text());
            }
            TRACEID => facts.trace_id = cursor.u64(),
            TIME_SHIFT => facts.time_shifts.extend(time_shift(data, layout.endian)),
            GUEST => facts.guests.extend(guest(&mut cursor)),
            TSC2NSEC => {
                hints.tsc = cursor.u32().zip(cursor.u32()).map(|(mult, shift)| TscScale { mult, shift });
            }
            OFFSET | DATE => hints.offset_ns = hints.offset_ns.saturating_add(number(&text())),
            _ => {}
        }
    }
    hints
}

/// What the options say of clocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClockHints {
    /// The clock in use, where the buffer itself does not name one.
    pub(crate) in_use: Option<String>,
    /// Scale of `x86-tsc`.
    pub tsc: Option<TscScale>,
    /// Nanoseconds to add.
    pub offset_ns: i64,
}

impl ClockHints {
    /// The clock of a buffer that names `own`, or nothing.
    ///
    /// Which clocks count nanoseconds: `trace_clocks` in kernel/trace/trace.c (Linux 6.12). `uptime` counts
    /// `USER_HZ` ticks, 100 a second on x86; `counter` counts events.
    pub(super) fn clock(&self, own: &str) -> Clock {
        let name = if own.is_empty() { self.in_use.as_deref().unwrap_or("local") } else { own };
        let clock = match (name, self.tsc) {
            ("x86-tsc", Some(scale)) if scale.mult > 0 && scale.shift < 64 => {
                Clock { mult: u64::from(scale.mult), shift: scale.shift, ..Clock::nanoseconds(name) }
            }
            ("local" | "global" | "mono" | "mono_raw" | "boot" | "tai" | "perf" | "tsc2nsec", _) => {
                Clock::nanoseconds(name)
            }
            ("uptime", _) => Clock::with_frequency(name, 100),
            _ => Clock::uncalibrated(name),
        };
        Clock { offset_ns: if clock.source == ClockSource::None { 0 } else { self.offset_ns }, ..clock }
    }
}

/// The word in brackets of `local global [mono] x86-tsc`.
fn bracketed(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// A decimal or 0x-hexadecimal number, 0 if it is none; trace-cmd writes both.
fn number(text: &str) -> i64 {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).map_or(0, |value| value as i64),
        None => digits.parse().unwrap_or(0),
    };
    if negative { value.saturating_neg() } else { value }
}

/// Losses in the text of `per_cpu/cpuN/stats`.
fn stated_losses(text: &str) -> Vec<StatedLoss> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let cpu = value("CPU").and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(0);
    let kinds = ["overrun", "commit overrun", "dropped events"];
    kinds
        .iter()
        .filter_map(|kind| value(kind).filter(|count| *count > 0).map(|count| (kind, count)))
        .map(|(kind, count)| StatedLoss { cpu: Some(cpu), kind: (*kind).to_owned(), count })
        .collect()
}

fn guest(cursor: &mut Cursor<'_>) -> Option<Guest> {
    let (name, trace_id, count) = (cursor.text()?, cursor.u64()?, cursor.u32()?);
    let mut vcpu_tids = Vec::new();
    for _ in 0..count {
        vcpu_tids.push((cursor.u32()?, cursor.u32()? as i32));
    }
    Some(Guest { name, trace_id, vcpu_tids })
}

fn time_shift(data: &[u8], endian: Endian) -> Option<TimeShift> {
    let mut cursor = Cursor::new(data, 0, endian);
    let (peer, flags, cpus) = (cursor.u64()?, cursor.u32()?, cursor.u32()?);
    let mut samples = Vec::new();
    for _ in 0..cpus {
        let count = cursor.u32()?;
        let mut column = || (0..count).map(|_| cursor.u64()).collect::<Option<Vec<u64>>>();
        let (times, offsets, scalings) = (column()?, column()?, column()?);
        let rows = times.into_iter().zip(offsets).zip(scalings);
        samples.push(rows.map(|((time, offset), scaling)| (time, offset as i64, scaling)).collect());
    }
    let fraction_bits = (0..cpus).map_while(|_| cursor.u64()).collect();
    Some(TimeShift { peer, flags, samples, fraction_bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpus_stats_tell_its_losses() {
        let text = "CPU: 3\nentries: 5\noverrun: 7\ncommit overrun: 0\nbytes: 1\ndropped events: 2\n";
        let losses = stated_losses(text);
        assert_eq!(
            losses,
            [
                StatedLoss { cpu: Some(3), kind: "overrun".into(), count: 7 },
                StatedLoss { cpu: Some(3), kind: "dropped events".into(), count: 2 }
            ]
        );
    }

    #[test]
    fn the_clock_in_use_is_the_bracketed_one_and_a_tsc_needs_its_scale() {
        assert_eq!(bracketed("local global [x86-tsc] boot"), Some("x86-tsc".into()));
        let mut hints = ClockHints { in_use: Some("x86-tsc".into()), ..ClockHints::default() };
        assert_eq!(hints.clock("").source, ClockSource::None);
        hints.tsc = Some(TscScale { mult: 477_218_588, shift: 30 });
        assert_eq!(hints.clock("").ns(9_000_000_000), 3_999_999_996);
        assert_eq!(hints.clock("mono").ns(5), 5, "a buffer's own clock comes first");
    }
}
