//! Which function does an instruction pointer of a guest lie in?
//!
//! In:  the text of the guest's `/proc/kallsyms`: address, type, name, and for modules their name in brackets; or of its
//! `System.map`, which has addresses as they were linked; or of its `/proc/modules`. Out: names.
//!
//! ```text
//! kallsyms     ffffffff9e000000 T _stext              where it ran
//! System.map   ffffffff81000000 T _stext              + slide = where it ran
//! modules      kvm_amd 180224 0 - Live 0xffffffffc05c2000
//! ```
//! Addresses of `kallsyms` are those of the boot that was traced. A kernel that hides them (`kptr_restrict`) gives zeros,
//! and nothing is named. Types `t` and `w` are code (nm(1)). The slide of address randomisation is a multiple of 2 MiB below
//! 1 GiB, so the place of one instruction tells it: where the guest executes HLT is in one of few functions.
//! Sources: CONFIG_PHYSICAL_ALIGN, and KERNEL_IMAGE_SIZE in arch/x86/include/asm/page_64_types.h; `pv_native_safe_halt` in
//! arch/x86/kernel/paravirt.c, `acpi_safe_halt` in drivers/acpi/processor_idle.c, Linux 6.12.

/// Where the kernel's half of the address space begins on x86 (Documentation/arch/x86/x86_64/mm.rst, Linux 6.12).
pub const KERNEL: u64 = 0xffff_8000_0000_0000;

/// Where the kernel is linked to run, and how far above it may be put.
const LINKED: u64 = 0xffff_ffff_8000_0000;
const IMAGE: u64 = 1 << 30;
/// Slides are multiples of it.
const ALIGN: u64 = 2 << 20;

/// Where the kernel's code begins, in kallsyms and in System.map alike (include/asm-generic/sections.h).
const START: &str = "_stext";

/// Functions that execute HLT when there is nothing to do; older kernels have it in `default_idle`.
const HALTING: &[&str] = &["native_safe_halt", "pv_native_safe_halt", "acpi_safe_halt", "default_idle"];

/// A module: where it begins and ends, and its name.
type Module = (u64, u64, String);

/// A kernel's functions.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    text: String,
    /// Address, where its line begins and ends behind the type, and whether it is code; sorted by address.
    places: Vec<(u64, u32, u32, bool)>,
    /// What to add to the addresses of the kernel itself.
    slide: u64,
    modules: Vec<Module>,
}

impl Symbols {
    /// Reads them; `None` if the text names no function.
    pub fn parse(text: String) -> Option<Self> {
        let mut places = Vec::new();
        let mut at = 0usize;
        for line in text.split_inclusive('\n') {
            let end = at + line.trim_end().len();
            let mut words = line.splitn(3, ' ');
            if let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
                && let Ok(address) = u64::from_str_radix(address, 16)
                && address >= KERNEL
            {
                let from = at + line.len() - name.len();
                let code = matches!(kind, "t" | "T" | "w" | "W");
                let place = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
                places.push((address, place(from), place(end), code));
            }
            at += line.len();
        }
        // Of several names of one address the first in the text counts.
        places.sort_by_key(|(address, ..)| *address);
        places.dedup_by_key(|(address, ..)| *address);
        let any = places.iter().any(|(.., code)| *code);
        any.then_some(Self { text, places, ..Self::default() })
    }

    /// The same for a kernel that was put `slide` above where it was linked.
    pub fn slid(self, slide: u64) -> Self {
        Self { slide, ..self }
    }

    /// Adds what `/proc/modules` says, for places that no function is named of.
    pub fn with_modules(self, modules: &str) -> Self {
        let module = |line: &str| -> Option<Module> {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, bytes, _, _, _, address, ..] = words[..] else { return None };
            let from = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok().filter(|from| *from >= KERNEL)?;
            Some((from, from.checked_add(bytes.parse().ok()?)?, name.to_owned()))
        };
        let mut modules: Vec<Module> = modules.lines().filter_map(module).collect();
        modules.sort_unstable();
        Self { modules, ..self }
    }

    /// True if a module's place is known.
    pub fn has_modules(&self) -> bool {
        !self.modules.is_empty()
    }

    /// The slide at which the places where the guest halted lie in functions that halt; `None` if none does, or several.
    pub fn slide_by(&self, halts: &[u64]) -> Option<u64> {
        let halting = |place: u64| self.function(place).is_some_and(|name| HALTING.contains(&name));
        let fits = |slide: &u64| halts.iter().any(|halt| halting(halt.wrapping_sub(*slide)));
        let mut slides = (0..IMAGE / ALIGN).map(|number| number * ALIGN).filter(fits);
        slides.next().filter(|_| slides.next().is_none())
    }

    /// The slide that puts these symbols where `running` says that the same kernel was.
    pub fn slide_to(&self, running: &Self) -> Option<u64> {
        let slide = running.address(START)?.checked_sub(self.address(START)?)?;
        (slide < IMAGE && slide.is_multiple_of(ALIGN)).then_some(slide)
    }

    fn address(&self, wanted: &str) -> Option<u64> {
        let named = |place: &&(u64, u32, u32, bool)| self.text.get(place.1 as usize..place.2 as usize) == Some(wanted);
        self.places.iter().find(named).map(|place| place.0)
    }

    /// True if the addresses may be those of linking: then a slide has to be known. A text that names modules is of a kernel
    /// that runs.
    pub fn may_be_linked(&self) -> bool {
        if self.text.contains("\t[") {
            return false;
        }
        let start = self.places.iter().find(|place| place.3 && place.0 >= LINKED);
        start.is_some_and(|place| place.0 < LINKED + 16 * ALIGN)
    }

    /// The function at `rip`: `svm_vcpu_run [kvm_amd]`; `user code` below the kernel, `None` where no function is named.
    pub fn name(&self, rip: u64) -> Option<String> {
        if rip < KERNEL {
            return Some("user code".to_owned());
        }
        let words = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ");
        let function = self.function(rip.wrapping_sub(self.slide)).map(words);
        function.or_else(|| {
            let last = self.modules.partition_point(|(from, ..)| *from <= rip).checked_sub(1)?;
            let (_, to, name) = &self.modules[last];
            (rip < *to).then(|| format!("[{name}]"))
        })
    }

    fn function(&self, place: u64) -> Option<&str> {
        let last = self.places.partition_point(|(address, ..)| *address <= place).checked_sub(1)?;
        let (_, from, to, code) = self.places[last];
        self.text.get(from as usize..to as usize).filter(|_| code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_named_by_the_function_it_lies_in() {
        let text = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000100 t one\n\
                    ffffffff82000000 D data\nffffffffc05c2780 t svm_vcpu_run\t[kvm_amd]\n";
        let symbols = Symbols::parse(text.to_owned()).unwrap();
        let name = |rip| symbols.name(rip);
        assert_eq!(name(0xffff_ffff_8100_0000).as_deref(), Some("_stext"));
        assert_eq!(name(0xffff_ffff_8100_01ff).as_deref(), Some("one"));
        assert_eq!(name(0xffff_ffff_c05c_2799).as_deref(), Some("svm_vcpu_run [kvm_amd]"));
        assert_eq!(name(0xffff_ffff_8200_0001), None, "data is no function");
        assert_eq!(name(0xffff_ffff_8000_0000), None, "before the first");
        assert_eq!(name(0x40_f2e8).as_deref(), Some("user code"));
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_names_nothing() {
        assert!(Symbols::parse("0000000000000000 T _stext\n0000000000000000 t one\n".to_owned()).is_none());
        assert!(Symbols::parse(String::new()).is_none());
    }

    #[test]
    fn the_same_kernel_where_it_ran_tells_how_far_it_was_moved() {
        let of = |text: &str| Symbols::parse(text.to_owned()).unwrap();
        let linked = of("ffffffff81000000 T _stext\nffffffff81000100 t one\n");
        let ran = of("ffffffff8b400000 T _stext\nffffffff8b400100 t one\nffffffffc05c2780 t two\t[kvm]\n");
        assert_eq!((linked.slide_to(&ran), linked.slide_to(&linked)), (Some(0x0a40_0000), Some(0)));
        assert_eq!(ran.slide_to(&linked), None, "a kernel is never put below where it was linked");
        let unmoved = of("ffffffff81000000 T _stext\nffffffffc05c2780 t two\t[kvm]\n");
        assert!(linked.may_be_linked() && !unmoved.may_be_linked(), "only a kernel that runs has modules");
    }

    #[test]
    fn the_place_of_a_halt_tells_where_the_kernel_was_put() {
        let text = "ffffffff81000000 T _stext\nffffffff81d3fff0 T before\nffffffff81d40000 T pv_native_safe_halt\n\
                    ffffffff81d40010 T behind\nffffffff83000000 B _end\n";
        let symbols = Symbols::parse(text.to_owned()).unwrap();
        assert!(symbols.may_be_linked());
        let slide = 0x1c60_0000;
        assert_eq!(symbols.slide_by(&[0xffff_ffff_81d4_0004 + slide]), Some(slide));
        assert_eq!(symbols.slide_by(&[0xffff_ffff_81d4_0014 + slide]), None, "it halts elsewhere");
        assert_eq!(symbols.slide_by(&[]), None);
        let modules = "kvm_amd 180224 0 - Live 0xffffffffc05c2000\nhidden 4096 0 - Live 0x0000000000000000\n";
        let symbols = symbols.slid(slide).with_modules(modules);
        assert_eq!(symbols.name(0xffff_ffff_8100_0001 + slide).as_deref(), Some("_stext"));
        assert_eq!(symbols.name(0xffff_ffff_c05c_2780).as_deref(), Some("[kvm_amd]"));
        assert_eq!(symbols.name(0xffff_ffff_c0ff_2780), None);
    }
}
