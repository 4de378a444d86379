//! A serial line, as much of a 16550A as Linux needs to talk on it.
//!
//! ```text
//! guest --write THR--> byte out          THR is always empty: a guest never waits
//!       <-- IRQ 4 --- "THR empty", once after each byte or when the guest asks to hear of it; reading IIR ends it
//! ```
//! Nothing ever comes in. Registers and bits: datasheet of the PC16550D, section 8.

/// The ports of COM1.
pub(crate) const PORTS: std::ops::Range<u16> = 0x3f8..0x400;
pub(super) const IRQ: u32 = 4;

const LINE_CONTROL_DIVISOR: u8 = 0x80;
const ENABLE_WHEN_EMPTY: u8 = 0x02;
const EMPTY: u8 = 0x60;
const NOTHING_PENDING: u8 = 0x01;
const EMPTY_PENDING: u8 = 0x02;
const FIFOS: u8 = 0xc0;
/// Carrier, data set ready, clear to send.
const CONNECTED: u8 = 0xb0;

/// The registers that keep something.
#[derive(Default)]
pub(super) struct Serial {
    enabled: u8,
    fifos: u8,
    line_control: u8,
    modem_control: u8,
    scratch: u8,
    divisor: [u8; 2],
    pending: bool,
}

impl Serial {
    /// Whether the line of the interrupt is up.
    pub(super) fn interrupts(&self) -> bool {
        self.pending
    }

    fn sets_divisor(&self) -> bool {
        self.line_control & LINE_CONTROL_DIVISOR != 0
    }

    /// The guest reads a register, counted from the first port.
    pub(super) fn read(&mut self, register: u16) -> u8 {
        match register {
            0 | 1 if self.sets_divisor() => self.divisor[usize::from(register)],
            1 => self.enabled,
            2 if std::mem::take(&mut self.pending) => EMPTY_PENDING | self.fifos,
            2 => NOTHING_PENDING | self.fifos,
            3 => self.line_control,
            4 => self.modem_control,
            5 => EMPTY,
            6 => CONNECTED,
            7 => self.scratch,
            _ => 0,
        }
    }

    /// The guest writes a register; gives the byte that goes out, if one does.
    pub(super) fn write(&mut self, register: u16, value: u8) -> Option<u8> {
        match register {
            0 | 1 if self.sets_divisor() => self.divisor[usize::from(register)] = value,
            0 => {
                self.pending = self.enabled & ENABLE_WHEN_EMPTY != 0;
                return Some(value);
            }
            1 => {
                self.enabled = value & 0x0f;
                self.pending = self.enabled & ENABLE_WHEN_EMPTY != 0;
            }
            2 => self.fifos = if value & 1 != 0 { FIFOS } else { 0 },
            3 => self.line_control = value,
            4 => self.modem_control = value & 0x1f,
            7 => self.scratch = value,
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_asks_hears_of_each_empty_register_once() {
        let mut serial = Serial::default();
        assert_eq!(serial.write(0, b'a'), Some(b'a'));
        assert!(!serial.interrupts(), "nobody asked");
        assert_eq!(serial.write(1, ENABLE_WHEN_EMPTY), None);
        assert!(serial.interrupts());
        assert_eq!((serial.read(2), serial.interrupts(), serial.read(2)), (EMPTY_PENDING, false, NOTHING_PENDING));
        assert_eq!((serial.write(0, b'b'), serial.interrupts()), (Some(b'b'), true));
        serial.write(1, 0);
        assert!(!serial.interrupts(), "nobody asks any more");
    }

    #[test]
    fn the_divisor_hides_what_would_go_out() {
        let mut serial = Serial::default();
        serial.write(3, LINE_CONTROL_DIVISOR | 3);
        assert_eq!((serial.write(0, 1), serial.write(1, 0), serial.read(0), serial.read(1)), (None, None, 1, 0));
        serial.write(3, 3);
        assert_eq!((serial.read(1), serial.write(0, b'x')), (0, Some(b'x')));
    }
}
