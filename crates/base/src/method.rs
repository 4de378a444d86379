//! How a guest's memory goes over in a live migration, and what QEMU has to be told for that.

/// The parameter that says how channels compress.
pub const COMPRESSION: &str = "multifd-compression";

crate::named! {
    /// One way.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Method {
        /// Pass after pass over one connection, until what is left can be sent while the guest stands still.
        Precopy = "precopy",
        /// The same for one pass; then the guest goes on over there, and its pages come as it asks for them.
        Postcopy = "postcopy",
        /// Pre-copy over several connections.
        Multifd = "multifd",
        /// The same, compressed.
        Zstd = "zstd",
        /// Pre-copy; of a page that was sent before, what has changed.
        Xbzrle = "xbzrle",
        /// Pre-copy that takes more and more time from the guest.
        AutoConverge = "auto-converge",
        /// Through a file, in which each page has its place.
        MappedRam = "mapped-ram",
    }
}

impl Method {
    /// The one that a side was told to use: by the capabilities that are on, and how it compresses. Of several, the one that decides most of
    /// how it goes.
    pub fn of(has: impl Fn(&str) -> bool, compression: Option<&str>) -> Self {
        match () {
            () if has("mapped-ram") => Self::MappedRam,
            () if has("postcopy-ram") => Self::Postcopy,
            () if has("multifd") && compression == Some("zstd") => Self::Zstd,
            () if has("multifd") => Self::Multifd,
            () if has("xbzrle") => Self::Xbzrle,
            () if has("auto-converge") => Self::AutoConverge,
            () => Self::Precopy,
        }
    }

    /// The capability that it takes on both sides, and since when QEMU has it (`Since` in qapi/migration.json); pre-copy takes none.
    pub fn capability(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Precopy => None,
            Self::Postcopy => Some(("postcopy-ram", "2.6")),
            Self::Multifd | Self::Zstd => Some(("multifd", "4.0")),
            Self::Xbzrle => Some(("xbzrle", "1.2")),
            Self::AutoConverge => Some(("auto-converge", "1.6")),
            Self::MappedRam => Some(("mapped-ram", "9.0")),
        }
    }

    /// The compression that it sets on both sides.
    pub fn compression(self) -> Option<&'static str> {
        (self == Self::Zstd).then_some("zstd")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_again_by_what_it_takes_and_has_a_name_of_its_own() {
        let mut names = std::collections::BTreeSet::new();
        for method in Method::ALL {
            let takes = |name: &str| method.capability().is_some_and(|(capability, _)| capability == name);
            assert_eq!(Method::of(takes, method.compression()), method);
            assert!(names.insert(method.name()));
        }
        assert_eq!(Method::of(|_| true, None), Method::MappedRam, "that one decides most");
    }
}
