//! Files of `/proc` and `/sys` with their names: `cat FILE` at a prompt, `==> FILE <==` of head, `FILE:LINE` of grep.
//!
//! A file of one line is a setting; those of several lines have blocks of their own, which this one leaves to them.

use super::{Pasted, Text, prompt};
use crate::budget;
use crate::machine::Fact;

/// A setting is no longer: `transparent_hugepage/defrag` lists five words.
const MOST_LETTERS: usize = 200;

/// Programs that print a file as it is.
const PRINT: &[&str] = &["cat", "head", "tail", "more", "grep"];

/// `/sys/kernel/mm/ksm/run:1`: the file and what it holds.
pub(super) fn prefixed(line: &str) -> Option<(&str, &str)> {
    let (file, rest) = line.split_once(':')?;
    let is_file = ["/proc/", "/sys/"].iter().any(|root| file.starts_with(root)) && !file.contains(char::is_whitespace);
    is_file.then(|| (file, rest.trim()))
}

/// The files that a line names, whose lines stand below it.
pub(super) fn announced<'a>(line: &'a str) -> Vec<&'a str> {
    if let Some(file) = line.strip_prefix("==> ").and_then(|rest| rest.strip_suffix(" <==")) {
        return vec![file];
    }
    let Some(words) = prompt::command(line) else { return Vec::new() };
    let program = words[0].rsplit('/').next().unwrap_or(words[0]);
    let bare = |word: &&'a str| word.trim_end_matches(';').trim_matches(['\'', '"']);
    let is_file = |word: &&'a str| word.starts_with("/proc/") || word.starts_with("/sys/");
    let is_plain = !words.iter().any(|word| word.contains(['|', '*', '{', '$', '>']));
    // `cat FILE; sleep 10; cat FILE`: several commands that print nothing else.
    let is_quiet = |word: &&'a str| {
        let word = bare(word);
        is_file(&word) || matches!(word, "cat" | "sleep" | "") || word.parse::<f64>().is_ok()
    };
    let is_one = !words.iter().any(|word| word.contains(';')) || words[1..].iter().all(is_quiet);
    match PRINT.contains(&program) && is_plain && is_one {
        true => words[1..].iter().map(bare).filter(is_file).collect(),
        false => Vec::new(),
    }
}

/// The files of a command, with those that the shell makes of `/sys/module/kvm/parameters/{nested,ept}`.
fn spelled_out(line: &str) -> Vec<String> {
    let plain = || announced(line).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let Some((head, rest)) = line.split_once('{') else { return plain() };
    let Some((names, tail)) = rest.split_once('}').filter(|(_, tail)| !tail.contains('{')) else { return plain() };
    let (Some(before), Some(behind)) = (head.rsplit(' ').next(), tail.split(' ').next()) else { return plain() };
    // The command without its braces says whether it prints these files and nothing else.
    let single = format!("{head}{}{tail}", names.split(',').next().unwrap_or_default());
    match announced(&single).len() {
        1 => names.split(',').map(|name| format!("{before}{name}{behind}")).collect(),
        _ => plain(),
    }
}

/// `==> FILE <==`: the name of a file whose lines have blocks of their own.
pub(super) fn heading(text: &Text<'_>, at: usize, _: &mut Pasted) -> usize {
    usize::from(text.at(at).starts_with("==> ") && text.at(at).ends_with(" <=="))
}

/// Whether a file holds a setting.
fn is_setting(file: &str) -> bool {
    // What a node has stands there with the node before each line.
    let is_other = file.contains(".stat") || file.contains(".pressure") || file.ends_with("/meminfo");
    let is_of_irq = file.starts_with("/proc/irq/") && file.ends_with("_affinity_list");
    file.starts_with("/sys/") && !is_other || file.starts_with("/proc/sys/") || is_of_irq
}

/// Settings, each by the name of its file.
pub(super) fn settings(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if let Some((file, value)) = prefixed(text.at(at)) {
        return usize::from(is_setting(file) && note(pasted, file, value, text.place(at)));
    }
    let files = spelled_out(text.at(at));
    if files.is_empty() || !files.iter().all(|file| is_setting(file)) {
        return 0;
    }
    let is_value = |line: usize| {
        let value = text.at(line);
        !value.is_empty()
            && announced(value).is_empty()
            && prompt::command(value).is_none()
            && prefixed(value).is_none()
    };
    let mut end = at + 1;
    for file in files {
        if is_value(end) && note(pasted, &file, text.at(end), text.place(end)) {
            end += 1;
        }
    }
    // A name without what the file holds is nobody's.
    if end == at + 1 { 0 } else { end - at }
}

/// `vm.swappiness = 60`, as sysctl prints it.
pub(super) fn sysctl(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some((name, value)) = text.at(at).split_once(" = ") else { return 0 };
    let is_name = ["kernel.", "vm.", "net."].iter().any(|root| name.starts_with(root))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if !is_name {
        return 0;
    }
    let file = format!("/proc/sys/{}", name.replace('.', "/"));
    usize::from(note(pasted, &file, value.trim(), text.place(at)))
}

fn note(pasted: &mut Pasted, file: &str, value: &str, place: String) -> bool {
    if value.is_empty() || value.len() > MOST_LETTERS {
        return false;
    }
    let settings = &mut pasted.machine.settings;
    if settings.len() >= budget::UNREAD_SENTENCES * 8 {
        pasted.leave_out("settings beyond the first", budget::UNREAD_SENTENCES * 8);
        return true;
    }
    settings.insert(file.trim_start_matches('/').to_owned(), Fact::new(value.to_owned(), place));
    true
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn settings_are_known_by_the_names_of_their_files() {
        let text = "# cat /sys/kernel/mm/transparent_hugepage/enabled\nalways madvise [never]\n# cat /sys/kernel/mm/ksm/run\n1\n\
                    $ grep . /sys/kernel/mm/ksm/*\n/sys/kernel/mm/ksm/pages_sharing:120\n==> /sys/kernel/mm/ksm/sleep_millisecs <==\n20\n\n\
                    vm.swappiness = 60\n# cat /sys/module/kvm_intel/parameters/{nested,ept}\nY\nN\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        for (path, value) in [
            ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
            ("sys/kernel/mm/ksm/run", "1"),
            ("sys/kernel/mm/ksm/pages_sharing", "120"),
            ("sys/kernel/mm/ksm/sleep_millisecs", "20"),
            ("proc/sys/vm/swappiness", "60"),
            ("sys/module/kvm_intel/parameters/ept", "N"),
        ] {
            assert_eq!(machine.setting(path), Some(value), "{path}");
        }
    }
}
