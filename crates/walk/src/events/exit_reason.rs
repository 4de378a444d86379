//! Why a guest was left, in an event.

use super::reasons::{Isa, Reason};
use trace::Event;

/// The reason in an event, by number or by name; `silent` is the instruction set where the event names none.
#[inline(always)]
pub fn reason(event: &Event<'_>, number: usize, isa: usize, name: usize, silent: Isa) -> Reason {
    if let Isa::Arm64 = silent {
        return of_arm64(*event, number, isa, name);
    }
    let isa = event.get(isa).map_or(silent, Isa::of);
    match event.get(number) {
        Some(code) => Reason::of(isa, code),
        None => named(*event, name, isa),
    }
}

#[cold]
fn of_arm64(event: Event<'_>, class: usize, kind: usize, name: usize) -> Reason {
    match event.get(class).filter(|_| event.get(name).is_none()) {
        Some(number) => Reason::of_arm64(number, event.get(kind)),
        None => named(event, name, Isa::Arm64),
    }
}

#[cold]
fn named(event: Event<'_>, name: usize, isa: Isa) -> Reason {
    Reason::named(&event.content(name).map(String::from_utf8_lossy).unwrap_or_default(), isa)
}
