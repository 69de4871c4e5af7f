//! What one owner may ask of a controller.

use clap::Args;

const STAMPING_DEPTH: u8 = 8;
const OWNER_KIBIBYTES: u32 = 256;
const RENDERING_KIBIBYTES: u32 = 1024;

/// What one owner may ask of a controller.
#[derive(Debug, Clone, Copy, Args)]
pub struct LimitArgs {
    /// How many owners in a row may be stamped for one another after the first: a template that stamps an owner of its own
    /// blueprint would go on for ever. What comes behind them stamps nothing, and says why
    #[arg(
        long,
        value_name = "COUNT",
        env = "CARTO_MAX_STAMPING_DEPTH",
        default_value_t = STAMPING_DEPTH,
        value_parser = clap::value_parser!(u8).range(1..=31)
    )]
    pub max_stamping_depth: u8,

    /// The size of an owner without its status; of a larger one nothing is stamped, and its condition says so
    #[arg(
        long,
        value_name = "KIB",
        env = "CARTO_MAX_OWNER_SIZE",
        default_value_t = OWNER_KIBIBYTES,
        value_parser = clap::value_parser!(u32).range(16..=4096)
    )]
    pub max_owner_size: u32,

    /// The size of a rendering; a larger one is not sent, and the condition says so
    #[arg(
        long,
        value_name = "KIB",
        env = "CARTO_MAX_RENDERING_SIZE",
        default_value_t = RENDERING_KIBIBYTES,
        value_parser = clap::value_parser!(u32).range(16..=4096)
    )]
    pub max_rendering_size: u32,
}

impl Default for LimitArgs {
    fn default() -> Self {
        Self {
            max_stamping_depth: STAMPING_DEPTH,
            max_owner_size: OWNER_KIBIBYTES,
            max_rendering_size: RENDERING_KIBIBYTES,
        }
    }
}

impl LimitArgs {
    /// [`Self::max_stamping_depth`].
    pub fn stamping_depth(&self) -> usize {
        usize::from(self.max_stamping_depth)
    }

    /// [`Self::max_owner_size`] in bytes.
    pub fn owner_bytes(&self) -> usize {
        bytes(self.max_owner_size)
    }

    /// [`Self::max_rendering_size`] in bytes.
    pub fn rendering_bytes(&self) -> usize {
        bytes(self.max_rendering_size)
    }
}

fn bytes(kibibytes: u32) -> usize {
    usize::try_from(kibibytes).map_or(usize::MAX, |kibibytes| kibibytes << 10)
}
