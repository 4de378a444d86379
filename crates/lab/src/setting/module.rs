//! Parameters of kernel modules: read on a running host, and never set there.

use super::{Concern, Held, Host, Live, read};
use crate::Error;
use base::Setting;

pub(super) struct Parameter<'a> {
    pub(super) module: &'a str,
    pub(super) parameter: &'a str,
    pub(super) setting: &'a Setting,
    pub(super) host: &'a Host,
}

impl Live for Parameter<'_> {
    fn read(&self) -> Result<Held, Error> {
        read(&self.host.sys.join("module").join(self.module).join("parameters").join(self.parameter)).map(Held::from)
    }

    fn spelled(&self, value: &str) -> Result<String, Error> {
        Err(Error::Denied(format!(
            "a module is not reloaded by this program, because every VM on it would have to end; type: {}",
            self.setting.command(value)
        )))
    }

    fn same(&self, value: &str, now: &str) -> bool {
        value == now
    }

    fn write(&self, value: &str) -> Result<(), Error> {
        self.spelled(value).map(drop)
    }

    fn concerns(&self, _old: &str, _new: &str) -> Result<Concern, Error> {
        Ok(Concern::Unknown)
    }

    fn outlives_boot(&self) -> bool {
        false
    }
}
