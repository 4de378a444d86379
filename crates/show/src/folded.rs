//! Folded stacks: the input of flamegraph.pl, inferno and speedscope.
//!
//! ```text
//! VM;vCPU_0;L0;L0_working_for_L2;CPUID 36800000     level: who had the CPU, VMM, off CPU; no reason where nothing tells
//! ```
//! The frames are those of the dashboard's view Flame. In: the sums of a walk, or the samples of a profile. `;` in a name becomes `,` and a blank `_`, because they separate frames and counts; what misleads in a name
//! becomes U+FFFD ([`base::plain`]).

use crate::picture::{kind, vm_title};
use base::plain::plain;
use base::timeline::{Stacks, VcpuStacks};
use base::{Level, Narrow};
use std::io::{self, Write};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Time,
    /// Stays: slices of the time line.
    Count,
}

/// What is drawn beside the time itself: whose machine it is, who emulated it, what of it is wanted.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The machine that was recorded.
    pub host: Level,
    /// Who emulated the hardware, if somebody did.
    pub emulated: Option<&'a str>,
    /// Which VM, vCPU and level; `vcpus` were summed inside the window already.
    pub narrow: &'a Narrow,
}

/// The stacks of `vcpus` that are wanted.
pub fn stacks(vcpus: &[VcpuStacks], shown: Shown<'_>, weight: Weight) -> Stacks {
    let Shown { host, emulated, narrow } = shown;
    let mut stacks = Stacks::new();
    for of in vcpus.iter().filter(|of| narrow.wants_vcpu(&of.vm, of.vcpu)) {
        for ((state, reason), sum) in &of.sums {
            let kind = kind(&state.name, host);
            if !narrow.wants_level(kind.level) {
                continue;
            }
            let mut frames = vec![vm_title(&of.vm, emulated), format!("vCPU {}", of.vcpu)];
            frames.extend([kind.row.title(host), state.title.clone()]);
            frames.extend((!reason.is_empty()).then(|| reason.clone()));
            *stacks.entry(frames).or_default() += if weight == Weight::Time { sum.time_ns } else { sum.stays };
        }
    }
    stacks
}

/// Writes a line for each stack.
///
/// # Errors
/// If `out` refuses.
pub fn write(out: &mut dyn Write, stacks: &Stacks) -> io::Result<()> {
    for (frames, weight) in stacks {
        let frames: Vec<String> = frames.iter().map(|frame| plain(frame).replace(';', ",").replace(' ', "_")).collect();
        writeln!(out, "{} {weight}", frames.join(";"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Picture;
    use crate::witness::{FIXTURES, answered, summed};
    use base::timeline::Timeline;
    use base::{Cell, Span};

    fn shown(narrow: &Narrow) -> Shown<'_> {
        Shown { host: Level::L0, emulated: None, narrow }
    }

    fn lines(stacks: &Stacks) -> Vec<(String, u64)> {
        let mut out = Vec::new();
        write(&mut out, stacks).unwrap();
        let text = String::from_utf8(out).unwrap();
        let line = |line: &str| line.rsplit_once(' ').map(|(stack, sum)| (stack.to_owned(), sum.parse().unwrap()));
        text.lines().map(|text| line(text).unwrap()).collect()
    }

    #[test]
    fn a_name_neither_misleads_nor_breaks_a_line() {
        let stacks = Stacks::from([(vec!["\u{202e}web\u{200b};x".to_owned(), "vCPU 0\nL2 9".to_owned()], 7)]);
        let mut out = Vec::new();
        write(&mut out, &stacks).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\u{fffd}web\u{fffd},x;vCPU_0\u{fffd}L2_9 7\n");
    }

    #[test]
    fn stacks_of_a_vcpu_sum_to_the_ledgers_columns() {
        for name in FIXTURES {
            let ((drawn, section), narrow) = (answered(name), Narrow::default());
            let lines = lines(&stacks(&summed(name, &narrow), shown(&narrow), Weight::Time));
            let vcpus = section.table("vcpus").unwrap();
            let states = drawn.timeline.states();
            for (row, of) in drawn.vcpus.iter().enumerate() {
                let vcpu = format!("{};vCPU_{};", of.vm.replace(' ', "_"), of.vcpu);
                for column in vcpus.spec.columns.iter().filter_map(|column| column.name.strip_suffix("_ns")) {
                    let stack = match states.iter().find(|state| state.name == column) {
                        Some(state) => {
                            let row = kind(column, Level::L0).row.title(Level::L0);
                            format!("{vcpu}{row};{}", state.title).replace(' ', "_")
                        }
                        None if column == "wall" => vcpu.clone(),
                        None => format!("{vcpu}no time there"),
                    };
                    let sum: u64 = lines.iter().filter(|(line, _)| line.starts_with(&stack)).map(|line| line.1).sum();
                    assert_eq!(Some(&Cell::U64(sum)), vcpus.cell(row, &format!("{column}_ns")), "{name}: {stack}");
                }
            }
        }
    }

    #[test]
    fn sums_without_a_timeline_are_those_of_its_slices() {
        let window = Some(Span { from_ns: 50_000_000, to_ns: 300_000_000 });
        for name in FIXTURES {
            let (drawn, _) = answered(name);
            for narrow in [Narrow::default(), Narrow { window, level: Some(Level::At(1)), ..Narrow::default() }] {
                let picture = Picture { drawn: &drawn, emulated: None, narrow: &narrow };
                let (kinds, mut expected) = (picture.kinds(), [Stacks::new(), Stacks::new()]);
                for lane in picture.lanes() {
                    let of = &drawn.vcpus[lane.0 as usize];
                    for piece in picture.pieces(lane, picture.window()) {
                        let place = usize::from(piece.state.0);
                        let title = drawn.timeline.states()[place].title.clone();
                        let row = kinds[place].row.title(Level::L0);
                        let mut frames = vec![of.vm.clone(), format!("vCPU {}", of.vcpu), row, title];
                        frames.extend((!piece.cause.is_empty()).then(|| piece.cause.to_owned()));
                        *expected[0].entry(frames.clone()).or_default() += piece.span.length_ns();
                        *expected[1].entry(frames).or_default() += 1;
                    }
                }
                let sums = summed(name, &narrow);
                let found = [Weight::Time, Weight::Count].map(|weight| stacks(&sums, shown(&narrow), weight));
                assert_eq!(found, expected, "{name}");
            }
        }
    }
}
