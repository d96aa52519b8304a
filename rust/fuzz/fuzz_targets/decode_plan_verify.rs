#![no_main]

#[path = "../checks/decode_plan_verify.rs"]
mod decode_plan_verify;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decode_plan_verify::check(bytes));
