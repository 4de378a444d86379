//! Mappings that are closed for our own process most of the time: memory protection keys (Intel SDM volume 3, 4.6.2; `pkeys(7)`) and
//! `mprotect`.

use std::io;

use super::{Access, Memory};

/// A mapping that `mprotect` opens and closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    Open,
    Closed,
}

impl Memory {
    /// For all threads of this process; takes a system call, and interrupts its other CPUs.
    pub(crate) fn protect(&self, protection: Protection) -> io::Result<()> {
        let flags = match protection {
            Protection::Open => match self.access {
                Access::Read => libc::PROT_READ,
                Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            },
            Protection::Closed => libc::PROT_NONE,
        };
        // SAFETY: the range is this mapping and no more. Nothing holds a reference into it, so that closing it invalidates none; an
        // access while it is closed ends the process, which is what it is for.
        match unsafe { libc::mprotect(self.base.as_ptr().cast(), self.bytes, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A protection key of this process: 15 exist beside the one that all memory has.
#[derive(Debug)]
pub(crate) struct Key {
    number: u32,
}

impl Key {
    /// Allocates one whose memory the calling thread cannot access; other threads cannot either, by the kernel's default
    /// (`init_pkru`). Fails where the CPU or the kernel has none, or all are used.
    pub(crate) fn allocate() -> io::Result<Key> {
        if !cfg!(target_arch = "x86_64") {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        // SAFETY: a system call without pointers.
        match unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, ACCESS_DISABLED) } {
            -1 => Err(explained(io::Error::last_os_error())),
            number => Ok(Key { number: number as u32 }),
        }
    }

    /// From now on the mapping is accessible in open windows only.
    pub(crate) fn close_over(&self, memory: &Memory) -> io::Result<()> {
        Key::give(memory, self.number)
    }

    /// The mapping has the key of all memory again; before ours can be given to other memory, which must not open this one.
    pub(crate) fn take_from(&self, memory: &Memory) -> io::Result<()> {
        Key::give(memory, 0)
    }

    fn give(memory: &Memory, key: u32) -> io::Result<()> {
        let flags = match memory.access {
            Access::Read => libc::PROT_READ,
            Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        let base = memory.base.as_ptr();
        // SAFETY: as in `Memory::protect`.
        match unsafe { libc::syscall(libc::SYS_pkey_mprotect, base, memory.bytes, flags, key) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Gives this thread access, or takes it; no other thread notices.
    #[inline]
    pub(crate) fn set(&self, open: bool) {
        let both = (ACCESS_DISABLED | WRITE_DISABLED) << (2 * self.number);
        let rights = read_rights();
        write_rights(if open { rights & !both } else { rights | both });
    }
}

/// What the kernel's numbers mean here: pkey_alloc(2) tells by the same ones that the CPU has no keys.
fn explained(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EINVAL | libc::ENOSYS) => {
            let text = "this CPU or kernel has no protection keys, or all are in use (flag ospke of /proc/cpuinfo)";
            io::Error::new(io::ErrorKind::Unsupported, text)
        }
        _ => error,
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: a system call without pointers.
        unsafe { libc::syscall(libc::SYS_pkey_free, self.number) };
    }
}

const ACCESS_DISABLED: u32 = 1;
const WRITE_DISABLED: u32 = 2;

#[cfg(target_arch = "x86_64")]
#[inline]
fn read_rights() -> u32 {
    let rights: u32;
    // SAFETY: only where a key was allocated, thus where the kernel has switched protection keys on; it reads this thread's rights.
    unsafe {
        std::arch::asm!("rdpkru", in("ecx") 0, out("eax") rights, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    rights
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn write_rights(rights: u32) {
    // SAFETY: as above. It changes which memory this thread may access; no `nomem`, so that no access moves across it.
    unsafe {
        std::arch::asm!("wrpkru", in("eax") rights, in("ecx") 0, in("edx") 0, options(nostack, preserves_flags));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn read_rights() -> u32 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn write_rights(_: u32) {}
