//! Numbers that programs and editors put before lines.
//!
//! ```text
//! 12:CPU(s): 4   grep -n              3<tab>CPU(s): 4   cat -n          9 <domain>   an editor
//! ```
//! What counts in a table's first column is no such number.

use crate::normal::Line;

/// Lines in a row that bear numbers, before the numbers are taken for marks.
const NUMBERED: usize = 3;

/// Takes off the numbers that `grep -n` and `cat -n` put before lines, and editors with blanks behind: several in a row that ascend.
pub(crate) fn unnumber(lines: &mut [Line]) -> bool {
    let changed = take_numbers(lines, &[':', '\t', '|']);
    changed || take_numbers(lines, &[':', '\t', '|', ' '])
}

/// The number that a line begins with, and the text behind one of these marks.
fn numbered<'a>(line: &'a str, marks: &[char]) -> Option<(u64, &'a str)> {
    let bare = line.trim_start();
    let end = bare.find(|letter: char| !letter.is_ascii_digit())?;
    let rest = &bare[end..];
    let text = rest.strip_prefix(marks).or_else(|| rest.strip_prefix('-').filter(|rest| rest.starts_with(' ')))?;
    Some((bare[..end].parse().ok()?, text))
}

fn take_numbers(lines: &mut [Line], marks: &[char]) -> bool {
    let number = |line: &Line| numbered(&line.text, marks).map(|(number, _)| number);
    let numbers: Vec<Option<u64>> = lines.iter().map(number).collect();
    let by_blanks = marks.contains(&' ');
    let (mut at, mut changed) = (0, false);
    while at < lines.len() {
        let ascends =
            |pair: &[Option<u64>]| matches!(pair, [Some(one), Some(next)] if next > one && next - one < 1_000);
        let run = 1 + numbers[at..].windows(2).take_while(|pair| ascends(pair)).count();
        let begins = |line: &Line, is_one: fn(&str) -> bool| {
            numbered(&line.text, marks).is_some_and(|(_, text)| is_one(text.trim_start()))
        };
        // Samples of programs (`0:  12:  77`) and /proc/interrupts have numbers behind the colon.
        let is_mark = |line: &Line| {
            let is_empty = numbered(&line.text, marks).is_some_and(|(_, text)| text.is_empty());
            line.text.contains('\t')
                || is_empty
                || begins(line, |text| text.starts_with(|letter: char| !letter.is_ascii_digit()))
        };
        let counts =
            numbers[at..at + run].windows(2).all(|pair| matches!(pair, [Some(one), Some(next)] if next - one == 1));
        let run_of = &lines[at..at + run];
        // A table of tabs has as many in its head, and its first column may count as well: turbostat's cores.
        let tabs = |line: &Line| line.text.matches('\t').count();
        let is_table = at > 0 && tabs(&lines[at]) > 1 && tabs(&lines[at - 1]) == tabs(&lines[at]);
        let is_numbered = match by_blanks {
            // Every line of a text that was numbered has its number, and some of them have words.
            false => run_of.iter().all(is_mark) || counts && numbers[at] == Some(1) && run_of.iter().any(is_mark),
            // Rows of programs begin with ids and blanks, too: below their heads, or with more numbers. Markup never does.
            true => {
                let is_alone = at == 0 || lines[at - 1].text.trim().is_empty();
                let is_word = |text: &str| {
                    text.starts_with(|letter: char| letter.is_ascii_alphabetic() || "$[]{}/\"".contains(letter))
                        || text.starts_with("# ")
                };
                let words = run_of.iter().filter(|line| begins(line, is_word));
                let markup = run_of.iter().filter(|line| begins(line, |text| text.starts_with('<')));
                let is_markup = markup.count() * 2 > run;
                counts && (is_markup || is_alone && numbers[at] == Some(1) && words.count() == run)
            }
        };
        if numbers[at].is_some() && run >= NUMBERED && is_numbered && !is_table {
            for line in &mut lines[at..at + run] {
                line.text = numbered(&line.text, marks).map_or_else(String::new, |(_, text)| text.to_owned());
            }
            changed = true;
        }
        at += run;
    }
    changed
}

#[cfg(test)]
mod tests {
    use crate::Normal;

    fn texts(text: &str) -> Vec<String> {
        Normal::of(text.as_bytes()).lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn numbers_in_front_of_lines_are_marks_where_they_ascend() {
        assert_eq!(texts("12: a-1 [0] x\n13: b\n20: c\n"), [" a-1 [0] x", " b", " c"]);
        assert_eq!(texts("     1\ta\n     2\tb\n     3\tc\n"), ["a", "b", "c"]);
        let table = "Core\tCPU\tMHz\n0\t0\t803\n1\t1\t801\n2\t2\t804\n";
        assert_eq!(texts(table).join("\n") + "\n", table, "of turbostat");
        let samples = "0: 12: 77\n1: 13: 78\n2: 14: 79\n";
        assert_eq!(texts(samples).len(), 3);
        assert!(texts(samples)[0].starts_with("0:"));
        let edited = "I wrote\n  9 <domain>\n 10   <name>a</name>\n 11: </domain>\n";
        assert_eq!(texts(edited), ["I wrote", "<domain>", "  <name>a</name>", " </domain>"]);
        assert_eq!(texts("1 $ lscpu\n2 CPU(s): 4\n3 Vendor ID: x\n")[1], "CPU(s): 4");
        for rows in
            ["PID USER\n 1 root x\n 2 root y\n 3 root z\n", "1 2 a\n2 3 b\n3 4 c\n", "1 #59 a\n2 #59 b\n3 #59 c\n"]
        {
            assert_eq!(texts(rows).join("\n") + "\n", rows, "rows of programs begin with ids");
        }
        assert_eq!(texts(" 24: 1 2 x\n 25: 3 4 x\n 26: 5 6 x\n")[0], " 24: 1 2 x", "of /proc/interrupts");
    }
}
