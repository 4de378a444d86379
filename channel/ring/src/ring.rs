//! A ring in its region, or in two: made by one side, checked and taken by the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::fault::Refused;
use crate::layout::{CONSUMER_WANTS_AT, CONTROL_BYTES, HEAD_AT, HEADER_BYTES, Header, PRODUCER_WANTS_AT, TAIL_AT};
use crate::region::{Error, Region};
use crate::window::Halves;

/// Where the generation lies, with the producer's number above it.
pub(crate) const GENERATION_AT: usize = 24;

/// A ring whose header was checked, and copied: what the peer writes into it later is not looked at.
#[derive(Clone, Debug)]
pub struct Ring {
    header: Header,
    producers: Region,
    consumers: Region,
}

impl Ring {
    /// A new ring in one region, which both sides write.
    pub fn shared(header: Header) -> Result<Ring, Error> {
        Ring::lay(header, Region::shared("kvmscope-ring", header.shape.region_bytes())?)
    }

    /// A new ring in memory that is there already, such as a device's: its slots are zeroed, so that nothing is left over.
    pub fn lay(header: Header, region: Region) -> Result<Ring, Error> {
        fits(&header, &region, header.shape.region_bytes())?;
        let zeros = [0; 4096];
        for at in (0..header.shape.region_bytes()).step_by(zeros.len()) {
            let bytes = zeros.len().min(header.shape.region_bytes() - at);
            region.memory().copy_in(at, &zeros[..bytes]);
        }
        write(&header, &region);
        Ok(Ring { header, producers: region.clone(), consumers: region })
    }

    /// Takes a ring that somebody laid into one region. Its shape is theirs to choose, up to 64 GiB that are charged to whoever touches
    /// them first: hold [`Ring::header`] against what was agreed before the first batch.
    pub fn of(region: Region) -> Result<Ring, Error> {
        let header = read(&region)?;
        fits(&header, &region, header.shape.region_bytes())?;
        Ok(Ring { header, producers: region.clone(), consumers: region })
    }

    /// The producer's half of a ring in two regions: whoever gets it can only read it.
    pub fn producers_half(header: Header) -> Result<Region, Error> {
        let region = Region::read_only_for_others("kvmscope-producer", header.shape.region_bytes())?;
        write(&header, &region);
        Ok(region)
    }

    /// The consumer's half.
    pub fn consumers_half(header: Header) -> Result<Region, Error> {
        let region = Region::read_only_for_others("kvmscope-consumer", CONTROL_BYTES)?;
        write(&header, &region);
        Ok(region)
    }

    /// Takes a ring in two regions, one's own and the peer's.
    pub fn of_halves(producers: Region, consumers: Region) -> Result<Ring, Error> {
        let header = read(&producers)?;
        if read(&consumers)? != header {
            return Err(Refused::Halves.into());
        }
        fits(&header, &producers, header.shape.region_bytes())?;
        fits(&header, &consumers, CONTROL_BYTES)?;
        Ok(Ring { header, producers, consumers })
    }

    /// What its first page said when it was taken.
    pub fn header(&self) -> Header {
        self.header
    }

    /// Where the ring lies: the producer's half, which is the whole of a ring in one region.
    pub fn region(&self) -> &Region {
        &self.producers
    }

    /// For a window.
    pub fn halves(&self) -> Halves {
        Halves { producers: Arc::clone(self.producers.memory()), consumers: Arc::clone(self.consumers.memory()) }
    }

    /// Ends the connection for both sides: they find another generation than theirs. Of a ring in one region only; who grants halves
    /// makes new ones. A peer that breaks the rules can write the old generation back, as it can every byte of that region: who must be
    /// rid of one lets go of the ring and never connects it again.
    pub fn revoke(&self) {
        let word = self.producers.word(GENERATION_AT);
        let generation = self.header.generation.wrapping_add(1);
        let word = word & !u64::from(u32::MAX) | u64::from(generation);
        self.producers.memory().store(GENERATION_AT, word, Ordering::Release);
    }

    /// Connects two new sides over the memory of a revoked ring, whose slots keep what was in them: it is of an older generation, and
    /// ignored. Whoever had the ring before can still read and write that memory as long as it is mapped there: for sides that are
    /// trusted alike, others get a new ring.
    ///
    /// # Panics
    /// If the ring is in halves, of which one can only be read here.
    pub fn renewed(&self) -> Result<Ring, Error> {
        let memory = self.producers.memory();
        for at in [HEAD_AT, TAIL_AT, CONSUMER_WANTS_AT, PRODUCER_WANTS_AT] {
            memory.store(at, 0, Ordering::Relaxed);
        }
        let header = Header { generation: self.header.generation.wrapping_add(1), ..self.header };
        write(&header, &self.producers);
        Ok(Ring { header, ..self.clone() })
    }
}

fn write(header: &Header, region: &Region) {
    region.memory().copy_in(0, &header.bytes());
    region.memory().fence();
}

fn read(region: &Region) -> Result<Header, Error> {
    if region.bytes() < HEADER_BYTES {
        return Err(Refused::NoRing.into());
    }
    let mut bytes = [0; HEADER_BYTES];
    region.memory().copy_out(0, &mut bytes);
    Ok(Header::of(&bytes)?)
}

fn fits(header: &Header, region: &Region, needs: usize) -> Result<(), Error> {
    let has = region.bytes();
    debug_assert!(needs >= CONTROL_BYTES && header.shape.slots() > 0);
    if has < needs { Err(Refused::Size { has, needs }.into()) } else { Ok(()) }
}
