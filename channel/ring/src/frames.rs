//! Private copies of frames: what a batch is received into.

/// Room for the frames of one batch, made once.
#[derive(Clone, Debug)]
pub struct FrameBuf {
    bytes: Vec<u8>,
    frame_bytes: usize,
    lens: Vec<u16>,
    most: usize,
}

impl FrameBuf {
    /// Of `most` frames of up to `frame_bytes`.
    pub fn new(most: usize, frame_bytes: usize) -> FrameBuf {
        FrameBuf { bytes: vec![0; most * frame_bytes], frame_bytes, lens: Vec::with_capacity(most), most }
    }

    /// How many frames fit.
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lens.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// The frames, in the order in which they were sent.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let frame = |(i, len): (usize, &u16)| &self.bytes[i * self.frame_bytes..][..usize::from(*len)];
        self.lens.iter().enumerate().map(frame)
    }

    /// The longest frame that it has room for.
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    pub(crate) fn bytes_of_all(&self) -> u64 {
        self.lens.iter().map(|&len| u64::from(len)).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.lens.clear();
    }

    /// Room for some more frames of one length, which was checked: each begins [`FrameBuf::frame_bytes`] after the one before.
    #[inline]
    pub(crate) fn push_alike(&mut self, frames: usize, len: u16) -> &mut [u8] {
        let first = self.lens.len();
        self.lens.resize(first + frames, len);
        &mut self.bytes[first * self.frame_bytes..(first + frames) * self.frame_bytes]
    }
}
