//! JSON values as such, whatever object they are of.
//!
//! Everything that reads or compares a value uses these: [`field_path`] reads it, [`matching`] asks whether it meets a
//! requirement, [`canonical`] gives it a digest. [`redaction`] follows texts of Secrets, so that no message and no
//! status shows one. [`status_key`] is the key under which a digest of such a text may be shown all the same.

pub(crate) mod canonical;
pub(crate) mod field_path;
pub(crate) mod matching;
pub(crate) mod redaction;
pub(crate) mod status_key;
