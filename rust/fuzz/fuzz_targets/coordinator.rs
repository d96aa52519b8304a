#![no_main]

#[path = "../checks/coordinator.rs"]
mod coordinator;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coordinator::check(bytes));
