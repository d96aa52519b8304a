//! An empty build script: Cargo.toml has the reason for the build dependency.

fn main() {}
