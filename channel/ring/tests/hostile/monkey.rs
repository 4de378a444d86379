//! A process that writes random bytes all over a region, at full speed, while both honest sides work.

use std::time::{Duration, Instant};

use kvmscope_channel::{Access, Consumer, FrameBuf, Open, PeerFault, Producer, Region, Ring};

use super::peer::{Bytes, HEAD, SLOTS, header, inherited, role, start};

/// A xorshift: what it writes is nobody's business.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Not a test of its own: the monkey.
#[test]
fn the_monkey() {
    if role().as_deref() != Some("monkey") {
        return;
    }
    let bytes = Bytes::of(inherited());
    let mut state = 0x9e37_79b9_7f4a_7c15;
    loop {
        for _ in 0..1000 {
            let random = next(&mut state);
            // A third of it where it hurts most: indices, flags, the descriptors of the first slots.
            let at = match random % 3 {
                0 => HEAD + (random >> 8) as usize % 512,
                1 => SLOTS + (random >> 8) as usize % 8,
                _ => (random >> 8) as usize % bytes.len,
            };
            bytes.set_byte(at, (random >> 56) as u8);
        }
        if std::os::unix::process::parent_id() == 1 {
            return;
        }
    }
}

#[test]
fn nothing_that_a_peer_writes_crashes_hangs_or_lengthens_a_frame() {
    let torture = std::env::var_os("KVMSCOPE_TORTURE").is_some();
    let (at_least, operations) =
        if torture { (Duration::from_secs(60), 100_000_000) } else { (Duration::from_secs(10), 0) };
    let mut ring = Ring::shared(header(64)).unwrap();
    let (mut monkey, _file) = start("monkey::the_monkey", "monkey", Some(ring.region().file()));
    let most = header(64).shape.frame_bytes();
    let mut out = FrameBuf::new(32, most);
    let (mut tried, mut accepted, mut reconnected) = (0u64, 0u64, 0u64);
    let mut faults = [0u64; 5];
    let begun = Instant::now();
    while begun.elapsed() < at_least || tried < operations {
        let (ours, theirs) = (ring.clone(), ring.clone());
        let mut producer = Producer::new(&ours, Open::over(ours.halves()));
        let mut consumer = Consumer::new(&theirs, Open::over(theirs.halves()));
        let fault = loop {
            tried += 2;
            if let Err(fault) = producer.push_batch(&[&[0x11; 60][..], &[0x22; 120], b""]) {
                break fault;
            }
            let popped = consumer.pop_batch(&mut out, 32);
            for frame in out.iter() {
                assert!(frame.len() <= most);
                accepted += 1;
            }
            if let Err(fault) = popped {
                break fault;
            }
            if tried % 1024 == 0 && begun.elapsed() > at_least && tried >= operations {
                break PeerFault::Gone;
            }
        };
        for (sum, more) in faults.iter_mut().zip(producer.stats().faults.iter().zip(consumer.stats().faults)) {
            *sum += more.0 + more.1;
        }
        assert!(matches!(
            fault,
            PeerFault::Index { .. } | PeerFault::Length { .. } | PeerFault::Generation { .. } | PeerFault::Gone
        ));
        ring = ring.renewed().unwrap();
        reconnected += 1;
    }
    assert!(monkey.try_wait().unwrap().is_none(), "the monkey ended by itself");
    monkey.kill().unwrap();
    monkey.wait().unwrap();
    println!("{tried} operations, {accepted} frames accepted, {reconnected} connections, faults {faults:?}");
    assert!(faults[0] > 0 && faults[1] > 0 && accepted > 0, "{faults:?}, {accepted} accepted");
    // Whoever comes next finds no ring in what it left, or one that fits.
    let left = Region::received(ring.region().file().try_clone_to_owned().unwrap(), Access::ReadWrite).unwrap();
    if let Ok(ring) = Ring::of(left) {
        assert!(ring.header().shape.region_bytes() <= ring.region().bytes());
    }
}
