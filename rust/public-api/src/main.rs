//! Prints the public API of a crate, one line for each name, from the JSON that rustdoc wrote.

use std::error::Error;

/// Reads the path of the JSON file from the arguments.
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("name the JSON file that rustdoc wrote")?;
    // Implementations that follow from the types say nothing that the types do not: Send, From<T> for T.
    let api = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    println!("{api}");
    Ok(())
}
