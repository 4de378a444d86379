//! Any bytes as a kernel's symbols, `/proc/kallsyms` or `System.map`, and behind the first zero byte as its `/proc/modules`.

use crate::room::Room;
use analysis::facts::align::symbols::{KERNEL, Symbols};

/// Addresses that are asked for: an input has more lines than tell something new.
const MOST_ASKED: usize = 64;

/// Slides are multiples of 2 MiB (CONFIG_PHYSICAL_ALIGN).
const SLIDE: u64 = 2 << 20;

/// Panics where a promise is broken by these bytes.
pub fn symbols(_room: &Room, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (symbols, modules) = text.split_once('\0').unwrap_or((&text, ""));
    let words = text.split_whitespace();
    let addresses = words.filter_map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    let asked: Vec<u64> = addresses.flat_map(|address| [address, address.wrapping_add(1)]).take(MOST_ASKED).collect();
    let Some(symbols) = Symbols::parse(symbols.to_owned()) else {
        let modules = Symbols::default().with_modules(modules);
        asked.iter().for_each(|rip| assert!(modules.name(*rip).is_none_or(|name| !name.is_empty())));
        return;
    };
    assert!(symbols.slide_to(&symbols).is_none_or(|slide| slide == 0), "a kernel that lies beside itself");
    let slid = symbols.clone().slid(SLIDE);
    for rip in asked.iter().filter(|rip| **rip >= KERNEL) {
        if let Some(moved) = rip.checked_add(SLIDE) {
            assert_eq!(slid.name(moved), symbols.name(*rip), "a name depends on the slide");
        }
    }
    let Some(slide) = symbols.slide_by(&asked).filter(|_| symbols.may_be_linked()) else { return };
    let placed = symbols.slid(slide).with_modules(modules);
    assert!(asked.iter().any(|rip| placed.name(*rip).is_some()), "the halts that told the slide have no name");
}
