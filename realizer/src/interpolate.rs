//! (module interpolate)
