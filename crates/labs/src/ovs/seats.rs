//! Which CPUs of this computer do what: pollers never share one.

use base::CpuSet;
use lab::Error;
use lab::setting::thread;

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
    pub(super) fn here() -> Result<Self, Error> {
        Self::of(thread::affinity(thread::own())?)
    }

    fn of(all: CpuSet) -> Result<Self, Error> {
        let cpus: Vec<u32> = all.iter().take(3).collect();
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
        let seats = |cpus: &str| Seats::of(CpuSet::parse(cpus).unwrap());
        let two = seats("0-1").unwrap();
        assert_eq!((two.pmd, two.vnfs, two.others), (0, 1, 1));
        let four = seats("4-7").unwrap();
        assert_eq!((four.pmd, four.vnfs, four.others), (4, 5, 6));
        assert!(seats("3").unwrap_err().to_string().contains("two CPUs"));
    }
}
