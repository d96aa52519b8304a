#![no_main]

#[path = "../checks/partitioner.rs"]
mod partitioner;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| partitioner::check(bytes));
