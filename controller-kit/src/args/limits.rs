//! What one owner may ask of a controller.

use clap::Args;

const STAMPING_DEPTH: u8 = 8;

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
}

impl Default for LimitArgs {
    fn default() -> Self {
        Self {
            max_stamping_depth: STAMPING_DEPTH,
        }
    }
}

impl LimitArgs {
    /// [`Self::max_stamping_depth`].
    pub fn stamping_depth(&self) -> usize {
        usize::from(self.max_stamping_depth)
    }
}
