//! Which mappings of a process are the memory of its guest?

use crate::Error;

/// A line of /proc/PID/maps (proc_pid_maps(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub begin: u64,
    pub end: u64,
    /// Written to through it, others see.
    pub is_shared: bool,
    /// Where it begins in its file.
    pub offset: u64,
    /// Of its file; 0 of none.
    pub inode: u64,
    pub path: String,
}

impl Mapping {
    pub(super) fn bytes(&self) -> u64 {
        self.end - self.begin
    }

    /// One that memory of a guest may be: it is written to, and runs no code of the process itself.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let permissions = words.next()?;
        let offset = words.next()?;
        let (_device, inode) = (words.next()?, words.next()?);
        let path = words.collect::<Vec<_>>().join(" ");
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (begin, end) = (hex(begin)?, hex(end)?);
        let inode = inode.parse().ok()?;
        let is_memory = permissions.starts_with("rw-") && end > begin && begin % PAGE == 0 && end % PAGE == 0;
        let is_anonymous = inode == 0 && (path.is_empty() || path.starts_with("[anon"));
        // Devices and their registers must not be read.
        let is_file = inode != 0
            && (!path.starts_with("/dev/")
                || path.starts_with("/dev/shm/")
                || path.starts_with("/dev/hugepages/")
                || path.starts_with("/dev/zero"));
        (is_memory && (is_anonymous || is_file)).then(|| Self {
            begin,
            end,
            is_shared: permissions.ends_with('s'),
            offset: hex(offset).unwrap_or(0),
            inode,
            path,
        })
    }
}

const PAGE: u64 = super::pages::PAGE_BYTES;
/// What is smaller is none of a guest's memory, where nobody tells how large that is.
const LEAST_BYTES: u64 = 1 << 20;
/// Memory of a guest in more pieces than that is none: QEMU has one for each backend.
const MOST_PIECES: usize = 4096;

/// The guest's memory among `maps`, by address: of `told` bytes the largest mappings that make them up, else all large ones.
pub(super) fn guest_memory(maps: &str, told: Option<u64>) -> Result<Vec<Mapping>, Error> {
    let mut all: Vec<Mapping> = maps.lines().filter_map(Mapping::of).collect();
    all.sort_by_key(|mapping| std::cmp::Reverse(mapping.bytes()));
    let mut taken = 0_u64;
    let mut guest = Vec::new();
    for mapping in all.into_iter().take(MOST_PIECES) {
        if told.map_or(mapping.bytes() < LEAST_BYTES, |told| taken >= told) {
            break;
        }
        taken = taken.saturating_add(mapping.bytes());
        guest.push(mapping);
    }
    match told {
        Some(told) if taken < told => Err(Error::Malformed(format!(
            "the command line gives the guest {} MiB of memory, but only {} MiB of its process can be that",
            told >> 20,
            taken >> 20
        ))),
        None if guest.is_empty() => {
            Err(Error::Absent("the process has no memory of 1 MiB or more that a guest's could be".to_owned()))
        }
        _ => {
            guest.sort_by_key(|mapping| mapping.begin);
            Ok(guest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a QEMU 7.2 with 256 MiB in a file, shortened.
    const MAPS: &str = "\
55d0c8a00000-55d0c8f00000 r-xp 00300000 08:01 1234 /usr/bin/qemu-system-x86_64
55d0ca000000-55d0cb000000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0040000000 rwxp 00000000 00:00 0
7f0050000000-7f0050800000 rw-p 00000000 00:00 0
7f0060000000-7f0070000000 rw-s 00000000 00:2d 99 /tmp/guest memory (deleted)
7f0080000000-7f00a0000000 rw-s 00000000 00:0f 77 /dev/vfio/12
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]
";

    #[test]
    fn the_largest_mappings_that_make_up_what_was_told_are_the_guests() {
        let found = guest_memory(MAPS, Some(256 << 20)).unwrap();
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.begin, one.bytes(), one.inode, one.is_shared), (0x7f00_6000_0000, 256 << 20, 99, true));
        assert_eq!(one.path, "/tmp/guest memory (deleted)");
        let error = guest_memory(MAPS, Some(1 << 30)).unwrap_err().to_string();
        assert!(error.contains("1024 MiB") && error.contains("264 MiB"), "{error}");
    }

    #[test]
    fn without_a_size_all_large_ones_are_and_devices_code_and_stacks_never() {
        let sizes: Vec<u64> = guest_memory(MAPS, None).unwrap().iter().map(|one| one.bytes() >> 20).collect();
        assert_eq!(sizes, [8, 256]);
        assert!(guest_memory("", None).is_err());
        assert!(guest_memory("x-y rw-p\n7f00-6f00 rw-p 0 0:0 0\n", None).is_err());
    }
}
