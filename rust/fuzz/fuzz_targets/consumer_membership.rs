#![no_main]

#[path = "../checks/consumer_membership.rs"]
mod consumer_membership;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| consumer_membership::check(bytes));
