#![no_main]

#[path = "../checks/offsets_topic.rs"]
mod offsets_topic;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| offsets_topic::check(bytes));
