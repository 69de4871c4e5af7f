//! Texts of webhooks, made fit for a condition.

use conventions::told::in_a_line;

/// How many bytes of what a server said are told.
const MOST_BYTES: usize = 2048;

/// A text in one line that no terminal obeys, at most 2 kB of it.
pub(crate) fn told(text: &str) -> String {
    in_a_line(text, MOST_BYTES)
}
