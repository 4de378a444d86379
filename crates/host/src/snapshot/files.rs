//! The list, `files.tsv`: which files a snapshot takes, and what each is needed for.

use std::sync::LazyLock;

/// Files of one kind, and why they are taken.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Where they lie below the root; see `pattern` for the syntax.
    pub pattern: &'static str,
    pub why: &'static str,
    pub how: How,
}

/// How a file is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Copy,
    /// With what may be a secret taken out.
    Redact,
    /// Only on request, because reading it takes long or disturbs what it tells about.
    OnRequest,
}

/// Every file of a snapshot.
pub static FILES: LazyLock<Vec<Wanted>> = LazyLock::new(|| {
    let how = |kind| match kind {
        "copy" => Some(How::Copy),
        "redact" => Some(How::Redact),
        "on-request" => Some(How::OnRequest),
        _ => None,
    };
    rows().filter_map(|(kind, pattern, why)| Some(Wanted { pattern, why, how: how(kind)? })).collect()
});

/// Links whose targets are facts, and why they are taken.
pub static LINKS: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| rows().filter(|(kind, ..)| *kind == "link").map(|(_, pattern, why)| (pattern, why)).collect());

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    include_str!("files.tsv").lines().filter_map(|line| {
        let (kind, rest) = line.split_once('\t')?;
        let (pattern, why) = rest.split_once('\t')?;
        Some((kind, pattern, why))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_how_a_file_is_taken_and_why() {
        let text = include_str!("files.tsv");
        let count = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(FILES.len() + LINKS.len(), count);
        assert!(rows().all(|(_, pattern, why)| !pattern.is_empty() && !why.is_empty() && !why.contains('\t')));
    }

    #[test]
    fn nothing_that_may_hold_a_secret_is_copied_as_it_is() {
        for wanted in FILES.iter() {
            let taken = wanted.pattern;
            assert!(!taken.contains("environ") && !taken.contains("/mem,") && !taken.ends_with("/mem"), "{taken}");
            assert!(!taken.contains("proc/<pid>/cmdline"), "{taken}");
            assert!(
                !taken.contains("cmdline") || taken.contains("saved_cmdlines") || wanted.how == How::Redact,
                "{taken}"
            );
        }
    }
}
