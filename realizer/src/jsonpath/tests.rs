
//! The vectors of spec 3.3, and laws.
