//! KVM's own counters of a vCPU or a VM, by name.
//!
//! ```text
//! KVM_GET_STATS_FD --> header | descriptors: flags, size, offset, name | data: u64 each
//! ```
//! The counters of a host are in its debugfs too, but this way needs no root and counts one vCPU alone.
//! Source: Documentation/virt/kvm/api.rst 4.133 (Linux 6.12), `struct kvm_stats_header`, `struct kvm_stats_desc`.

use lab::Error;
use rustix::io::pread;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `_IO(KVMIO, 0xce)`.
const KVM_GET_STATS_FD: libc::c_ulong = 0xaece;
const HEADER_BYTES: usize = 24;
/// What stands before the name.
const DESCRIPTOR_BYTES: usize = 16;
/// A vCPU has some fifty counters; a kernel that states more than this is not believed.
const MOST_COUNTERS: u32 = 4096;
const LONGEST_NAME: u32 = 256;

/// The counters of one vCPU or VM.
pub(super) struct Stats {
    file: OwnedFd,
    data: u64,
    /// Name, and where its value lies in the data.
    counters: Vec<(String, usize)>,
    data_bytes: usize,
}

pub(super) type Counted = BTreeMap<String, u64>;

impl Stats {
    /// The counters of `of`, a vCPU or a VM.
    ///
    /// # Errors
    /// If the kernel has none (before Linux 5.14), or describes them otherwise than documented.
    pub(super) fn of(of: &impl AsRawFd) -> Result<Self, Error> {
        // SAFETY: the call takes no argument and gives a new file descriptor, or -1.
        let file = unsafe { libc::ioctl(of.as_raw_fd(), KVM_GET_STATS_FD) };
        if file < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Error::Absent(format!(
                "KVM provides no counters (KVM_GET_STATS_FD, since Linux 5.14): {error}"
            )));
        }
        // SAFETY: the descriptor was just made for us.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let header = exactly(&file, 0, HEADER_BYTES)?;
        let [names, count, descriptors, data] = [4, 8, 16, 20].map(|at| word(&header, at));
        if names > LONGEST_NAME || count > MOST_COUNTERS {
            return Err(Error::Malformed(format!("KVM states {count} counters with names of {names} bytes")));
        }
        let each = DESCRIPTOR_BYTES + names as usize;
        let all = exactly(&file, u64::from(descriptors), each * count as usize)?;
        let mut counters = Vec::new();
        for descriptor in all.chunks_exact(each) {
            let values = u16::from_le_bytes([descriptor[6], descriptor[7]]);
            let name = &descriptor[DESCRIPTOR_BYTES..];
            let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())];
            // Several values are a histogram, whose sum is a counter beside it.
            if values == 1 {
                counters.push((String::from_utf8_lossy(name).into_owned(), word(descriptor, 8) as usize));
            }
        }
        let data_bytes = counters.iter().map(|(_, offset)| offset + 8).max().unwrap_or(0);
        Ok(Self { file, data: u64::from(data), counters, data_bytes })
    }

    /// All counters now.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn read(&self) -> Result<Counted, Error> {
        let data = exactly(&self.file, self.data, self.data_bytes)?;
        let value = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap_or_default());
        Ok(self.counters.iter().map(|(name, at)| (name.clone(), value(*at))).collect())
    }
}

pub(crate) fn growth(before: &Counted, after: &Counted) -> Counted {
    let grown = after.iter().filter_map(|(name, after)| {
        let more = after.checked_sub(before.get(name).copied().unwrap_or(0))?;
        (more > 0).then(|| (name.clone(), more))
    });
    grown.collect()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// So many bytes from there.
fn exactly(file: &OwnedFd, at: u64, bytes: usize) -> Result<Vec<u8>, Error> {
    let mut all = vec![0; bytes];
    let mut read = 0;
    while read < bytes {
        match pread(file, &mut all[read..], at + read as u64) {
            Ok(0) => {
                return Err(Error::Malformed(format!("KVM's counters end after {read} of {bytes} bytes at {at:#x}")));
            }
            Ok(more) => read += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::refused("KVM's counters cannot be read", error)),
        }
    }
    Ok(all)
}
