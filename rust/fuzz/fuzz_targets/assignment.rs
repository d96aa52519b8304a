#![no_main]

#[path = "../checks/assignment.rs"]
mod assignment;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assignment::check(bytes));
