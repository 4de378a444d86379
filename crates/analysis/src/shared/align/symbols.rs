//! Which function does an instruction pointer of a guest lie in?
//!
//! In:  the text of the guest's `/proc/kallsyms`: address, type, name, and for modules their name in brackets. Out: names.
//! The addresses are those of the boot that was traced, so nothing has to be shifted. A kernel that hides them
//! (`kptr_restrict`) gives zeros, and nothing is named. Types `t` and `w` are code (nm(1)).

/// Where the kernel's half of the address space begins on x86 (Documentation/arch/x86/x86_64/mm.rst, Linux 6.12).
const KERNEL: u64 = 0xffff_8000_0000_0000;

/// A kernel's functions.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    text: String,
    /// Address, where its line begins and ends behind the type, and whether it is code; sorted by address.
    places: Vec<(u64, u32, u32, bool)>,
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
        any.then_some(Self { text, places })
    }

    /// The function at `rip`: `svm_vcpu_run [kvm_amd]`; `user code` below the kernel, `None` where no function is named.
    pub fn name(&self, rip: u64) -> Option<String> {
        if rip < KERNEL {
            return Some("user code".to_owned());
        }
        let last = self.places.partition_point(|(address, ..)| *address <= rip).checked_sub(1)?;
        let (_, from, to, code) = self.places[last];
        let name = self.text.get(from as usize..to as usize).filter(|_| code)?;
        Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
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
}
