//! Which machines run inside each other, how often they leave to the level below, and where all their time goes.
//!
//! ```text
//!   web, 2 vCPUs               db, 1 vCPU
//!   L2 guest   4.4 %
//!    | 367 exits/s, 300 of them reflected
//!   L1 guest  10.8 %           L1 guest  80 %
//!    | 1,480 exits/s,           | 90 exits/s
//!    v 4.0 for each reflected   v
//!   L0 KVM 24.8 %   -- 310/s -->  VMM 12.1 %
//! ```
//! Rates are per second of the recording; shares are of all time of the vCPUs that the figure is about.

use super::With;
use crate::number::percent;
use serde::{Serialize, Serializer};
use serde_json::json;

/// Machines on one host, and their time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Levels {
    /// VMs of the recorded machine, most exits first.
    pub columns: Vec<Column>,
    /// The recorded machine, below all of them.
    pub ground: Ground,
    /// Where all vCPU time went, from the deepest guest to what is unknown: shares that sum up to 1.
    pub time: Vec<TimePart>,
}

pub(super) fn with_most<S: Serializer>(levels: &Levels, serializer: S) -> Result<S::Ok, S::Error> {
    With { of: levels, computed: json!({"most_per_s": levels.most_per_s()}) }.serialize(serializer)
}

/// A VM of the recorded machine, or several together, with what runs inside.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Its name, or how many there are.
    pub title: String,
    /// How many vCPUs: `2 vCPUs`.
    pub about: String,
    /// Its levels, the deepest first.
    pub storeys: Vec<Storey>,
}

/// One level of a VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Storey {
    /// Such as `L2`.
    pub level: String,
    /// Name of the state that decides its colour.
    pub hue: String,
    /// Share of the VM's vCPU time in which its code ran.
    pub share: f64,
    /// How often it leaves to the recorded machine; `None` where exits were not recorded.
    pub exits_per_s: Option<f64>,
    /// How many of these the level between handles; `None` where no event says.
    pub reflected_per_s: Option<f64>,
    /// Exits of this level for each exit that it handles for the level above: the multiplication.
    pub for_each: Option<f64>,
}

/// The recorded machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ground {
    /// Such as `L0`.
    pub level: String,
    /// Share of all vCPU time in which KVM worked.
    pub kvm_share: f64,
    /// The same of the VMM.
    pub vmm_share: f64,
    /// How often KVM hands an exit to the VMM; `None` where no event says.
    pub to_vmm_per_s: Option<f64>,
}

/// Part of all time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimePart {
    /// The state in words.
    pub label: String,
    /// Its name, which decides its colour.
    pub hue: String,
    /// Its share.
    pub share: f64,
}

impl Ground {
    /// A share in words: where exits were not recorded, that nothing was seen in it says nothing.
    pub fn words(&self, share: f64) -> String {
        if share == 0.0 && self.to_vmm_per_s.is_none() { "not known".to_owned() } else { percent(share) }
    }
}

impl Levels {
    /// The most exits per second of all levels: the thickest arrow.
    pub fn most_per_s(&self) -> f64 {
        let rates = self.columns.iter().flat_map(|column| &column.storeys).filter_map(|storey| storey.exits_per_s);
        rates.chain(self.ground.to_vmm_per_s).fold(0.0, f64::max)
    }
}
