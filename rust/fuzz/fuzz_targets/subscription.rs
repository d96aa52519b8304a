#![no_main]

#[path = "../../core/tests/encode/mod.rs"]
mod encode;
#[path = "../checks/subscription.rs"]
mod subscription;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| subscription::check(bytes));
