//! Enums whose variants are texts outside of the program.

/// Defines such an enum. The text of a variant is its name, or what is given behind it; serde and others may spell it the same
/// way. Whoever adds a variant has nothing else to keep in step.
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$of_variant:meta])* $variant:ident $(= $text:literal)?,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            /// All of them, as they are listed.
            pub const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];

            /// As text.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $crate::texts::text_of!($variant $($text)?),)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// The text of a variant.
macro_rules! text_of {
    ($variant:ident) => {
        stringify!($variant)
    };
    ($variant:ident $text:literal) => {
        $text
    };
}

pub(crate) use {text_enum, text_of};
