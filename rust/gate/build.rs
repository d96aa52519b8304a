//! Nothing is built here: Cargo.toml says what the build dependency is for.

fn main() {}
