//! Events that the recorder could not keep.

use super::nested;
use super::steps::{self, BLOCK};
use crate::host::{BEGIN_NS, Host};
use crate::kernel::Vendor;
use crate::random::Random;
use crate::vcpu::Exit;

/// Gaps in a story.
const GAPS: u64 = 4;

pub(super) fn act(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    let cpuid = vcpu.vendor().cpuid();
    let recipe = match vcpu.vendor() {
        Vendor::Vmx => vec![Exit::of(crate::reason::vmx::VMREAD); 5],
        Vendor::Svm => nested::svm_recipe(),
    };
    steps::launch(vcpu, random, BLOCK);
    for _ in 0..60 {
        steps::run_guest(vcpu, random);
        steps::chain(vcpu, random, Exit::of(cpuid), cpuid, &recipe, BLOCK);
    }
    steps::leave_open(vcpu, random, cpuid, BLOCK);
    // Well inside the recording, apart from each other, and with whole exits between them.
    let length = vcpu.now - BEGIN_NS;
    for gap in 0..GAPS {
        let from = BEGIN_NS + length / (GAPS + 1) * (gap + 1) + random.between(0, length / 40);
        host.lose(0, from, from + random.between(2_000, length / 30), gap % 2 == 0);
    }
}
