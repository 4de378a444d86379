//! A part of a fleet as bytes, for the workers of a cluster to hand on: JSON in which every number is whole.

use super::model::{Costs, Example, Exits, Fleet, Id, One, Unread};
use base::Histogram;
use base::table::hexadecimal;
use serde::{Deserialize, Serialize};

/// The version of these bytes: both ends are of one version, which another one refuses.
const SCHEMA: &str = concat!("kvmscope-fleet-partial/1 ", env!("CARGO_PKG_VERSION"));

#[derive(Serialize, Deserialize)]
struct Wire {
    schema: String,
    recordings: Vec<(Id, One)>,
    costs: Vec<(Exits, Distribution)>,
    examples: Vec<(String, Example)>,
    failures: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct Distribution {
    count: u64,
    recordings: u64,
    total_ns: u64,
    max_ns: u64,
    cost: String,
}

impl Fleet {
    /// The part as bytes.
    ///
    /// # Errors
    /// If it cannot be written as JSON, which is a mistake in the program.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Unread> {
        let distribution = |costs: &Costs| Distribution {
            count: costs.count,
            recordings: costs.recordings,
            total_ns: costs.cost_ns.sum(),
            max_ns: costs.cost_ns.max(),
            cost: hexadecimal(&costs.cost_ns.wire()),
        };
        let wire = Wire {
            schema: SCHEMA.to_owned(),
            recordings: self.recordings.iter().map(|(id, one)| (id.clone(), one.clone())).collect(),
            costs: self.costs.iter().map(|(exits, costs)| (exits.clone(), distribution(costs))).collect(),
            examples: self.examples.clone().into_iter().collect(),
            failures: self.failures.clone().into_iter().collect(),
        };
        Ok(serde_json::to_vec(&wire)?)
    }

    /// The part that these bytes are.
    ///
    /// # Errors
    /// If they are of another version, or damaged.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, Unread> {
        let wire: Wire = serde_json::from_slice(bytes)?;
        if wire.schema != SCHEMA {
            return Err(Unread::Version { found: wire.schema, expected: SCHEMA });
        }
        let mut fleet = Self {
            recordings: wire.recordings.into_iter().collect(),
            examples: wire.examples.into_iter().collect(),
            failures: wire.failures.into_iter().collect(),
            ..Self::default()
        };
        for (exits, one) in wire.costs {
            let cost_ns = Histogram::of_wire(&digits(&one.cost), one.total_ns, one.max_ns).map_err(Unread::Damaged)?;
            fleet.costs.insert(exits, Costs { count: one.count, recordings: one.recordings, cost_ns });
        }
        Ok(fleet)
    }
}

/// The bytes of hexadecimal digits; those of anything else are of no histogram.
fn digits(text: &str) -> Vec<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
    text.as_bytes().chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}
