//! Rules 1 to 6, 8, 9 and 12.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kvmscope_channel::{Access, FrameBuf, PeerFault, Region, Ring};

use super::peer::{Bytes, HEAD, SLOTS, TAIL, again, header, pair};

fn batch() -> FrameBuf {
    FrameBuf::new(32, header(8).shape.frame_bytes())
}

#[test]
fn rule_1_an_index_that_cannot_be_closes_the_channel() {
    for seen in [1 << 63, 9, u64::MAX] {
        let (mut producer, mut consumer, peer, _) = pair(8);
        let mut out = batch();
        producer.push_batch(&[b"a"]).unwrap();
        peer.set(HEAD, seen);
        assert_eq!(consumer.pop_batch(&mut out, 32), Err(PeerFault::Index { seen, local: 0 }));
        // It stays closed, and the memory is left alone, whatever the peer mends.
        peer.set(HEAD, 1);
        assert_eq!(consumer.pop_batch(&mut out, 32), Err(PeerFault::Index { seen, local: 0 }));
        assert_eq!((peer.get(TAIL), consumer.stats().faults), (0, [1, 0, 0, 0, 0]));
    }
    for seen in [u64::MAX, 3, 1 << 63] {
        let (mut producer, _, peer, _) = pair(2);
        producer.push_batch(&[b"a", b"b"]).unwrap();
        peer.set(TAIL, seen);
        assert_eq!(producer.push_batch(&[b"c"]), Err(PeerFault::Index { seen, local: 2 }));
    }
}

#[test]
fn rule_1_an_index_that_goes_backwards_closes_the_channel() {
    let (mut producer, mut consumer, peer, _) = pair(8);
    let mut out = batch();
    producer.push_batch(&[b"a", b"b", b"c"]).unwrap();
    assert_eq!(consumer.pop_batch(&mut out, 1), Ok(1));
    peer.set(HEAD, 2);
    assert!(matches!(consumer.pop_batch(&mut out, 8), Err(PeerFault::Index { seen: 2, .. })));
    // A tail that there was before, of which no slot is in use twice.
    let (mut producer, mut consumer, peer, _) = pair(8);
    producer.push_batch(&[&b"a"[..]; 4]).unwrap();
    consumer.pop_batch(&mut out, 3).unwrap();
    assert_eq!(producer.push_batch(&[&b"b"[..]; 5]).unwrap().frames, 5);
    peer.set(TAIL, 2);
    assert!(matches!(producer.push_batch(&[&b"c"[..]; 3]), Err(PeerFault::Index { seen: 2, local: 9 })));
}

#[test]
fn rule_2_our_own_index_is_not_adopted_from_the_region() {
    let (mut producer, mut consumer, peer, _) = pair(16);
    let mut out = batch();
    // Each index is looked at once in eight times that it is published: at the first, and at the ninth.
    for sent in 1..=8 {
        producer.push_batch(&[b"a"]).unwrap();
        assert_eq!(consumer.pop_batch(&mut out, 32), Ok(1));
        peer.set(HEAD, 5 + sent);
        peer.set(TAIL, 77);
    }
    producer.push_batch(&[b"b"]).unwrap();
    assert_eq!((peer.get(HEAD), producer.stats().overwritten), (9, 1));
    assert_eq!(consumer.pop_batch(&mut out, 32), Ok(1));
    assert_eq!((peer.get(TAIL), consumer.stats().overwritten), (9, 1));
}

#[test]
fn rule_3_a_length_is_read_once_and_what_was_checked_is_used() {
    let stop = Arc::new(AtomicBool::new(false));
    let (mut accepted, mut refused) = (0, 0);
    let ring = Ring::shared(header(8)).unwrap();
    let bytes = Bytes::of(ring.region().file());
    let flipping = {
        let stop = Arc::clone(&stop);
        // The generation stays as it is; the length changes as fast as one CPU can.
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                bytes.set(SLOTS, 1 << 24 | 10);
                bytes.set(SLOTS, 1 << 24 | 0xffff);
            }
        })
    };
    let mut out = batch();
    // Both happen unless this thread never meets the other.
    for round in 0..2_000_000 {
        bytes.set(TAIL, 0);
        bytes.set(HEAD, 1);
        let theirs = &ring;
        let mut consumer = kvmscope_channel::Consumer::new(theirs, kvmscope_channel::Open::over(theirs.halves()));
        match consumer.pop_batch(&mut out, 32) {
            Ok(1) => {
                let len = out.iter().next().unwrap().len();
                assert_eq!(len, 10, "a length that was not checked was used");
                accepted += 1;
            }
            Err(PeerFault::Length { slot: 0, len }) => {
                assert_eq!(len, 0xffff);
                refused += 1;
            }
            // The slot is zero until the other thread begins: a frame of the generation before.
            Ok(0) => {}
            other => panic!("{other:?}"),
        }
        if round > 2_000 && accepted > 100 && refused > 100 {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    flipping.join().unwrap();
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}

#[test]
fn rule_3_frames_that_are_said_to_be_alike_are_no_more_than_were_published() {
    let (_, mut consumer, peer, _) = pair(8);
    let mut out = batch();
    // 256 frames of 10 bytes, of which 3 are there; then a longer one, which goes by what was said before.
    peer.set(SLOTS, 1 << 24 | 255 << 16 | 10);
    peer.set(HEAD, 3);
    assert_eq!(consumer.pop_batch(&mut out, 32), Ok(3));
    peer.set(SLOTS + 3 * 128, 1 << 24 | 0xffff);
    peer.set(HEAD, 4);
    assert_eq!(consumer.pop_batch(&mut out, 32), Ok(1));
    assert_eq!(out.iter().map(<[u8]>::len).collect::<Vec<_>>(), [10]);
}

#[test]
fn rule_4_no_more_is_copied_than_a_slot_holds_or_the_caller_has_room_for() {
    for len in [0xffff, 121] {
        let (_, mut consumer, peer, _) = pair(8);
        let mut out = batch();
        peer.set(SLOTS, 1 << 24 | len);
        peer.set(HEAD, 1);
        let fault = PeerFault::Length { slot: 0, len: len as u16 };
        assert_eq!(consumer.pop_batch(&mut out, 32), Err(fault));
        assert!(out.is_empty());
    }
    // A slot has 120 bytes, a caller may have less.
    let (mut producer, mut consumer, _, _) = pair(8);
    producer.push_batch(&[&[1; 120]]).unwrap();
    assert!(matches!(consumer.pop_batch(&mut FrameBuf::new(4, 64), 4), Err(PeerFault::Length { len: 120, .. })));
    let (mut producer, mut consumer, _, _) = pair(8);
    producer.push_batch(&[&[1; 120][..]; 8]).unwrap();
    let mut out = FrameBuf::new(3, 120);
    assert_eq!(consumer.pop_batch(&mut out, 100), Ok(3));
}

#[test]
fn rule_5_what_the_peer_writes_into_the_header_later_is_not_followed() {
    let (mut producer, mut consumer, peer, _) = pair(8);
    let mut out = batch();
    // Slots, their size, their layout.
    peer.set(8, u64::MAX);
    peer.set(16, 0x1_0000_4000);
    for i in 0..40u8 {
        producer.push_batch(&[&[i; 100]]).unwrap();
        assert_eq!(consumer.pop_batch(&mut out, 8), Ok(1));
        assert_eq!(out.iter().next().unwrap(), [i; 100]);
    }
    // Whoever comes later does not take it at all.
    assert!(
        Ring::of(Region::received(rustix::io::dup(peer_file(&peer)).unwrap(), Access::ReadWrite).unwrap()).is_err()
    );
}

/// Of a new region with the same first page.
fn peer_file(peer: &Bytes) -> std::os::fd::OwnedFd {
    let other = Ring::shared(header(8)).unwrap();
    let bytes = Bytes::of(other.region().file());
    for at in (0..32).step_by(8) {
        bytes.set(at, peer.get(at));
    }
    other.region().file().try_clone_to_owned().unwrap()
}

#[test]
fn rule_6_what_was_received_is_private() {
    let (mut producer, mut consumer, peer, _) = pair(8);
    let mut out = batch();
    producer.push_batch(&[b"ether", b"frame"]).unwrap();
    assert_eq!(consumer.pop_batch(&mut out, 32), Ok(2));
    for at in SLOTS..peer.len {
        peer.set_byte(at, 0xff);
    }
    assert_eq!(out.iter().collect::<Vec<_>>(), [b"ether", b"frame"]);
}

#[test]
fn rule_8_a_revoked_ring_is_gone_for_both_and_frames_of_before_are_ignored() {
    let (mut producer, mut consumer, peer, ring) = pair(8);
    let mut out = batch();
    producer.push_batch(&[b"old", b"old", b"old"]).unwrap();
    ring.revoke();
    assert_eq!(producer.push_batch(&[b"late"]), Err(PeerFault::Gone));
    assert_eq!(consumer.pop_batch(&mut out, 32), Err(PeerFault::Gone));

    let renewed = ring.renewed().unwrap();
    assert_eq!(renewed.header().generation, 2);
    let (ours, theirs) = (again(&renewed), again(&renewed));
    let open = |ring: &Ring| kvmscope_channel::Open::over(ring.halves());
    let mut producer = kvmscope_channel::Producer::new(&ours, open(&ours));
    let mut consumer = kvmscope_channel::Consumer::new(&theirs, open(&theirs));
    producer.push_batch(&[b"new"]).unwrap();
    // The peer publishes what lies there from before.
    peer.set(HEAD, 3);
    assert_eq!(consumer.pop_batch(&mut out, 32), Ok(1));
    assert_eq!((out.iter().next().unwrap(), consumer.stats().outdated), (&b"new"[..], 2));
}

#[test]
fn rule_8_a_generation_that_has_not_begun_closes_the_channel() {
    let (_, mut consumer, peer, _) = pair(8);
    peer.set(SLOTS, 2 << 24 | 10);
    peer.set(HEAD, 1);
    assert_eq!(consumer.pop_batch(&mut batch(), 32), Err(PeerFault::Generation { seen: 2 }));
}

#[test]
fn rule_9_nothing_is_left_over_in_a_new_ring_and_a_short_frame_shows_nothing_of_a_long_one() {
    // A device's memory that somebody else has used.
    let path = std::env::temp_dir().join(format!("kvmscope-channel-{}", std::process::id()));
    std::fs::write(&path, vec![0xee; 64 << 10]).unwrap();
    let ring = Ring::lay(header(8), Region::of_device(&path).unwrap()).unwrap();
    let bytes = Bytes::of(ring.region().file());
    std::fs::remove_file(&path).unwrap();
    assert!((SLOTS..header(8).shape.region_bytes()).all(|at| bytes.byte(at) == 0));

    let (mut producer, mut consumer, _, _) = pair(1);
    let mut out = batch();
    producer.push_batch(&[&[0x55; 100]]).unwrap();
    consumer.pop_batch(&mut out, 1).unwrap();
    producer.push_batch(&[b"short"]).unwrap();
    consumer.pop_batch(&mut out, 1).unwrap();
    assert_eq!(out.iter().collect::<Vec<_>>(), [b"short"]);
}

#[test]
fn rule_12_unsafe_code_is_in_one_module_and_makes_no_slices_of_shared_memory() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.clone()];
    let mut read = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let inside = path.starts_with(source.join("memory"));
            assert!(inside || !line.contains("unsafe"), "{}: {line}", path.display());
            assert!(!line.contains("from_raw_parts"), "{}: {line}", path.display());
        }
        read += 1;
    }
    assert!(read > 10);
}
