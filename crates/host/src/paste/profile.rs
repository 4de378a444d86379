//! `perf report --stdio` and `perf top --stdio`: which functions the samples were in.
//!
//! ```text
//! # Samples: 40K of event 'cycles:P'
//! # Overhead  Command          Shared Object             Symbol
//!     28.12%  CPU 1/KVM        [kernel.kallsyms]         [k] vmx_vcpu_run
//! ```
//! Source: perf-report(1), Linux 6.12.

use super::{Pasted, Text};

/// Comments above the rows, by how they begin behind `#`.
const COMMENTS: &[&str] = &[
    "To display the perf.data header",
    "Total Lost Samples:",
    "Samples:",
    "Event count",
    "Overhead",
    "Children",
    "....",
    "(Tip:",
];

/// A comment of perf's, or rows.
pub(super) fn rows(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let comment = text.at(at).strip_prefix('#').map(str::trim);
    if let Some(comment) = comment {
        let is_known = |begin: &&str| comment.starts_with(*begin);
        if COMMENTS.iter().any(is_known) {
            if let Some((count, event)) =
                comment.strip_prefix("Samples:").and_then(|rest| rest.split_once(" of event "))
            {
                pasted.quote("samples of perf", event.trim(), count.trim(), text.place(at));
            }
            return 1;
        }
        // Bare marks stand between them.
        let near = |line: usize| text.at(line).strip_prefix('#').map(str::trim).unwrap_or_default();
        let beside = at.checked_sub(1).map(near).into_iter().chain([near(at + 1)]);
        let is_between =
            comment.is_empty() && beside.into_iter().any(|near| COMMENTS.iter().any(|begin| near.starts_with(begin)));
        return usize::from(is_between);
    }
    let mut end = at;
    while let Some((share, command, symbol)) = row(text.at(end)) {
        let what = if command.is_empty() {
            "samples of perf in it".to_owned()
        } else {
            format!("samples of perf in it, of {command}")
        };
        pasted.quote(&what, symbol, share, text.place(end));
        end += 1;
    }
    end - at
}

/// The share, the command and the function of a row: the function stands behind `[k]` or `[.]`, the object before it.
fn row(line: &str) -> Option<(&str, String, &str)> {
    let (share, rest) = line.split_once('%')?;
    share.trim().parse::<f64>().ok().filter(|_| share.contains('.'))?;
    let share = &line[..=share.len()];
    let (head, symbol) = ["[k] ", "[.] ", "[g] ", "[u] ", "[H] "].iter().find_map(|mark| rest.split_once(mark))?;
    // With --children a second share stands before the command.
    let head = head.trim();
    let head = match head.split_once('%') {
        Some((own, rest)) if own.trim().parse::<f64>().is_ok() => rest.trim(),
        _ => head,
    };
    let words: Vec<&str> = head.split_whitespace().collect();
    let command = words[..words.len().saturating_sub(1)].join(" ");
    Some((share, command, symbol.trim()))
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn rows_tell_the_share_the_thread_and_the_function() {
        let text = "# Samples: 40K of event 'cycles:P'\n#\n# Overhead  Command   Shared Object      Symbol\n# ........  ........  .................  ......\n#\n\
            \x20   28.12%  CPU 1/KVM  [kernel.kallsyms]  [k] vmx_vcpu_run\n     3.00%  qemu-kvm  qemu-kvm  [.] main_loop_wait\n\
            \x20   9.00%     4.00%  CPU 0/KVM  [kernel.kallsyms]  [k] kvm_mmu_page_fault\nit is 5 % of [k] all\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        let told: Vec<_> = machine
            .quoted
            .iter()
            .map(|told| (told.what.as_str(), told.subject.as_str(), told.value.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("samples of perf", "'cycles:P'", "40K"),
                ("samples of perf in it, of CPU 1/KVM", "vmx_vcpu_run", "28.12%"),
                ("samples of perf in it, of qemu-kvm", "main_loop_wait", "3.00%"),
                ("samples of perf in it, of CPU 0/KVM", "kvm_mmu_page_fault", "9.00%"),
            ]
        );
    }
}
