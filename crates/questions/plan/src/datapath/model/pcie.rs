//! How many packets a second cross a PCIe link, one in and one out.
//!
//! ```text
//! lanes x rate x encoding = raw    less acknowledgements, credits and skips = what packets of the link layer have
//! a packet to host     the frame, cut in writes of MPS, each behind its header; reads of descriptors; their write-back
//! a packet to device   completions of the frame and its descriptor, cut in MPS; doorbells; descriptors fetched 40 at a time
//! ```
//! The method is that of Neugebauer et al., "Understanding PCIe performance for end host networking", SIGCOMM 2018
//! (10.1145/3230543.3230560); what crosses the link per packet is the poll-mode driver of its section 3. Its model program leaves
//! out the request that reads receive descriptors; here it is counted.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// 1 to 6.
    pub generation: u8,
    /// 1, 2, 4, 8, 12, 16 or 32.
    pub lanes: u8,
    /// Largest payload of a packet, the smallest of all bridges up to the root.
    pub mps_bytes: u32,
    /// Largest read that one request asks for.
    pub mrrs_bytes: u32,
}

/// What makes each access of the device slower than its link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Detours {
    /// The IOMMU translates pages of 4 KiB, of a working set of 16 MB or more.
    pub iommu_small_pages: bool,
    /// The device is attached to another node than the memory.
    pub remote_node: bool,
}

/// Share that is left of reads, by their bytes (pcie-bench/pcie-model, data of SIGCOMM 2018).
const WITH_SMALL_PAGES: &[(f64, f64)] = &[(64.0, 9.8 / 28.0), (512.0, 0.98)];
/// The same of a remote node: 9 to 25 % less of 64 bytes, of which this is the middle, 8 % of 128, nothing from 512 bytes on.
const FROM_REMOTE_NODE: &[(f64, f64)] = &[(64.0, 0.83), (128.0, 0.92), (512.0, 1.0)];

impl Detours {
    /// Share of the link's packets that is left for frames of `bytes`.
    pub fn left(self, bytes: f64) -> f64 {
        // Between two measured sizes along their logarithm.
        let between = |shares: &[(f64, f64)]| {
            let along = |(least, low): (f64, f64), (most, high): (f64, f64)| {
                let part = (bytes.clamp(least, most) / least).log2() / (most / least).log2();
                low + (high - low) * part
            };
            let nearest = shares.windows(2).find(|pair| bytes <= pair[1].0).or(shares.windows(2).last());
            nearest.map_or(1.0, |pair| along(pair[0], pair[1]))
        };
        let of = |is_there: bool, shares| if is_there { between(shares) } else { 1.0 };
        of(self.iommu_small_pages, WITH_SMALL_PAGES) * of(self.remote_node, FROM_REMOTE_NODE)
    }
}

/// Bytes around the data of a memory write: framing 2, sequence 2, header of 64-bit addresses 16, check 4 (PCI Express Base
/// Specification 3.0, 2.2.4.1, 3.5.2).
const WRITE_BYTES: f64 = 24.0;
/// A read request is a write without data.
const READ_BYTES: f64 = 24.0;
/// Bytes around the data of a completion, whose header has 12.
const COMPLETION_BYTES: f64 = 20.0;

/// Bytes of an acknowledgement or of a credit update with its framing (3.5.2).
const DLLP_BYTES: f64 = 8.0;
/// A skip ordered set of 4 symbols every 1,538 (4.2.7).
const SKIPS: f64 = 4.0 / 1538.0;

/// Bytes of a descriptor of 16; drivers read this many at once, and the device writes back so many at once.
const FETCHED_DESCRIPTORS: f64 = 40.0;
const FETCHED_BYTES: f64 = 640.0;
const WRITTEN_DESCRIPTORS: f64 = 8.0;
const WRITTEN_BYTES: f64 = 128.0;
const DESCRIPTOR_BYTES: f64 = 16.0;
/// Packets behind which the driver rings the bell, and the bytes of one ring: a write of 4.
const RUNG_PACKETS: f64 = 32.0;
const RING_BYTES: f64 = WRITE_BYTES + 4.0;

impl Link {
    /// Bits a second on the lanes, without their encoding: 8b/10b, 128b/130b, and 242 bytes of 256 in flits.
    pub(crate) fn raw_bits_per_s(&self) -> f64 {
        let (transfers, encoding) = match self.generation {
            0 | 1 => (2.5e9, 0.8),
            2 => (5e9, 0.8),
            3 => (8e9, 128.0 / 130.0),
            4 => (16e9, 128.0 / 130.0),
            5 => (32e9, 128.0 / 130.0),
            6.. => (64e9, 242.0 / 256.0),
        };
        transfers * encoding * f64::from(self.lanes)
    }

    /// What is left of them for packets.
    pub fn bits_per_s(&self) -> f64 {
        let every = f64::from(self.latency_limit_symbols());
        self.raw_bits_per_s() * (1.0 - 2.0 * DLLP_BYTES / every - SKIPS)
    }

    /// How long an acknowledgement, and likewise a credit update, may be put off, in symbols (3.5.3.1, tables 3-7 to 3-9; table
    /// 2-46): the time of so many packets of the largest payload, and what the receiver itself takes.
    fn latency_limit_symbols(&self) -> u32 {
        /// Bytes around a packet as those tables count them.
        const OVERHEAD: f64 = 28.0;
        let internal = match self.generation {
            0 | 1 => 19,
            2 => 70,
            3.. => 115,
        };
        let packets = match (self.mps_bytes, self.lanes) {
            (..=256, ..=4) => 1.4,
            (..=256, 5..=8) => 2.5,
            (..=256, _) => 3.0,
            (_, ..=8) => 1.0,
            (_, _) => 2.0,
        };
        let packet = f64::from(self.mps_bytes) + OVERHEAD;
        (packet * packets / f64::from(self.lanes.max(1))).floor() as u32 + internal
    }

    /// Packets a second in each direction at once, of `frame_bytes`.
    pub fn packets_per_s(&self, frame_bytes: f64) -> f64 {
        self.bits_per_s() / (8.0 * self.to_host_bytes(frame_bytes).max(self.to_device_bytes(frame_bytes)))
    }

    /// Bits of frames a second that the device writes and reads at once.
    pub(crate) fn both_bits_per_s(&self, bytes: f64) -> f64 {
        let to_host = bytes + WRITE_BYTES * self.payloads(bytes) + READ_BYTES * self.requests(bytes);
        self.bits_per_s() * bytes / to_host.max(bytes + COMPLETION_BYTES * self.payloads(bytes))
    }

    /// Bits of frames a second that the device writes, and does nothing else.
    pub(crate) fn written_bits_per_s(&self, bytes: f64) -> f64 {
        self.bits_per_s() * bytes / (bytes + WRITE_BYTES * self.payloads(bytes))
    }

    /// Bytes towards the host for one packet in and one out.
    fn to_host_bytes(self, frame_bytes: f64) -> f64 {
        let frame = frame_bytes + WRITE_BYTES * self.payloads(frame_bytes);
        let requests = READ_BYTES * self.requests(frame_bytes) + READ_BYTES;
        let descriptors = DESCRIPTOR_BYTES + WRITE_BYTES;
        let fetches = READ_BYTES * self.requests(FETCHED_BYTES) / FETCHED_DESCRIPTORS;
        let written = (WRITTEN_BYTES + WRITE_BYTES * self.payloads(WRITTEN_BYTES)) / WRITTEN_DESCRIPTORS;
        frame + requests + descriptors + fetches + written
    }

    /// Bytes towards the device for one packet in and one out.
    fn to_device_bytes(self, frame_bytes: f64) -> f64 {
        let frame = frame_bytes + COMPLETION_BYTES * self.payloads(frame_bytes);
        let descriptor = DESCRIPTOR_BYTES + COMPLETION_BYTES;
        let fetched = (FETCHED_BYTES + COMPLETION_BYTES * self.payloads(FETCHED_BYTES)) / FETCHED_DESCRIPTORS;
        frame + descriptor + 2.0 * RING_BYTES / RUNG_PACKETS + fetched
    }

    fn payloads(&self, bytes: f64) -> f64 {
        (bytes / f64::from(self.mps_bytes)).ceil()
    }

    fn requests(&self, bytes: f64) -> f64 {
        (bytes / f64::from(self.mrrs_bytes)).ceil()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(generation: u8, lanes: u8, mps_bytes: u32) -> Link {
        Link { generation, lanes, mps_bytes, mrrs_bytes: 512 }
    }

    /// The printed tables of the specification, for all widths and payloads.
    #[test]
    fn latency_limits_are_those_of_the_specification() {
        let lanes = [1, 2, 4, 8, 12, 16, 32];
        let first_generation = [
            (128, [237, 128, 73, 67, 58, 48, 33]),
            (256, [416, 217, 118, 107, 90, 72, 45]),
            (512, [559, 289, 154, 86, 109, 86, 52]),
            (1024, [1071, 545, 282, 150, 194, 150, 84]),
            (2048, [2095, 1057, 538, 278, 365, 278, 148]),
            (4096, [4143, 2081, 1050, 534, 706, 534, 276]),
        ];
        for (mps, limits) in first_generation {
            for (lanes, limit) in lanes.into_iter().zip(limits) {
                let of = |generation| link(generation, lanes, mps).latency_limit_symbols();
                assert_eq!([of(1), of(2), of(3)], [limit, limit + 51, limit + 96], "x{lanes}, {mps}");
            }
        }
    }

    #[test]
    fn detours_take_off_what_was_measured_at_each_size() {
        let small = Detours { iommu_small_pages: true, remote_node: false };
        let remote = Detours { iommu_small_pages: false, remote_node: true };
        for (detours, bytes, left) in [
            (small, 64.0, 0.35),
            (small, 512.0, 0.98),
            (small, 1518.0, 0.98),
            (remote, 60.0, 0.83),
            (remote, 128.0, 0.92),
            (remote, 256.0, 0.96),
            (remote, 9018.0, 1.0),
            (Detours::default(), 64.0, 1.0),
        ] {
            assert!((detours.left(bytes) - left).abs() < 1e-9, "{detours:?} at {bytes}: {}", detours.left(bytes));
        }
    }

    #[test]
    fn a_link_has_the_bits_that_its_generation_and_width_give() {
        let gbps = |generation, lanes, mps| link(generation, lanes, mps).bits_per_s() / 1e9;
        assert!((link(3, 8, 128).raw_bits_per_s() / 1e9 - 63.02).abs() < 0.005);
        assert!((gbps(3, 8, 128) - 56.67).abs() < 0.005 && (gbps(3, 8, 256) - 57.88).abs() < 0.005);
        let at_1518 = |generation, lanes| link(generation, lanes, 256).packets_per_s(1518.0) * 1518.0 * 8.0 / 1e9;
        for (generation, lanes, published) in
            [(2, 8, 23.9), (3, 16, 94.9), (4, 8, 96.7), (4, 16, 190.0), (5, 16, 380.0)]
        {
            let found = at_1518(generation, lanes);
            let digit = if published < 100.0 { 0.05 } else { 0.5 };
            assert!((found - published).abs() <= digit, "{generation} x{lanes}: {found}");
        }
    }

    #[test]
    fn packets_of_a_third_generation_link_of_eight_lanes_are_those_of_the_published_method() {
        let sizes = [64.0, 128.0, 256.0, 512.0, 1024.0, 1518.0];
        for (mps, mpps, gbps) in [
            (128, [36.1, 27.2, 17.2, 9.89, 5.25, 3.61], [18.5, 27.9, 35.2, 40.5, 43.0, 43.8]),
            (256, [36.9, 27.8, 18.6, 10.8, 5.78, 3.98], [18.9, 28.5, 38.2, 44.4, 47.3, 48.3]),
        ] {
            for ((size, mpps), gbps) in sizes.into_iter().zip(mpps).zip(gbps) {
                let found = link(3, 8, mps).packets_per_s(size) / 1e6;
                let digit = if mpps < 10.0 { 0.005 } else { 0.05 };
                assert!((found - mpps).abs() <= digit + 1e-9, "MPS {mps}, {size}: {found} is not {mpps}");
                assert!((found * size * 8.0 / 1e3 - gbps).abs() <= 0.05 + 1e-9, "MPS {mps}, {size}: not {gbps} Gb/s");
            }
        }
    }
}
