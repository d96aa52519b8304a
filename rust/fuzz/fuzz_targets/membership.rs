#![no_main]

#[path = "../checks/membership.rs"]
mod membership;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| membership::check(bytes));
