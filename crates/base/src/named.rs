//! Enums whose variants have words.

/// Declares an enum with a word beside each variant, and gives it `ALL`, the list of all variants, `name`, the word of a variant, and
/// `named`, the variant that a word means. Options, legends and sentences list variants in the order of their declaration.
///
/// ```text
/// named! {
///     #[derive(Debug, Clone, Copy)]
///     pub enum Severity {
///         /// Worth knowing.
///         Info = "info",
///     }
/// }
/// Severity::ALL; Severity::Info.name(); Severity::named("info")
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$of_all:meta])* $vis:vis enum $name:ident { $($(#[$of_one:meta])* $variant:ident = $word:expr,)+ }) => {
        $(#[$of_all])*
        $vis enum $name {
            $($(#[$of_one])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of their declaration.
            $vis const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            /// The word of its declaration.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one with this name.
            $vis fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    const WARM: &str = "warm";

    crate::named! {
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        enum Heat {
            /// Of which nothing is asked.
            #[default]
            Cold = "none at all",
            Warm = WARM,
        }
    }

    #[test]
    fn every_name_is_read_as_it_is_written() {
        assert_eq!(Heat::ALL, [Heat::Cold, Heat::Warm]);
        assert_eq!(Heat::ALL.map(Heat::name), ["none at all", "warm"]);
        assert_eq!(Heat::ALL.map(|heat| Heat::named(heat.name())), [Some(Heat::Cold), Some(Heat::Warm)]);
        assert_eq!((Heat::named("Warm"), Heat::named(""), Heat::default()), (None, None, Heat::Cold));
    }
}
