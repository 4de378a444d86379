use super::*;
use proptest::prelude::*;

/// The ways that this processor has.
fn available() -> impl Iterator<Item = Scan> {
    Scan::ALL.into_iter().filter(|scan| scan.is_available())
}

#[test]
fn a_single_bit_is_seen_wherever_it_is() {
    let mut page = [0_u8; PAGE_BYTES];
    for scan in available() {
        assert!(scan.is_zero(&page), "{}", scan.name());
        for bit in 0..PAGE_BYTES * 8 {
            page[bit / 8] = 1 << (bit % 8);
            assert!(!scan.is_zero(&page), "{} does not see bit {bit}", scan.name());
            page[bit / 8] = 0;
        }
    }
}

#[test]
fn pages_are_counted_and_a_last_one_may_be_short() {
    let mut memory = vec![0_u8; 5 * PAGE_BYTES + 100];
    memory[PAGE_BYTES] = 1;
    memory[5 * PAGE_BYTES + 99] = 1;
    for scan in available() {
        assert_eq!(scan.zero_pages(&memory), 4, "{}", scan.name());
    }
    assert!(read(&memory[..2 * PAGE_BYTES]) == 1 && read(&memory[2 * PAGE_BYTES..5 * PAGE_BYTES]) == 0);
}

#[test]
fn what_the_processor_lacks_is_done_otherwise() {
    assert!(Scan::best().is_available());
    for scan in Scan::ALL {
        assert!(scan.is_zero(&[]) && scan.is_zero(&[0; 300]) && !scan.is_zero(&[1; 300]), "{}", scan.name());
    }
}

proptest! {
    /// Any length from any byte on, with few bits set or none.
    #[test]
    fn all_agree_with_a_loop_over_bytes(
        from in 0_usize..70,
        length in 0_usize..2 * PAGE_BYTES,
        set in proptest::collection::vec((any::<prop::sample::Index>(), 1_u8..), 0..3),
    ) {
        let mut memory = vec![0_u8; from + length + 70];
        // What lies outside must not matter.
        memory[..from].fill(0xff);
        memory[from + length..].fill(0xff);
        for (at, value) in set.iter().filter(|_| length > 0) {
            memory[from + at.index(length)] = *value;
        }
        let part = &memory[from..from + length];
        let truth = part.iter().all(|byte| *byte == 0);
        for scan in available() {
            prop_assert_eq!(scan.is_zero(part), truth, "{} from {} on, {} bytes", scan.name(), from, length);
        }
    }

    #[test]
    fn random_pages_are_none_of_zeros(page in proptest::collection::vec(any::<u8>(), PAGE_BYTES)) {
        let truth = page.iter().all(|byte| *byte == 0);
        for scan in available() {
            prop_assert_eq!(scan.is_zero(&page), truth);
        }
    }
}
