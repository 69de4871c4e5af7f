//! carto.
fn main() {}
