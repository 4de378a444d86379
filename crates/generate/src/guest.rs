//! A guest's own trace, derived from what the host saw of it, on a clock that is known.
//!
//! ```text
//! host   inject | entry .. exit | entry ... exit VMRUN | entry of L2 .. exit | inject
//! guest                kvm_exit       kvm_entry
//! ```
//! Wherever the story hands an exit to L1, L1 writes its own `kvm_exit` in one of the stretches in which it runs next, and
//! its own `kvm_entry` before it asks for its guest again. An interrupt that the host injects is handled first of all in the
//! stretch that follows; that of its timer wakes a task, which runs then. An access to an MSR that the host served is told in `msr:write_msr` or `msr:read_msr` in one of the
//! stretches before the next such exit, but for the end of an interrupt, which Linux does not trace; some accesses that the
//! host never saw are told too. Other events lie in between. Each of them has a true time on
//! the host's clock, and one on the guest's, by a [`GuestClock`]: an offset, a drift, and steps, which the host's trace
//! tells in `kvm_write_tsc_offset` if asked to.

use crate::random::Random;
use crate::reason::{svm, vmx};
use crate::story::Story;
use crate::truth::Truth;
use crate::vcpu::{Kernel, TIMER};
use std::collections::BTreeMap;
use trace::write::{EventSchema, Record, Value};

/// How a guest's clock differs from its host's.
#[derive(Debug, Clone, Copy, Default)]
pub struct GuestClock {
    /// Guest minus host at the first step or event.
    pub offset: i64,
    /// What the guest's clock gains, in 10^-9 of the host's.
    pub drift_ppb: i64,
    /// What it gains on top for each millisecond since the story began: its rate changes.
    pub bend_ppb_per_ms: i64,
    /// The guest's counter makes so many 2^-32 of a tick for each of the host's; 0: as many.
    pub ratio: u64,
    /// The offset changes at every so many entries, by less than the vCPU was out of its guest; 0: never.
    pub step_every: u64,
    /// A single step, in the middle of the story.
    pub jump: i64,
    /// The host's trace tells of the offset and its steps.
    pub written: bool,
}

/// A host's story and that of its guest.
#[derive(Debug, Clone)]
pub struct Pair {
    pub below: Story,
    /// The guest's; CPU n of it is vCPU n.
    pub above: Story,
    /// For each record of `above` its time on the host's clock.
    pub true_ns: Vec<u64>,
    /// Moments at which the guest's own guest ran: on the host's clock and on the guest's.
    pub nested: Vec<(u64, u64)>,
}

/// One vCPU while the story is read.
#[derive(Default)]
struct Reader {
    offset: i64,
    entries: u64,
    jumped: bool,
    left_ns: u64,
    entered_ns: Option<u64>,
    nested: bool,
    last: Option<(u32, u64)>,
    /// An interrupt that L1 will handle when it runs next.
    injected: Option<u64>,
    /// An exit that L1 has got and not written down.
    pending: Option<(u32, u64)>,
    /// An access to an MSR that the host served and the guest has not told of.
    accessed: Option<Access>,
    /// Time of its last own event.
    written_ns: u64,
}

/// An access to an MSR.
#[derive(Clone, Copy)]
struct Access {
    write: bool,
    msr: u64,
    value: u64,
}

impl Access {
    /// The event that Linux writes behind the instruction: arch/x86/include/asm/msr.h and msr-trace.h, 6.12.
    fn event(self) -> &'static str {
        if self.write { "write_msr" } else { "read_msr" }
    }

    fn fields(self) -> [(&'static str, Value); 2] {
        [("msr", self.msr.into()), ("val", self.value.into())]
    }
}

/// The x2APIC's end of interrupt: `native_apic_msr_eoi` in arch/x86/include/asm/apic.h writes it untraced.
const EOI: u64 = 0x80b;

/// The guest's task that sleeps until its timer comes.
const SLEEPER: u64 = 900;

/// A register that the guest writes without an exit.
const FS_BASE: u64 = 0xc000_0100;

/// Derives the guest's trace from `story`, whose vCPUs are all one guest's.
pub fn pair(story: &Story, clock: &GuestClock, seed: u64) -> Pair {
    let mut random = Random::new(seed);
    let fields = "unsigned msr; u64 val; int failed";
    let accesses = ["read_msr", "write_msr"].map(|name| EventSchema::declared("msr", name, fields));
    let kernel = Kernel::new(story.vendor, story.generation).with(accesses);
    let mut below = story.clone();
    let write = below.schema.events.len();
    let fields = "unsigned int vcpu_id; __u64 previous_tsc_offset; __u64 next_tsc_offset";
    below.schema.events.push(EventSchema::declared("kvm", "kvm_write_tsc_offset", fields));
    let requests = [vmx::VMRESUME, vmx::VMLAUNCH, svm::VMRUN];
    let request = |reason: u32| requests.contains(&reason) && (reason == svm::VMRUN) == (story.vendor.isa() == 2);
    let vcpu_of: BTreeMap<i32, u32> = story.truth.vcpus.iter().map(|vcpu| (vcpu.tid, vcpu.vcpu)).collect();
    let middle_ns = story.truth.from_ns + story.truth.wall_ns() / 2;
    let mut readers: BTreeMap<i32, Reader> = BTreeMap::new();
    let mut told: Vec<(u64, Record)> = Vec::new();
    let mut nested = Vec::new();
    below.records.clear();
    for record in &story.records {
        let Some(vcpu) = vcpu_of.get(&record.tid).copied() else {
            below.records.push(record.clone());
            continue;
        };
        let reader = readers.entry(record.tid).or_insert_with(|| Reader { offset: clock.offset, ..Reader::default() });
        let schema = &story.schema.events[record.event];
        let value = |name: &str| match schema.fields.iter().position(|field| field.name == name) {
            Some(place) => match &record.values[place] {
                Value::Integer(value) => *value,
                _ => 0,
            },
            None => 0,
        };
        match schema.name.as_str() {
            "kvm_entry" => {
                let before = reader.offset;
                reader.step(clock, record.ticks, middle_ns, &mut random);
                if clock.written && (before != reader.offset || reader.entries == 1) {
                    let values = [u64::from(vcpu), before as u64, reader.offset as u64].map(Value::Integer);
                    below.records.push(Record { event: write, values: values.to_vec(), ..record.clone() });
                }
                reader.entered_ns = Some(record.ticks);
            }
            "kvm_inj_virq" if !reader.nested => reader.injected = Some(value("vector").max(value("irq"))),
            "kvm_msr" if !reader.nested && value("ecx") != EOI => {
                let (write, msr, value) = (value("write") != 0, value("ecx"), value("data"));
                reader.accessed = Some(Access { write, msr, value });
            }
            "kvm_nested_vmenter" | "kvm_nested_vmrun" => reader.nested = true,
            "kvm_nested_vmexit_inject" => {
                reader.nested = false;
                reader.pending = reader.last.map(|(_, rip)| (value("exit_code") as u32, rip));
            }
            "kvm_exit" => {
                let reason = value("exit_reason") as u32;
                reader.last = Some((reason, value("guest_rip")));
                reader.left_ns = record.ticks;
                let entered_ns = reader.entered_ns.take();
                if let Some(from_ns) = entered_ns.filter(|_| reader.nested) {
                    let at_ns = random.between(from_ns, record.ticks);
                    nested.push((at_ns, reader.guest_time(clock, story.truth.from_ns, at_ns)));
                } else if let Some(from_ns) = entered_ns {
                    let mut say = |reader: &mut Reader, name: &str, given: &[(&str, Value)]| {
                        // Two stretches may touch; the later event stays the later.
                        let at_ns = random.between(from_ns.max(reader.written_ns), record.ticks);
                        reader.written_ns = at_ns;
                        let at = reader.guest_time(clock, story.truth.from_ns, at_ns);
                        told.extend(
                            kernel.record(at, vcpu, 1_000 + vcpu as i32, name, given).map(|said| (at_ns, said)),
                        );
                    };
                    if let Some(vector) = reader.injected.take() {
                        say(reader, "local_timer_entry", &[("vector", vector.into())]);
                        if vector == u64::from(TIMER) {
                            say(reader, "hrtimer_expire_entry", &[]);
                            say(reader, "sched_waking", &[("pid", SLEEPER.into())]);
                            say(reader, "sched_switch", &[("next_pid", SLEEPER.into())]);
                        }
                    }
                    let last = request(reason);
                    let next = last || [story.vendor.msr_read(), story.vendor.msr_write()].contains(&reason);
                    if let Some(access) = reader.accessed.take_if(|_| next || at_once(from_ns)) {
                        say(reader, access.event(), &access.fields());
                        if from_ns.is_multiple_of(4) {
                            let unseen = Access { write: true, msr: FS_BASE, value: from_ns };
                            say(reader, unseen.event(), &unseen.fields());
                        }
                    }
                    if let Some((code, rip)) = reader.pending.take_if(|_| last || at_once(from_ns)) {
                        let given = [("exit_reason", u64::from(code).into()), ("guest_rip", rip.into())];
                        let whose = [("isa", story.vendor.isa().into()), ("vcpu_id", 0.into())];
                        say(reader, "kvm_exit", &[given, whose].concat());
                        if code == story.vendor.hypercall() {
                            say(reader, "kvm_hypercall", &[("nr", (rip >> 6 & 7).into())]);
                        }
                    }
                    say(reader, "softirq_entry", &[]);
                    if last {
                        say(reader, "kvm_entry", &[("vcpu_id", 0.into())]);
                    }
                }
            }
            _ => {}
        }
        below.records.push(record.clone());
    }
    told.sort_by_key(|(at_ns, said)| (*at_ns, said.ticks));
    let (true_ns, records): (Vec<u64>, Vec<Record>) = told.into_iter().unzip();
    let truth = Truth { vcpus: Vec::new(), gaps: Vec::new(), ..story.truth.clone() };
    let comms = vcpu_of.values().map(|vcpu| (1_000 + *vcpu as i32, "qemu-of-L1".to_owned())).collect();
    let cpus = vcpu_of.values().max().map_or(1, |vcpu| vcpu + 1);
    let above = Story { records, truth, comms, cpus, schema: kernel.schema, losses: Vec::new(), ..story.clone() };
    Pair { below, above, true_ns, nested }
}

/// Whether L1 writes an exit down in this stretch or in a later one: by the time alone, so that both occur.
fn at_once(from_ns: u64) -> bool {
    !from_ns.is_multiple_of(3)
}

impl GuestClock {
    /// The host's time as the guest's counter counts it, without the offset.
    fn scaled(&self, host_ns: u64) -> u64 {
        if self.ratio == 0 { host_ns } else { ((u128::from(host_ns) * u128::from(self.ratio)) >> 32) as u64 }
    }
}

impl Reader {
    /// At an entry KVM may change the offset: the guest's clock never runs back.
    fn step(&mut self, clock: &GuestClock, now_ns: u64, middle_ns: u64, random: &mut Random) {
        self.entries += 1;
        if clock.step_every > 0 && self.entries.is_multiple_of(clock.step_every) {
            let out_ns = now_ns.saturating_sub(self.left_ns).min(1_000_000);
            self.offset += random.between(0, 2 * out_ns + 1) as i64 - out_ns as i64;
        }
        if now_ns >= middle_ns && !self.jumped {
            self.jumped = true;
            self.offset += clock.jump;
        }
    }

    fn guest_time(&self, clock: &GuestClock, from_ns: u64, at_ns: u64) -> u64 {
        let passed = i128::from(at_ns - from_ns);
        let bend = passed * passed * i128::from(clock.bend_ppb_per_ms) / (2 * 1_000_000 * 1_000_000_000);
        let drift = passed * i128::from(clock.drift_ppb) / 1_000_000_000 + bend;
        clock.scaled(at_ns).wrapping_add_signed(self.offset).wrapping_add_signed(drift as i64)
    }
}
