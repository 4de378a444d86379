//! Folded stacks: the input of flamegraph.pl, inferno and speedscope.
//!
//! ```text
//! VM;vCPU_0;L2;handling;CPUID 36800000        level: whose guest ran or was served; no reason where nothing tells
//! ```
//! In: a picture, whose slices are summed; or the samples of a profile, as table `profile` has them. `;` in a name
//! becomes `,` and a blank `_`, because they separate frames and counts.

use crate::picture::Picture;
use base::{Cell, Section};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What a stack weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Nanoseconds.
    Time,
    /// Stays: slices of the time line.
    Count,
}

/// Frames from the VM to the reason, and what they weigh together.
pub type Stacks = BTreeMap<Vec<String>, u64>;

/// The slices of the picture's window, summed.
pub fn stacks(picture: &Picture<'_>, weight: Weight) -> Stacks {
    let kinds = picture.kinds();
    let mut stacks = Stacks::new();
    for lane in picture.lanes() {
        let of = &picture.drawn.vcpus[lane.0 as usize];
        let mut sums: BTreeMap<(u8, &str), u64> = BTreeMap::new();
        for piece in picture.pieces(lane, picture.window()) {
            let weighs = if weight == Weight::Time { piece.span.length_ns() } else { 1 };
            *sums.entry((piece.state.0, piece.cause)).or_default() += weighs;
        }
        for ((state, cause), sum) in sums {
            let kind = &kinds[usize::from(state)];
            let frames = [&picture.vm_title(&of.vm), &format!("vCPU {}", of.vcpu), &kind.level.to_string(), kind.state];
            let frames = frames.into_iter().chain((!cause.is_empty()).then_some(cause)).map(str::to_owned);
            *stacks.entry(frames.collect()).or_default() += sum;
        }
    }
    stacks
}

/// Samples of the tables called `profile`: a stack and its number each. Empty where nothing was sampled.
pub fn samples(sections: &[Section]) -> Stacks {
    let mut stacks = Stacks::new();
    for table in sections.iter().filter_map(|section| section.table("profile")) {
        for row in 0..table.rows.len() {
            let (Some(Cell::Text(stack)), Some(Cell::U64(samples))) =
                (table.cell(row, "stack"), table.cell(row, "samples"))
            else {
                continue;
            };
            *stacks.entry(stack.split(';').map(str::to_owned).collect()).or_default() += samples;
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
        let frames: Vec<String> = frames.iter().map(|frame| frame.replace(';', ",").replace(' ', "_")).collect();
        writeln!(out, "{} {weight}", frames.join(";"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::witness::{FIXTURES, answered};
    use analysis::Options;
    use base::Level;

    fn lines(stacks: &Stacks) -> Vec<(String, u64)> {
        let mut out = Vec::new();
        write(&mut out, stacks).unwrap();
        let text = String::from_utf8(out).unwrap();
        let line = |line: &str| line.rsplit_once(' ').map(|(stack, sum)| (stack.to_owned(), sum.parse().unwrap()));
        text.lines().map(|text| line(text).unwrap()).collect()
    }

    #[test]
    fn stacks_of_a_vcpu_sum_to_the_ledgers_columns() {
        for name in FIXTURES {
            let (drawn, section) = answered(name);
            let options = Options::default();
            let picture = Picture { drawn: &drawn, host: Level::L0, emulated: None, options: &options };
            let lines = lines(&stacks(&picture, Weight::Time));
            let vcpus = section.table("vcpus").unwrap();
            for (row, of) in drawn.vcpus.iter().enumerate() {
                let vcpu = format!("{};vCPU_{};", of.vm.replace(' ', "_"), of.vcpu);
                for column in vcpus.columns.iter().filter_map(|column| column.name.strip_suffix("_ns")) {
                    let stack = match column.split_once("_l") {
                        _ if column == "wall" => vcpu.clone(),
                        Some((state @ ("guest" | "handling"), level)) => format!("{vcpu}L{level};{state}"),
                        _ if column.ends_with("_unknown_level") => {
                            format!("{vcpu}L?;{}", column.trim_end_matches("_unknown_level"))
                        }
                        _ => format!("{vcpu}L0;{column}"),
                    };
                    let sum: u64 = lines.iter().filter(|(line, _)| line.starts_with(&stack)).map(|line| line.1).sum();
                    assert_eq!(Some(&Cell::U64(sum)), vcpus.cell(row, &format!("{column}_ns")), "{name}: {stack}");
                }
            }
        }
    }

    #[test]
    fn counts_are_slices_and_reasons_survive_an_interrupt() {
        let (drawn, _) = answered("nested-vmx-shadow-off-hog");
        let options = Options::default();
        let picture = Picture { drawn: &drawn, host: Level::L0, emulated: None, options: &options };
        let counts = stacks(&picture, Weight::Count);
        assert_eq!(counts.values().sum::<u64>(), picture.fit(u64::MAX).slices);
        let vmread = counts.iter().find(|(stack, _)| stack.last().is_some_and(|reason| reason == "VMREAD"));
        assert!(vmread.is_some_and(|(_, count)| *count >= 1_192), "{vmread:?}");
    }
}
