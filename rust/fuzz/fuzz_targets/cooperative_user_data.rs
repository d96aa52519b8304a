#![no_main]

#[path = "../checks/cooperative_user_data.rs"]
mod cooperative_user_data;
#[path = "../../core/tests/encode/mod.rs"]
mod encode;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cooperative_user_data::check(bytes));
