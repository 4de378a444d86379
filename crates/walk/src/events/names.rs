//! What kernels and processors call their numbers: the tables of `names.tsv`.

use std::sync::LazyLock;

const TEXT: &str = include_str!("names.tsv");

type Names = LazyLock<Vec<(u32, &'static str)>>;

/// Exit reasons: as kernels print them, by code, and other names under which text has them.
pub(super) static VMX: Names = LazyLock::new(|| table("vmx"));
pub(super) static VMX_ALIASES: Names = LazyLock::new(|| table("vmx-alias"));
pub(super) static SVM: Names = LazyLock::new(|| table("svm"));
pub(super) static SVM_ALIASES: Names = LazyLock::new(|| table("svm-alias"));
pub(super) static ARM64: Names = LazyLock::new(|| table("arm64"));

/// MSRs that guests are seen to exit on.
pub(super) static MSRS: Names = LazyLock::new(|| table("msr"));

/// What the kernel prints for a register in `kvm_apic`.
pub(super) static APIC: Names = LazyLock::new(|| table("apic"));

/// The name of a number in a table that is sorted by number.
pub(super) fn find(table: &[(u32, &'static str)], number: u32) -> Option<&'static str> {
    table.binary_search_by_key(&number, |(known, _)| *known).ok().map(|at| table[at].1)
}

fn table(name: &str) -> Vec<(u32, &'static str)> {
    let rows = TEXT.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
    rows.map(|text| row(text).unwrap_or_else(|| panic!("names.tsv: {text}"))).collect()
}

fn row(text: &'static str) -> Option<(u32, &'static str)> {
    let (number, name) = text.split_once('\t')?;
    let number = match number.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    Some((number.ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_of_a_table_and_every_table_stands_under_its_source() {
        let all = [&VMX, &VMX_ALIASES, &SVM, &SVM_ALIASES, &ARM64, &MSRS, &APIC];
        let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
        assert_eq!(TEXT.lines().filter(is_row).count(), all.iter().map(|table| table.len()).sum::<usize>());
        let mut above = "";
        for line in TEXT.lines() {
            let of = |line: &str| line.split_once('\t').map(|(table, _)| table.to_owned());
            assert!(!is_row(&line) || of(above) == of(line) || above.starts_with("# "), "{line}: no source");
            above = line;
        }
    }

    #[test]
    fn tables_are_sorted_by_number_so_that_the_search_finds_all() {
        for table in [&VMX, &SVM, &ARM64, &MSRS, &APIC] {
            assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        assert_eq!((find(&SVM, 0xf000_0000), find(&SVM, 0x404)), (Some("SW"), None));
    }
}
