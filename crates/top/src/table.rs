//! A block of text: what is said above, and a row for each VM, or for each vCPU of one. More columns where the page is wider.

use super::grid::{Grid, View, fitted};
use super::observe::Frame;
use base::plain::plain;
use show::text::Page;
use std::time::Duration;

/// An interval of that length: the first line, and the text below it.
pub fn text(frame: &Frame, every: Duration, page: &Page, each_vcpu: bool) -> String {
    let mut said: Vec<String> = frame.floor.iter().flat_map(|line| wrapped(line, page.width)).collect();
    let own = said.pop();
    let view = if each_vcpu { View::Vcpus } else { View::Vms };
    let grid = Grid::of(view, &frame.vcpus, None, page.width, &|_| Vec::new());
    said.push(grid.head_line(None));
    said.extend(grid.rows.iter().map(|row| grid.row_line(row)));
    if frame.vcpus.is_empty() {
        said.push(" no vCPU ran or was known in this interval".to_owned());
    }
    said.extend(own);
    let lines = std::iter::once(frame.head.line(every)).chain(said);
    lines.map(|line| fitted(&line, page.width).trim_end().to_owned() + "\n").collect()
}

/// Lines no longer than that, broken between words.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in plain(paragraph).split_whitespace() {
            if line.is_empty() {
                line = word.to_owned();
            } else if line.chars().count() + 1 + word.chars().count() <= width {
                line = format!("{line} {word}");
            } else {
                lines.push(std::mem::replace(&mut line, format!("  {word}")));
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::flow::live::Vcpu;

    fn vcpu(vm: &str, number: u32, ready_ns: u64) -> Vcpu {
        Vcpu {
            vm: vm.to_owned(),
            vcpu: number,
            wall_ns: 1_000_000_000,
            guest_ns: Some(700_000_000 - ready_ns),
            ready_ns: Some(ready_ns),
            unknown_ns: Some(0),
            userspace_exits: Some(vec![("IO".to_owned(), 44_100)]),
            ..Vcpu::default()
        }
    }

    fn lines(vcpus: &[Vcpu], width: usize, each_vcpu: bool) -> Vec<String> {
        let frame = Frame { floor: vec!["cost".to_owned()], vcpus: vcpus.to_vec(), ..Frame::default() };
        let text = text(&frame, Duration::from_secs(1), &Page { width, ..Page::default() }, each_vcpu);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_width_has_its_columns_and_who_waits_stands_first() {
        let vcpus = [vcpu("db", 0, 0), vcpu("a-name-that-is-too-long", 0, 100_000_000), vcpu("we\x1bb", 1, 1_000_000)];
        for width in [50, 80, 120, 200] {
            let text = lines(&vcpus, width, false);
            assert!(text.iter().all(|line| line.chars().count() <= width), "{text:#?}");
            assert_eq!(text[1].contains("WAKE99"), width >= 120);
        }
        let text = lines(&vcpus, 100, false);
        assert!(text[2].starts_with("!a-nam~long    1   60.0     -"), "{text:#?}");
        assert!(text[2].contains(" 10.0 ") && text[2].ends_with("VMM:IO 44.1k/s"), "{text:#?}");
        assert!(text[3].starts_with(" we") && !text[3].contains('\x1b') && text[4].starts_with(" db"), "{text:#?}");
        assert!(text[0].contains("ready -") && text[5] == "cost", "{text:#?}");
    }

    #[test]
    fn of_one_vm_each_vcpu_has_a_row() {
        let text = lines(&[vcpu("web", 0, 0), vcpu("web", 3, 60_000_000)], 80, true);
        assert!(text[2].starts_with("!web           3") && text[3].starts_with(" web           0"), "{text:#?}");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 9), ["one two", "  three"]);
    }
}
