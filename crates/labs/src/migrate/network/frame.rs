//! A frame of the train: Ethernet, IPv4, UDP, and in it three words.
//!
//! ```text
//! 0 to, 6 from, 12 type | 14 IPv4 .. 26 from, 30 to | 34 ports, 38 length, 40 checksum: 0 | 42 magic | 46 number | 50 the guest's count
//! ```
//! Sources: RFC 791, 3.1; RFC 768 (a checksum of 0 is none); RFC 903 (reverse ARP, which QEMU announces a guest by: `announce_self_create`
//! in net/announce.c, 7.2).

/// What frames of ours begin with, and the guest looks for.
pub(super) const MAGIC: u32 = 0x6b76_6d73;
/// The guest's card: the range that QEMU's addresses are from, administered locally.
pub(super) const GUEST: [u8; 6] = [0x52, 0x54, 0x00, 0x6b, 0x76, 0x03];
pub(crate) const PROBE: [u8; 6] = [0x02, 0x00, 0x00, 0x6b, 0x76, 0x01];
/// The shortest that Ethernet carries, without its checksum (IEEE 802.3, 3.2.8).
const BYTES: usize = 60;
/// 198.18.0.0/15 is set apart for benches of network devices (RFC 2544, C.2.2).
const ADDRESSES: [[u8; 4]; 2] = [[198, 18, 2, 1], [198, 18, 2, 2]];
/// Of the range for private use (RFC 6335, 6).
const PORTS: [u16; 2] = [50_001, 50_002];
const IPV4: [u8; 2] = [0x08, 0x00];
const REVERSE_ARP: [u8; 2] = [0x80, 0x35];
const UDP: u8 = 17;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// The guest's reply to one of ours.
    Reply {
        number: u32,
        /// How many the guest had received then.
        count: u32,
    },
    /// Whoever has the guest now says so.
    Announcement,
}

pub(crate) fn to_guest(number: u32) -> [u8; BYTES] {
    let mut frame = [0; BYTES];
    let length = |from: usize| ((BYTES - from) as u16).to_be_bytes();
    let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &GUEST);
    put(6, &PROBE);
    put(12, &IPV4);
    // Version 4, five words; not to be cut; 64 hops.
    put(14, &[0x45, 0]);
    put(16, &length(14));
    put(20, &[0x40, 0, 64, UDP]);
    put(26, &ADDRESSES[0]);
    put(30, &ADDRESSES[1]);
    put(34, &PORTS[0].to_be_bytes());
    put(36, &PORTS[1].to_be_bytes());
    put(38, &length(34));
    put(42, &MAGIC.to_le_bytes());
    put(46, &number.to_le_bytes());
    let sum = checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// What it is; `None` is none of the train.
pub(super) fn read(frame: &[u8]) -> Option<Frame> {
    let kind = frame.get(12..14)?;
    if kind == REVERSE_ARP {
        return Some(Frame::Announcement);
    }
    let word = |at: usize| Some(u32::from_le_bytes(frame.get(at..at + 4)?.try_into().ok()?));
    let is_reply = kind == IPV4 && frame.get(6..12)? == GUEST && *frame.get(23)? == UDP && word(42)? == MAGIC;
    is_reply.then_some(Frame::Reply { number: word(46)?, count: word(50)? })
}

/// The one's complement of the sum of all words (RFC 791, 3.1).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(mut frame: [u8; BYTES], count: u32) -> [u8; BYTES] {
        let [to, from] = [GUEST, PROBE];
        frame[0..6].copy_from_slice(&from);
        frame[6..12].copy_from_slice(&to);
        frame[26..34].rotate_left(4);
        frame[34..38].rotate_left(2);
        frame[50..54].copy_from_slice(&count.to_le_bytes());
        frame
    }

    #[test]
    fn a_reply_has_its_number_and_the_count_and_its_header_still_sums_up() {
        let sent = to_guest(0x0102_0304);
        let reply = answered(sent, 7);
        assert_eq!(read(&reply), Some(Frame::Reply { number: 0x0102_0304, count: 7 }));
        // A header with its checksum sums up to nothing.
        assert_eq!([checksum(&sent[14..34]), checksum(&reply[14..34])], [0, 0]);
        assert_eq!(read(&sent), None, "our own are no replies");
        assert_eq!(read(&reply[..53]), None);
        let mut other = reply;
        other[42] ^= 1;
        assert_eq!(read(&other), None);
        other[12..14].copy_from_slice(&REVERSE_ARP);
        assert_eq!(read(&other), Some(Frame::Announcement));
    }
}
