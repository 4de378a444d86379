//! Which CPUs of this computer do what: pollers never share one.

use base::CpuSet;
use lab::Error;
use lab::setting::thread;

/// Who runs where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seats {
    /// The polling thread of the switch.
    pub(super) pmd: u32,
    /// The thread that forwards for all VNFs.
    pub(super) vnfs: u32,
    /// Everything else: a third CPU, else that of the VNFs.
    pub(super) others: u32,
    /// All that may be used.
    pub(super) all: CpuSet,
}

impl Seats {
    /// Those of this process, the ones near a card first.
    pub(super) fn here(near: Option<&CpuSet>) -> Result<Self, Error> {
        Self::of(thread::affinity(thread::own())?, near)
    }

    fn of(all: CpuSet, near: Option<&CpuSet>) -> Result<Self, Error> {
        let mut cpus: Vec<u32> = all.iter().collect();
        cpus.sort_by_key(|cpu| near.is_some_and(|near| !near.contains(*cpu)));
        cpus.truncate(3);
        let [pmd, vnfs, ..] = cpus[..] else {
            return Err(Error::Absent(format!(
                "the lab needs two CPUs, one for the switch and one for the VNFs; this process may use {all}"
            )));
        };
        let others = cpus.get(2).copied().unwrap_or(vnfs);
        Ok(Self { pmd, vnfs, others, all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pollers_have_a_cpu_each() {
        let seats = |cpus: &str| Seats::of(CpuSet::parse(cpus).unwrap(), None);
        let two = seats("0-1").unwrap();
        assert_eq!((two.pmd, two.vnfs, two.others), (0, 1, 1));
        let four = seats("4-7").unwrap();
        assert_eq!((four.pmd, four.vnfs, four.others), (4, 5, 6));
        let near = CpuSet::parse("6-9").unwrap();
        let far = Seats::of(CpuSet::parse("4-7").unwrap(), Some(&near)).unwrap();
        assert_eq!((far.pmd, far.vnfs, far.others), (6, 7, 4));
        assert!(seats("3").unwrap_err().to_string().contains("two CPUs"));
    }
}
