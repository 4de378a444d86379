//! What is different about paths that programs of DPDK kept busy, in words.
//!
//! They count frames and look at none, use rings and memory of their own, and `rte-ring` moves no frame at all: a rate of theirs stands beside
//! one of ours, and never for the same.

use super::measured::{Channel, Measured, NONE, POLL};
use base::channel::{DPDK_PATHS, POINTER_BYTES, RTE_RING};
use base::number::{list, packets_per_s};

/// True if DPDK's programs kept it busy.
pub(crate) fn is_of(one: &Measured<'_>) -> bool {
    DPDK_PATHS.contains(&one.setup.path.as_str())
}

/// What has to be known of them, if any was measured.
pub(crate) fn about(channel: &Channel<'_>) -> Option<String> {
    let names: Vec<String> = DPDK_PATHS
        .iter()
        .filter(|path| channel.measured().any(|one| one.setup.path == **path))
        .map(|path| (*path).to_owned())
        .collect();
    let has_ring = names.iter().any(|name| name == RTE_RING);
    let pointers = format!(
        " {RTE_RING} moves pointers of {POINTER_BYTES} bytes and copies no frame, for a few milliseconds: it is a bound for rings, and no path between \
         machines."
    );
    (!names.is_empty()).then(|| {
        let (keep, unverified) = if names.len() == 1 { ("is", "this rate is") } else { ("are", "these rates are") };
        format!(
            "{} {keep} kept busy by DPDK's programs, which look at no frame: {unverified} unverified.{}",
            list(&names),
            if has_ring { &pointers } else { "" }
        )
    })
}

/// What the other paths of the same run carry, where one of both is DPDK's; pointers are said to be such.
pub(crate) fn beside(channel: &Channel<'_>, main: &Measured<'_>) -> Option<String> {
    let is_like = |one: &&Measured<'_>| {
        let is_pointers = one.setup.path == RTE_RING;
        one.machine == main.machine
            && one.setup.path != main.setup.path
            && (is_of(one) || is_of(main))
            && (one.setup.batch, one.setup.policy.as_str(), one.setup.vms) == (main.setup.batch, POLL, main.setup.vms)
            && (is_pointers || one.setup.size_bytes == main.setup.size_bytes)
            && one.setup.window == NONE
    };
    let said = |one: &Measured<'_>| {
        let rate = packets_per_s(one.clean_mpps()? * 1e6);
        let marks: Vec<&str> = [
            (one.setup.path == RTE_RING).then_some("pointers, no frames"),
            (!one.is_verified()).then_some("unverified"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
        Some(format!("{} {rate}{marks}", one.setup.path))
    };
    let others: Vec<String> = channel.measured().filter(is_like).filter_map(said).collect();
    (!others.is_empty()).then(|| format!("In the same run and batch: {}.", list(&others)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Made, benches};
    use super::*;
    use facts::machines::Machines;

    fn said(made: &[Made]) -> (Option<String>, Option<String>) {
        let benches = benches(made);
        let channel = Channel::of(&benches, &Machines::default());
        let main = channel.measured().find(|one| one.setup.path == "ring").unwrap();
        (about(&channel), beside(&channel, main))
    }

    #[test]
    fn paths_of_others_stand_beside_ours_with_what_they_are_not() {
        let of = |path, size, batch_ns| Made { path, size, batch_ns, verified: false, ..Made::default() };
        let all = [
            Made::default(),
            of("memif", 64, 2_560.0),
            of("rte-ring", 8, 320.0),
            Made { size: 512, ..of("vhost-user", 64, 640.0) },
        ];
        let (about, beside) = said(&all);
        let expected = "In the same run and batch: memif 12.50 Mpps (unverified) and rte-ring 100.00 Mpps (pointers, no frames, unverified).";
        assert_eq!(beside.as_deref(), Some(expected), "vhost-user had other frames");
        let about = about.unwrap();
        assert!(about.starts_with("memif, rte-ring and vhost-user are kept busy by DPDK's programs"), "{about}");
        assert!(about.contains("copies no frame"), "{about}");
    }

    #[test]
    fn rings_alone_say_nothing_of_it() {
        assert_eq!(said(&[Made::default(), Made { path: "ring-ro", ..Made::default() }]), (None, None));
    }
}
