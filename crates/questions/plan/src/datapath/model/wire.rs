//! How many frames a second an Ethernet link carries.

/// Bytes on the wire beside a frame: preamble 7, start delimiter 1, gap between frames 12 (IEEE 802.3, 3.2.1, 3.2.2, 4A.4.2).
const AROUND_FRAME_BYTES: f64 = 20.0;

/// Frames a second of a link of `bits_per_s`, of `frame_bytes` with their check sequence.
pub(crate) fn frames_per_s(bits_per_s: f64, frame_bytes: f64) -> f64 {
    bits_per_s / (8.0 * (frame_bytes + AROUND_FRAME_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_gigabits_carry_what_their_published_table_says() {
        let mpps = |size| frames_per_s(40e9, size) / 1e6;
        let sizes = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1518.0];
        let published = [59.5, 33.8, 18.1, 9.40, 4.79, 3.85, 3.25];
        for (size, published) in sizes.into_iter().zip(published) {
            assert!((mpps(size) - published).abs() <= 0.05, "{size}: {} is not {published}", mpps(size));
        }
        assert!((frames_per_s(10e9, 64.0) - 14.88e6).abs() < 1e4, "the 14.88 Mpps of every data sheet");
    }
}
