//! What KVM does for the guest of the running thread, and what goes wrong with it.

use super::{Sink, Walk};
use crate::events::details::Detail;
use crate::events::roles::{self, Role};
use crate::faults;
use crate::thread::Surroundings;
use trace::Event;

impl<S: Sink> Walk<S> {
    /// KVM works for the guest of thread `me`, which may go wrong.
    #[inline(never)]
    pub(super) fn serves(&mut self, me: usize, event: &Event<'_>, role: Role, now_ns: u64) {
        let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
        let thread = &mut self.threads[me];
        match (self.seen.exit, role) {
            // Nothing else tells that it runs a vCPU.
            (false, _) => thread.serves(now_ns, cx),
            (true, Role::Emulate) => thread.detail(now_ns, Detail::Emulated),
            (true, _) => thread.detail(now_ns, Detail::None),
        }
        match role {
            Role::Emulate if event.or_zero(roles::emulate::FAILED) != 0 => {
                let bytes = event.content(roles::emulate::BYTES).unwrap_or_default();
                self.faults.emulation(me, now_ns, event.get(roles::emulate::RIP), bytes);
            }
            Role::Emulate => self.faults.progress(me),
            Role::InjectException => {
                let number = event.get(roles::exception::VECTOR).and_then(|vector| u8::try_from(vector).ok());
                let named = || faults::vector_of(event.content(roles::exception::NAME)?);
                if let Some(vector) = number.or_else(named) {
                    self.faults.injected(me, now_ns, vector);
                }
            }
            Role::PageFault => {
                if let Some(address) = event.get(0) {
                    self.faults.page_fault(me, address, now_ns);
                }
            }
            _ => {}
        }
    }
}
