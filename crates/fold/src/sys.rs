//! The system calls behind maps, programs and their attachment: all of the unsafe code of this crate.
//!
//! Source: include/uapi/linux/bpf.h and perf_event.h, Linux 6.12: `union bpf_attr` is written here as words, a field or two in each.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Commands of bpf(2).
const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROG_LOAD: i32 = 5;
const PROG_TEST_RUN: i32 = 10;
const NEXT_PROGRAM: i32 = 11;
const PROGRAM_BY_ID: i32 = 13;
const DESCRIBE: i32 = 15;
const RAW_TRACEPOINT_OPEN: i32 = 17;
const ENABLE_STATS: i32 = 32;

/// BPF_F_MMAPABLE (Linux 5.5).
const MMAPABLE: u64 = 1 << 10;

/// The licence that the kernel is told (`license_is_gpl_compatible`, include/linux/license.h); the files that make bytecode are under it.
const LICENCE: &std::ffi::CStr = c"Dual MIT/GPL";

/// What programs are called for whoever lists them, 16 bytes with zeros at the end.
const NAME: &[u8; 16] = b"kvmscope\0\0\0\0\0\0\0\0";

/// The verifier's complaint may be long; its end says what is wrong.
const LOG_BYTES: usize = 1 << 20;

/// Types of maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapType {
    Hash = 1,
    Array = 2,
}

/// Types of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramType {
    Tracepoint = 5,
    RawTracepoint = 17,
}

fn bpf(command: i32, attributes: &mut [u64]) -> io::Result<i64> {
    // SAFETY: the kernel reads and writes no more than the size that it is told; what the words point to is alive in each caller.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of_val(attributes)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(descriptor: i64) -> io::Result<OwnedFd> {
    let descriptor = RawFd::try_from(descriptor).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just made it for us, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Makes a map.
pub(crate) fn make_map(kind: MapType, key_bytes: u32, value_bytes: u32, entries: u32) -> io::Result<OwnedFd> {
    let flags = if kind == MapType::Array { MMAPABLE } else { 0 };
    let mut attributes = [0; 9];
    attributes[0] = kind as u64 | u64::from(key_bytes) << 32;
    attributes[1] = u64::from(value_bytes) | u64::from(entries) << 32;
    attributes[2] = flags;
    owned(bpf(MAP_CREATE, &mut attributes)?)
}

/// Gives a key of 32 bits a value of 32 bits. False: it has one.
pub(crate) fn add_to_map(map: &OwnedFd, key: u32, value: u32) -> io::Result<bool> {
    let mut attributes = [0; 4];
    attributes[0] = map.as_raw_fd() as u64;
    attributes[1] = &raw const key as u64;
    attributes[2] = &raw const value as u64;
    // BPF_NOEXIST.
    attributes[3] = 1;
    match bpf(MAP_UPDATE, &mut attributes) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The value of a key of 32 bits, if it has one.
pub(crate) fn look_up(map: &OwnedFd, key: u32) -> io::Result<Option<u32>> {
    let mut value = 0_u32;
    let mut attributes = [map.as_raw_fd() as u64, &raw const key as u64, &raw mut value as u64, 0];
    match bpf(MAP_LOOKUP, &mut attributes) {
        Ok(_) => Ok(Some(value)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Takes a key of 32 bits away, if it is there.
pub(crate) fn remove_from_map(map: &OwnedFd, key: u32) -> io::Result<()> {
    let mut attributes = [0; 4];
    attributes[0] = map.as_raw_fd() as u64;
    attributes[1] = &raw const key as u64;
    match bpf(MAP_DELETE, &mut attributes) {
        Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
        _ => Ok(()),
    }
}

/// Loads a program; the error has the end of what the verifier says.
pub(crate) fn load(kind: ProgramType, code: &[[u8; 8]]) -> Result<OwnedFd, (io::Error, String)> {
    let mut attributes = [0; 9];
    attributes[0] = kind as u64 | (code.len() as u64) << 32;
    attributes[1] = code.as_ptr() as u64;
    attributes[2] = LICENCE.as_ptr() as u64;
    let (first, second) = NAME.split_at(8);
    attributes[6] = u64::from_ne_bytes(first.try_into().unwrap_or_default());
    attributes[7] = u64::from_ne_bytes(second.try_into().unwrap_or_default());
    let error = match bpf(PROG_LOAD, &mut attributes).and_then(owned) {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    let mut log = vec![0_u8; LOG_BYTES];
    attributes[3] = 1 | (log.len() as u64) << 32;
    attributes[4] = log.as_mut_ptr() as u64;
    let again = bpf(PROG_LOAD, &mut attributes).and_then(owned);
    let length = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    match again {
        Ok(program) => Ok(program),
        Err(_) => Err((error, String::from_utf8_lossy(&log[..length]).into_owned())),
    }
}

/// Attaches a program to a raw tracepoint, for as long as the descriptor is open.
pub(crate) fn attach_raw(name: &str, program: &OwnedFd) -> io::Result<OwnedFd> {
    let name = CString::new(name)?;
    let mut attributes = [name.as_ptr() as u64, program.as_raw_fd() as u64];
    owned(bpf(RAW_TRACEPOINT_OPEN, &mut attributes)?)
}

/// Attaches a program to the tracepoint of that id, on all CPUs, for as long as the descriptor is open.
pub(crate) fn attach(id: u64, program: &OwnedFd) -> io::Result<OwnedFd> {
    /// PERF_TYPE_TRACEPOINT, and the size of the first version of the attributes with room to spare.
    const TYPE_AND_SIZE: u64 = 2 | 112 << 32;
    const CLOSE_ON_EXEC: libc::c_long = 8;
    /// PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_ENABLE.
    const SET_BPF: libc::c_ulong = 0x4004_2408;
    const ENABLE: libc::c_ulong = 0x2400;
    let mut attributes = [0_u64; 14];
    (attributes[0], attributes[1]) = (TYPE_AND_SIZE, id);
    let (anybody, cpu, alone): (libc::c_long, libc::c_long, libc::c_long) = (-1, 0, -1);
    // SAFETY: the kernel reads as many bytes as the attributes say that they have.
    let event = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_mut_ptr(), anybody, cpu, alone, CLOSE_ON_EXEC)
    };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    let event = owned(event)?;
    for (request, argument) in [(SET_BPF, program.as_raw_fd()), (ENABLE, 0)] {
        // SAFETY: both requests take a number.
        if unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(event)
}

/// Words of struct bpf_prog_info (Linux 5.12): where the name begins, and what a program has taken.
const INFO_WORDS: usize = 27;
const INFO_NAME: usize = 8;
const INFO_RUN_NS: usize = 24;
const INFO_RUNS: usize = 25;
const INFO_MISSES: usize = 26;

fn info(program: &OwnedFd) -> io::Result<[u64; INFO_WORDS]> {
    let mut info = [0_u64; INFO_WORDS];
    let mut attributes = [program.as_raw_fd() as u64 | (size_of_val(&info) as u64) << 32, info.as_mut_ptr() as u64];
    bpf(DESCRIBE, &mut attributes)?;
    Ok(info)
}

/// How long a program has run, how often, both since somebody has the kernel measure it; and how often it was left out because another one ran on
/// that CPU.
pub(crate) fn taken(program: &OwnedFd) -> io::Result<(u64, u64, u64)> {
    let info = info(program)?;
    Ok((info[INFO_RUN_NS], info[INFO_RUNS], info[INFO_MISSES]))
}

/// Has the kernel measure what programs take, as long as the descriptor is open (Linux 5.8).
pub(crate) fn measure_programs() -> io::Result<OwnedFd> {
    owned(bpf(ENABLE_STATS, &mut [0])?)
}

/// How many programs of ours the kernel has, whoever loaded them.
pub(crate) fn loaded_programs() -> io::Result<usize> {
    let (mut id, mut ours) = (0, 0);
    loop {
        let mut next = [id, 0];
        match bpf(NEXT_PROGRAM, &mut next) {
            Ok(_) => id = next[0] >> 32,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(ours),
            Err(error) => return Err(error),
        }
        // One that has gone meanwhile is none.
        let Ok(program) = bpf(PROGRAM_BY_ID, &mut [id, 0]).and_then(owned) else { continue };
        let info = info(&program)?;
        let name = [info[INFO_NAME].to_ne_bytes(), info[INFO_NAME + 1].to_ne_bytes()].concat();
        ours += usize::from(name == NAME);
    }
}

/// Runs a program for a raw tracepoint once, with these arguments (Linux 5.10).
pub(crate) fn run_once(program: &OwnedFd, arguments: &[u64]) -> io::Result<()> {
    let mut attributes = [0; 10];
    attributes[0] = program.as_raw_fd() as u64;
    attributes[5] = size_of_val(arguments) as u64;
    attributes[6] = arguments.as_ptr() as u64;
    bpf(PROG_TEST_RUN, &mut attributes).map(drop)
}

/// The words of an array, as the kernel has them.
#[derive(Debug)]
pub(crate) struct Words {
    at: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: it is nothing but an address of memory whose every access is atomic.
unsafe impl Send for Words {}
// SAFETY: the same.
unsafe impl Sync for Words {}

impl Words {
    /// Maps an array of so many words in all.
    pub(crate) fn of(map: &OwnedFd, words: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a descriptor that is ours, anywhere.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), 8 * words, protection, libc::MAP_SHARED, map.as_raw_fd(), 0) };
        match NonNull::new(at.cast::<AtomicU64>()) {
            Some(at) if at.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { at, words }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The word at that place.
    ///
    /// # Panics
    /// Where there is none.
    pub(crate) fn at(&self, place: usize) -> &AtomicU64 {
        assert!(place < self.words, "a word outside of its map");
        // SAFETY: the place lies in the mapping, which lives as long as we do, and pages are aligned.
        unsafe { self.at.add(place).as_ref() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, whole, and nobody has a reference to it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), 8 * self.words) };
    }
}

/// CLOCK_MONOTONIC, as the programs read it.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills what it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Before Linux 5.11 maps and programs count as locked memory, of which little is allowed.
pub(crate) fn allow_memory() {
    let most = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel reads what it is given; where it refuses, making the first map says so.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const most) };
}
