//! Frames come out as they went in, however long they are and however they are cut into batches.

use kvmscope_channel::{Access, Consumer, FrameBuf, Header, Lengths, Open, Producer, Region, Ring, Shape};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;

proptest! {
    #[test]
    fn frames_come_out_as_they_went_in(
        steps in vec((vec(prop_oneof![Just(64usize), 0..=100usize], 0..40), 0..40usize), 1..40),
        apart: bool,
        slots in prop_oneof![Just(1u32), Just(8), Just(32)],
    ) {
        let lengths = if apart { Lengths::Apart } else { Lengths::InSlot };
        let shape = Shape::for_frames(slots, 100, lengths).unwrap();
        let ring = Ring::shared(Header { shape, generation: 300, producer: 0, consumer: 1 }).unwrap();
        let mut producer = Producer::new(&ring, Open::over(ring.halves()));
        let mut consumer = Consumer::new(&ring, Open::over(ring.halves()));
        let mut out = FrameBuf::new(40, shape.frame_bytes());
        let (mut waiting, mut number) = (VecDeque::new(), 0u64);
        for (lens, max) in steps {
            producer.decide_by(number as u32);
            let frames: Vec<Vec<u8>> = lens.iter().map(|&len| { number += 1; vec![number as u8; len] }).collect();
            let sent = producer.push_batch(&frames).unwrap().frames;
            let epoch = (number - frames.len() as u64) as u32;
            waiting.extend(frames.into_iter().take(sent).map(|frame| (frame, epoch)));
            let received = consumer.pop_batch(&mut out, max).unwrap();
            prop_assert_eq!(received, max.min(waiting.len()));
            for (frame, epoch) in out.iter().zip(consumer.epochs()) {
                let (sent, by) = waiting.pop_front().unwrap();
                prop_assert_eq!((frame, *epoch), (&sent[..], by));
            }
        }
    }
}

#[test]
fn a_descriptor_stands_for_256_frames_at_most() {
    let shape = Shape::for_frames(1024, 64, Lengths::Apart).unwrap();
    let ring = Ring::shared(Header { shape, generation: 1, producer: 0, consumer: 1 }).unwrap();
    let mut producer = Producer::new(&ring, Open::over(ring.halves()));
    let mut consumer = Consumer::new(&ring, Open::over(ring.halves()));
    let frames: Vec<Vec<u8>> = (0..600u32).map(|i| vec![i as u8; 64]).collect();
    assert_eq!(producer.push_batch(&frames).unwrap().frames, 600);
    let mut out = FrameBuf::new(600, 64);
    assert_eq!(consumer.pop_batch(&mut out, 600), Ok(600));
    assert!(out.iter().eq(frames.iter().map(Vec::as_slice)));
}

/// The example that the documentation of the crate begins with.
#[test]
fn who_received_the_descriptor_takes_what_was_sent() {
    let shape = Shape::for_frames(256, 1518, Lengths::InSlot).unwrap();
    let ours = Ring::shared(Header { shape, generation: 1, producer: 0, consumer: 1 }).unwrap();
    let file = ours.region().file().try_clone_to_owned().unwrap();
    let theirs = Ring::of(Region::received(file, Access::ReadWrite).unwrap()).unwrap();
    let mut producer = Producer::new(&ours, Open::over(ours.halves()));
    let mut consumer = Consumer::new(&theirs, Open::over(theirs.halves()));
    producer.push_batch(&[b"one", b"two"]).unwrap();
    let mut frames = FrameBuf::new(32, shape.frame_bytes());
    assert_eq!(consumer.pop_batch(&mut frames, 32), Ok(2));
    assert_eq!(frames.iter().collect::<Vec<_>>(), [b"one", b"two"]);
}
