//! What a guest's balloon says of its memory: `balloon.*` of `virsh domstats`, and `virsh dommemstat`.
//!
//! Sizes are in KiB, swapped memory too; faults are counted since the guest's start. Source: virsh(1), domstats and dommemstat,
//! libvirt 10.0.

use super::{Pasted, Text};
use crate::machine::{Balloon, Domain, Fact};
use base::number::bytes;

/// Values that are sizes, by the names that both commands have for them.
const SIZES: &[&str] =
    &["actual", "available", "current", "disk_caches", "maximum", "rss", "swap_in", "swap_out", "unused", "usable"];

/// Values that are none.
const OTHERS: &[&str] =
    &["hugetlb_pgalloc", "hugetlb_pgfail", "last-update", "last_update", "major_fault", "minor_fault"];

/// Keeps one value of a guest.
pub(super) fn value(name: &str, domain: &str, value: &str, place: String, pasted: &mut Pasted) {
    let what = format!("balloon.{name}");
    // Without the command nobody knows whose it is.
    if let Ok(kib) = value.parse::<u64>()
        && !domain.is_empty()
        && let Some(domain) = pasted.domain(domain)
    {
        note(domain, name, kib.saturating_mul(1_024), &place);
    }
    match value.parse::<u64>() {
        Ok(kib) if SIZES.contains(&name) => pasted.quote(&what, domain, &bytes(kib as f64 * 1_024.0), place),
        Ok(seconds) if name.starts_with("last") => {
            pasted.quote(&what, domain, &format!("{seconds} s after 1970"), place);
        }
        _ => pasted.quote(&what, domain, value, place),
    }
}

/// What the balloon leaves a guest, and how that gets by with it.
fn note(domain: &mut Domain, name: &str, bytes: u64, place: &str) {
    match name {
        "maximum" => domain.memory_bytes = domain.memory_bytes.or(Some(bytes)),
        "current" | "actual" => domain.current_memory_bytes = Some(bytes),
        "usable" | "swap_out" => {
            let told = domain.balloon.get_or_insert_with(|| Fact::new(Balloon::default(), place));
            match name {
                "usable" => told.value.usable = Some(bytes),
                _ => told.value.swapped_out = Some(bytes),
            }
        }
        _ => {}
    }
}

/// `actual 8388608`, `usable 6900112` and the lines around them, of the domain that the command named.
pub(super) fn stat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let pair = |line: usize| -> Option<(&str, &str)> {
        let (name, value) = text.at(line).split_once(' ')?;
        let is_known = SIZES.contains(&name) || OTHERS.contains(&name);
        (is_known && value.trim().parse::<u64>().is_ok()).then(|| (name, value.trim()))
    };
    let pairs: Vec<_> = (at..text.lines.len()).map_while(pair).collect();
    // `actual 12` alone may be anybody's.
    if pairs.len() < 2 {
        return 0;
    }
    let domain = pasted.domain.clone();
    for ((name, told), line) in pairs.iter().zip(at..) {
        value(name, &domain, told, text.place(line), pasted);
    }
    pairs.len()
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn both_commands_say_the_same_of_a_guests_memory() {
        let stat = "virsh # dommemstat db1\nactual 4194304\nmajor_fault 7\nusable 1024\nlast_update 1700000000\n";
        let stats = "Domain: 'db1'\n  state.state=1\n  balloon.current=4194304\n  balloon.major_fault=7\n  balloon.usable=1024\n  balloon.last-update=1700000000\n";
        for text in [stat, stats] {
            let machine = read(&[("t".to_owned(), text.to_owned())]);
            assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
            let told: Vec<_> = machine.quoted.iter().map(|told| (told.subject.as_str(), told.value.as_str())).collect();
            let values = ["4.3 GB", "7", "1.0 MB", "1700000000 s after 1970"];
            assert_eq!(told, values.map(|value| ("db1", value)), "{text}");
            assert_eq!(machine.domains[0].vcpus, None, "nobody told how many");
        }
    }
}
