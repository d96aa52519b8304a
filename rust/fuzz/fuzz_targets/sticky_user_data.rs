#![no_main]

#[path = "../../core/tests/encode/mod.rs"]
mod encode;
#[path = "../checks/sticky_user_data.rs"]
mod sticky_user_data;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sticky_user_data::check(bytes));
