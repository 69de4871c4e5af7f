//! The supply-chain controller.
fn main() {}
