//! Runs the committed cases of every fuzz target with the stable compiler: golden bytes, and the findings of fuzzing.

use std::fs;
use std::path::Path;

fn run(target: &str, check: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut cases = 0;
    for entry in fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.unwrap().path();
        // A case of a local fuzzing run has a hash as its name, and is not committed.
        if path.file_name().is_some_and(|name| name.len() == 40) {
            continue;
        }
        let bytes = fs::read(path).unwrap();
        // Every prefix of a case must pass, too.
        for length in 0..=bytes.len() {
            check(&bytes[..length]);
        }
        cases += 1;
    }
    assert!(cases > 0, "no cases in {}", directory.display());
}

macro_rules! cases {
    ($($target:ident in $file:literal,)*) => {$(
        #[path = $file]
        mod $target;

        #[test]
        fn $target() {
            run(stringify!($target), $target::check);
        }
    )*};
}

cases! {
    subscription in "../../../fuzz/checks/subscription.rs",
    assignment in "../../../fuzz/checks/assignment.rs",
    sticky_user_data in "../../../fuzz/checks/sticky_user_data.rs",
    cooperative_user_data in "../../../fuzz/checks/cooperative_user_data.rs",
    decode_plan_verify in "../../../fuzz/checks/decode_plan_verify.rs",
    frame in "../../../fuzz/checks/frame.rs",
    coordinator in "../../../fuzz/checks/coordinator.rs",
    membership in "../../../fuzz/checks/membership.rs",
    consumer_membership in "../../../fuzz/checks/consumer_membership.rs",
    partitioner in "../../../fuzz/checks/partitioner.rs",
    replay in "../../../fuzz/checks/replay.rs",
    offsets_topic in "../../../fuzz/checks/offsets_topic.rs",
}
