//! Changes that a finding proposes: a setting, the value it gets, and the one it has.
//!
//! `fix` and `undo` of a finding are these types printed; a program that applies a change executes the type and never
//! a string out of a file.

use crate::Setting;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One change of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What is set.
    pub setting: Setting,
    /// Value to set.
    pub to: String,
    /// Value that holds now, where it is known.
    pub from: Option<String>,
}

impl Change {
    /// The command that makes the change, with a comment of a shell on what else it does; names out of evidence are quoted.
    pub fn command(&self) -> String {
        self.remarked(&self.to)
    }

    /// The command that takes it back, where the value before is known.
    pub fn undo(&self) -> Option<String> {
        self.from.as_ref().map(|from| self.remarked(from))
    }

    fn remarked(&self, value: &str) -> String {
        let command = self.setting.command(value);
        self.setting.remark().map_or_else(|| command.clone(), |remark| format!("{command}   # {remark}"))
    }

    /// The command that takes it back, or a comment of a shell that says why there is none.
    pub fn undo_or_why(&self) -> String {
        self.undo().unwrap_or_else(|| {
            format!("# no undo for `{}`: the previous value was not read", self.setting.command(&self.to))
        })
    }
}

/// The same in JSON: the setting's own fields, then its value, which is called `cpus` where it is a list of CPUs.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    setting: &'a Setting,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    from: Option<&'a str>,
}

#[derive(Deserialize)]
struct Read {
    #[serde(flatten)]
    setting: Setting,
    cpus: Option<String>,
    to: Option<String>,
    from: Option<String>,
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (to, takes_cpus) = (Some(self.to.as_str()), self.setting.takes_cpus());
        let (cpus, to) = if takes_cpus { (to, None) } else { (None, to) };
        Written { setting: &self.setting, cpus, to, from: self.from.as_deref() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Change {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read { setting, cpus, to, from } = Read::deserialize(deserializer)?;
        let (to, name) = if setting.takes_cpus() { (cpus, "cpus") } else { (to, "to") };
        Ok(Self { setting, to: to.ok_or_else(|| D::Error::missing_field(name))?, from })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::ThreadId;

    #[test]
    fn pins_print_as_a_person_types_them_and_come_back_from_json() {
        let pin = Setting::emulator_pin("bigip-virtio").change("1,3", Some("0,2".into()));
        assert_eq!(pin.command(), "virsh emulatorpin bigip-virtio 1,3 --live --config");
        assert_eq!(pin.undo().unwrap(), "virsh emulatorpin bigip-virtio 0,2 --live --config");
        let policy = Setting::TaskPolicy(7.into()).change("fifo:1", Some("other".into()));
        assert_eq!(policy.command(), "chrt --fifo -p 1 7");
        assert_eq!(policy.undo().unwrap(), "chrt --other -p 0 7");
        assert_eq!(Setting::IrqAffinity { irq: 9 }.change("1", None).undo(), None);
        let text = serde_json::to_string(&pin).unwrap();
        assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), pin);
        assert!(serde_json::from_str::<Change>(r#"{"type":"Shell","command":"rm"}"#).is_err());
    }

    #[test]
    fn a_thread_is_written_flat_and_only_with_what_is_known_of_it() {
        let pin = |thread| Setting::TaskAffinity(thread).change("1", None);
        let bare = serde_json::to_value(pin(7.into())).unwrap();
        assert_eq!(bare, serde_json::json!({"type": "TaskAffinity", "tid": 7, "cpus": "1", "from": null}));
        assert_eq!(serde_json::from_value::<Change>(bare).unwrap(), pin(7.into()));
        let known = pin(ThreadId { tid: 7, start_ticks: Some(99), comm: Some("vhost-6".into()) });
        let text = serde_json::to_string(&known).unwrap();
        assert!(text.contains(r#""start_ticks":99,"comm":"vhost-6""#), "{text}");
        assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), known);
    }

    #[test]
    fn each_kind_of_change_is_written_as_the_contract_says() {
        let of = |setting: Setting| setting.change("1", Some("0".into()));
        let written = |change: &Change| serde_json::to_string(change).unwrap();
        let kinds = [
            (
                Setting::ModuleOption { module: "m".into(), parameter: "p".into() },
                r#""type":"ModuleOption","module":"m","parameter":"p","to""#,
            ),
            (Setting::SysfsWrite { path: "a".into() }, r#""type":"SysfsWrite","path":"a","to""#),
            (Setting::Sysctl { path: "a".into() }, r#""type":"Sysctl","path":"a","to""#),
            (Setting::TaskAffinity(7.into()), r#""type":"TaskAffinity","tid":7,"cpus""#),
            (Setting::TaskPolicy(7.into()), r#""type":"TaskPolicy","tid":7,"to""#),
            (Setting::IrqAffinity { irq: 9 }, r#""type":"IrqAffinity","irq":9,"cpus""#),
            (Setting::PmdMask, r#""type":"PmdMask","cpus""#),
            (Setting::vcpu_pin("a", 2), r#""type":"VcpuPin","domain":"a","vcpu":2,"cpus""#),
            (Setting::emulator_pin("a"), r#""type":"EmulatorPin","domain":"a","cpus""#),
            (Setting::iothread_pin("a", 1), r#""type":"IothreadPin","domain":"a","iothread":1,"cpus""#),
        ];
        for (setting, begins) in kinds {
            let change = of(setting);
            assert_eq!(written(&change), format!("{{{begins}:\"1\",\"from\":\"0\"}}"));
            assert_eq!(serde_json::from_str::<Change>(&written(&change)).unwrap(), change);
            let (right, wrong) = if change.setting.takes_cpus() { ("cpus", "to") } else { ("to", "cpus") };
            let misnamed = written(&change).replace(&format!("\"{right}\":"), &format!("\"{wrong}\":"));
            assert!(serde_json::from_str::<Change>(&misnamed).is_err(), "{misnamed}");
        }
    }

    #[test]
    fn a_name_out_of_evidence_is_one_word_of_the_command() {
        let pin = |domain: &str| Setting::emulator_pin(domain).change("1", Some("$(x)".into()));
        assert_eq!(pin("a; rm -rf /").command(), "virsh emulatorpin 'a; rm -rf /' 1 --live --config");
        assert_eq!(pin("a").undo().unwrap(), "virsh emulatorpin a '$(x)' --live --config");
        assert_eq!(pin("--all").command(), "virsh emulatorpin --domain=--all 1 --live --config");
        let write = Setting::SysfsWrite { path: "a b".into() }.change("`x`", None);
        assert_eq!(write.command(), "echo '`x`' > '/sys/a b'");
    }

    #[test]
    fn a_mask_of_polling_threads_is_set_and_taken_away_again() {
        let mask = |from: Option<&str>| Setting::PmdMask.change("1,9", from.map(str::to_owned));
        assert_eq!(mask(None).command(), "ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=0x202");
        assert_eq!(mask(None).undo(), None);
        let back = "ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=0x1";
        assert_eq!(mask(Some("0")).undo().unwrap(), back);
        assert_eq!(mask(Some("")).undo().unwrap(), "ovs-vsctl remove Open_vSwitch . other_config pmd-cpu-mask");
    }

    #[test]
    fn a_module_option_prints_its_command_and_its_way_back() {
        let change = Setting::ModuleOption { module: "kvm_intel".into(), parameter: "enable_shadow_vmcs".into() }
            .change("1", Some("0".into()));
        let remark = "   # reloading the module stops all VMs: shut them down first";
        let command = |value: u8| format!("modprobe -r kvm_intel && modprobe kvm_intel enable_shadow_vmcs={value}");
        assert_eq!(change.command(), command(1) + remark);
        assert_eq!(change.undo().unwrap(), command(0) + remark);
        let unread = Change { from: None, ..change };
        assert_eq!(unread.undo_or_why(), format!("# no undo for `{}`: the previous value was not read", command(1)));
    }

    #[test]
    fn kvm_is_reloaded_together_with_the_module_that_holds_it() {
        let change = Setting::ModuleOption { module: "kvm".into(), parameter: "tdp_mmu".into() }.change("1", None);
        let command = "vendor=$(ls /sys/module/kvm/holders) && modprobe -r $vendor kvm && modprobe kvm tdp_mmu=1 && \
                       modprobe -a $vendor";
        assert_eq!(change.command(), format!("{command}   # reloading the module stops all VMs: shut them down first"));
    }
}
