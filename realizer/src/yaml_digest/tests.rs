//! The vectors of spec 4.6.
