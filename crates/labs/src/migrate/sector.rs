//! A guest of 512 bytes whose working set, rate and heartbeat are known: a boot sector.
//!
//! ```text
//! BIOS -> 0x7c00: loads what lies behind it -> flat protected mode -> fills its hot pages -> writes one word to one page after the
//! other (or to any), counts the write at the heartbeat, waits until so many ticks of the TSC have passed, and so on for ever
//! 0x100000  heartbeat: writes, sweeps      0x200000  hot pages
//! 0x7e00    a driver, if there is one: where it begins, and where it is called again and again while the guest waits
//! ```
//! It makes no exits of its own but those of its pages, and needs no disk but the floppy that holds it. The code is assembled by the
//! compiler; what it reads at its end is put there by [`image`].
//! Sources: BIOS Boot Specification 1.01, 6.5.1 (where a boot sector lies, and that DL has its disk); Intel SDM vol. 3A, 9.9.1 (switching
//! to protected mode); Ralf Brown's Interrupt List, INT 13h, AH=02h (reading sectors).

use crate::machine_code::code;

/// Where the hot pages begin.
pub(crate) const HOT_AT: u32 = 0x20_0000;
/// Where it counts its writes, 4 bytes behind them its sweeps, and then what its driver receives, each modulo 2^32.
pub(crate) const HEARTBEAT_AT: u32 = 0x10_0000;
const BYTES: usize = 512;
/// Where the sectors behind the first one are loaded to: right behind it.
pub(crate) const DRIVER_AT: u32 = 0x7e00;
/// They are of the floppy's first track, which has 18.
const MOST_SECTORS: usize = 17;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Hot pages, of 4 KiB.
    pub pages: u32,
    /// Ticks of the TSC between two writes.
    pub ticks: u32,
    /// Pages are written to in any order, not one after the other.
    pub anywhere: bool,
}

impl Work {
    /// A write every few seconds: as good as none.
    pub(crate) const IDLE_TICKS: u32 = u32::MAX;

    /// What its memory holds once it has counted so many writes: QEMU stops a guest between blocks of instructions, and a write and its count
    /// are of one.
    pub fn written(&self, beats: u32) -> Written {
        let mut written = Written { of_pages: vec![0; self.pages as usize] };
        if self.anywhere {
            let mut state = 1_u32;
            for _ in 0..beats {
                state = state.wrapping_mul(FACTOR).wrapping_add(ADDEND);
                written.of_pages[((state >> 8) % self.pages) as usize] += 1;
            }
        } else {
            let (each, rest) = (beats / self.pages, (beats % self.pages) as usize);
            written.of_pages.iter_mut().enumerate().for_each(|(page, of)| *of = each + u32::from(page < rest));
        }
        written
    }

    /// What the guest has counted once it does its work as it will go on to.
    pub fn settled(&self) -> u32 {
        if self.ticks == Self::IDLE_TICKS { 1 } else { self.pages }
    }
}

/// How often it has written to each hot page.
pub struct Written {
    of_pages: Vec<u32>,
}

impl Written {
    /// What the page at `address` holds, if it is a hot one.
    pub fn page(&self, address: u64) -> Option<Vec<u8>> {
        let number = address.checked_sub(HOT_AT.into())? / u64::from(PAGE);
        let writes = *self.of_pages.get(usize::try_from(number).ok()?)?;
        let first = (number as u32).wrapping_mul(PAGE / 4);
        let words = (first..).take(PAGE as usize / 4).map(|word| FIRST_WORD.wrapping_add(word.wrapping_mul(STEP)));
        let mut page: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let word = FIRST_WORD.wrapping_add(first.wrapping_mul(STEP)).wrapping_add(writes);
        page[..4].copy_from_slice(&word.to_le_bytes());
        Some(page)
    }

    /// Whether it goes on writing to the page at `address` though that is no hot one: its stack and its counts.
    pub fn is_own(&self, address: u64) -> bool {
        [STACK_PAGE, HEARTBEAT_AT].contains(&u32::try_from(address).unwrap_or(u32::MAX))
    }
}

/// Bytes of a page.
const PAGE: u32 = 4_096;
/// What lies below 0x7c00, and what a driver is loaded to.
const STACK_PAGE: u32 = 0x7000;
/// What it fills its hot pages with: the first word, and what is added from one to the next.
const FIRST_WORD: u32 = 0x5a5a_5a01;
const STEP: u32 = 0x9e37_79b9;
/// Of its linear congruential generator (Numerical Recipes, 7.1.2), whose high bits are used.
const FACTOR: u32 = 1_664_525;
const ADDEND: u32 = 1_013_904_223;
/// Where the sector holds these, from its begin.
const PAGES: usize = 0x1e4;
const TICKS: usize = 0x1e8;
const ANYWHERE: usize = 0x1ec;
/// How many sectors of a driver lie behind it.
const SECTORS: usize = 0x1f0;

std::arch::global_asm!(
    ".pushsection .rodata",
    // The compiler may put the code that names them into another object file.
    ".globl kvmscope_sector, kvmscope_sector_end",
    ".hidden kvmscope_sector, kvmscope_sector_end",
    "kvmscope_sector:",
    ".code16",
    "cli",
    "xor ax, ax",
    "mov ds, ax",
    "mov es, ax",
    "mov ss, ax",
    "mov sp, 0x7c00",
    "mov si, 0x7c00 + {sectors}",
    "lodsb",
    "test al, al",
    "jz 3f",
    "sti",
    "mov ah, 2",
    "mov bx, {driver}",
    "mov cx, 2",
    "mov dh, 0",
    "int 0x13",
    "cli",
    // A guest that could not be loaded never beats.
    "4:",
    "jc 4b",
    "3:",
    // The descriptors behind the code; an absolute address in real mode.
    ".byte 0x0f, 0x01, 0x16",
    ".short 0x7c00 + 9f - kvmscope_sector",
    "mov eax, cr0",
    "or al, 1",
    "mov cr0, eax",
    ".byte 0x66, 0xea",
    ".long 0x7c00 + 2f - kvmscope_sector",
    ".short 8",
    ".code32",
    "2:",
    "mov ax, 0x10",
    "mov ds, ax",
    "mov es, ax",
    "mov ss, ax",
    "mov esp, 0x7c00",
    // No page is like another, and none is zero.
    "mov edi, {hot}",
    "mov ecx, [0x7c00 + {pages}]",
    "shl ecx, 10",
    "mov eax, {first_word}",
    "3:",
    "mov [edi], eax",
    "add eax, {step}",
    "add edi, 4",
    "dec ecx",
    "jnz 3b",
    "cmp byte ptr [0x7c00 + {sectors}], 0",
    "je 3f",
    "call dword ptr [{driver}]",
    "3:",
    "xor ebx, ebx",
    "mov esi, 1",
    "4:",
    "cmp dword ptr [0x7c00 + {anywhere}], 0",
    "jne 5f",
    "mov eax, ebx",
    "inc ebx",
    "cmp ebx, [0x7c00 + {pages}]",
    "jb 6f",
    "xor ebx, ebx",
    "inc dword ptr [{heartbeat} + 4]",
    "jmp 6f",
    "5:",
    "imul esi, esi, {factor}",
    "add esi, {addend}",
    "mov eax, esi",
    "shr eax, 8",
    "xor edx, edx",
    "div dword ptr [0x7c00 + {pages}]",
    "mov eax, edx",
    "6:",
    "shl eax, 12",
    "inc dword ptr [eax + {hot}]",
    "inc dword ptr [{heartbeat}]",
    "rdtsc",
    "mov edi, eax",
    "7:",
    "cmp byte ptr [0x7c00 + {sectors}], 0",
    "je 3f",
    "call dword ptr [{driver} + 4]",
    "3:",
    "rdtsc",
    "sub eax, edi",
    "cmp eax, [0x7c00 + {ticks}]",
    "jb 7b",
    "jmp 4b",
    // Nothing, flat code of 32 bits, flat data.
    ".balign 8",
    "8:",
    ".quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff",
    "9:",
    ".short 23",
    ".long 0x7c00 + 8b - kvmscope_sector",
    "kvmscope_sector_end:",
    ".code64",
    ".popsection",
    hot = const HOT_AT,
    heartbeat = const HEARTBEAT_AT,
    pages = const PAGES,
    ticks = const TICKS,
    anywhere = const ANYWHERE,
    sectors = const SECTORS,
    driver = const DRIVER_AT,
    first_word = const FIRST_WORD,
    step = const STEP,
    factor = const FACTOR,
    addend = const ADDEND,
);

/// The sector that does `work`, and behind it the `driver` that it calls meanwhile, if that has any bytes.
pub fn image(work: Work, driver: &[u8]) -> Vec<u8> {
    let code = code!(kvmscope_sector..kvmscope_sector_end);
    assert!(code.len() <= PAGES, "the code ends before what it reads");
    let sectors = driver.len().div_ceil(BYTES);
    assert!(sectors <= MOST_SECTORS, "the driver is longer than a track");
    let mut image = vec![0; BYTES * (1 + sectors)];
    image[..code.len()].copy_from_slice(code);
    let given = [(PAGES, work.pages), (TICKS, work.ticks), (ANYWHERE, work.anywhere.into()), (SECTORS, sectors as u32)];
    for (at, value) in given {
        image[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    image[BYTES - 2..BYTES].copy_from_slice(&[0x55, 0xaa]);
    image[BYTES..][..driver.len()].copy_from_slice(driver);
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::process::Command;
    use std::time::{Duration, Instant};

    const WORK: Work = Work { pages: 256, ticks: 100_000, anywhere: false };

    #[test]
    fn what_it_does_stands_at_its_end_and_it_is_bootable() {
        let work = Work { pages: 0x1234, ticks: 7, anywhere: true };
        let plain = image(work, &[]);
        assert_eq!(plain[0x1e4..0x1f4], [0x34, 0x12, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((plain.len(), &plain[510..]), (BYTES, &[0x55, 0xaa][..]));
        assert_eq!(plain[0], 0xfa, "CLI");
        let driven = image(work, &[9; 513]);
        assert_eq!((driven.len(), driven[0x1f0], &driven[510..515]), (3 * BYTES, 2, &[0x55, 0xaa, 9, 9, 9][..]));
    }

    /// Runs it until it has swept twice; its memory then.
    fn memory_of(work: Work) -> Option<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let (floppy, memory) = (folder.path().join("floppy"), folder.path().join("memory"));
        std::fs::write(&floppy, [image(work, &[]), vec![0; 1_474_560 - BYTES]].concat()).unwrap();
        let backend = format!("memory-backend-file,id=ram,share=on,mem-path={},size=16M", memory.display());
        let started = Command::new("qemu-system-x86_64")
            .args(["-accel", "tcg", "-M", "q35,memory-backend=ram", "-m", "16M", "-nodefaults", "-display", "none"])
            .args(["-no-user-config", "-object", &backend])
            .args(["-drive", &format!("if=none,id=f,format=raw,readonly=on,file={}", floppy.display())])
            .args(["-device", "isa-fdc,fdtypeA=144", "-device", "floppy,drive=f"])
            .spawn();
        let Ok(mut program) = started else {
            eprintln!("skipped: qemu-system-x86_64 is not installed");
            return None;
        };
        let until = Instant::now() + Duration::from_secs(60);
        let mut beat = [0; 4];
        while Instant::now() < until && u32::from_le_bytes(beat) < 2 * work.pages {
            std::thread::sleep(Duration::from_millis(20));
            if let Ok(file) = File::open(&memory) {
                let _ = file.read_exact_at(&mut beat, u64::from(HEARTBEAT_AT));
            }
        }
        program.kill().unwrap();
        program.wait().unwrap();
        Some(std::fs::read(&memory).unwrap())
    }

    #[test]
    fn a_real_qemu_runs_it_and_its_pages_are_what_was_asked_for() {
        for work in [WORK, Work { anywhere: true, ..WORK }] {
            let Some(memory) = memory_of(work) else { return };
            let word = |at: usize| u32::from_le_bytes(memory[at..at + 4].try_into().unwrap());
            let writes = word(HEARTBEAT_AT as usize);
            assert!(writes >= 2 * work.pages, "{writes} writes in a minute");
            // The first word of each page, less what filling put there.
            let first = |page: u32| 0x5a5a_5a01_u32.wrapping_add(0x9e37_79b9_u32.wrapping_mul(page * 1024));
            let counts: Vec<u32> =
                (0..work.pages).map(|page| word((HOT_AT + page * 4096) as usize).wrapping_sub(first(page))).collect();
            // The page is written to before the heartbeat.
            assert!((writes..=writes + 1).contains(&counts.iter().sum()), "{writes}");
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert_eq!(most - least <= 1, !work.anywhere, "in order: {least} to {most}");
            if !work.anywhere {
                assert_eq!(word(HEARTBEAT_AT as usize + 4), (counts.iter().sum::<u32>()) / work.pages);
            }
            let behind = (HOT_AT + work.pages * 4096) as usize;
            assert!(memory[behind..behind + 4096].iter().all(|byte| *byte == 0), "what is not hot is zero");
        }
    }
}
