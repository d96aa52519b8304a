//! `docs/fault-scenarios.md` names every scenario and all of its tests, and no test that does not exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The names of tests of scenarios in a text.
fn names(text: &str, before: &str) -> BTreeSet<String> {
    let after = text.split(before).skip(1);
    let name = |rest: &str| rest.chars().take_while(|&c| c.is_ascii_alphanumeric() || c == '_').collect::<String>();
    after.map(name).filter(|name| name.len() > "scenario_".len() && name.starts_with("scenario_")).collect()
}

#[test]
fn the_table_of_fault_scenarios_is_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/fault-scenarios.md")).unwrap();
    let mut tests = BTreeSet::new();
    let files = fs::read_dir(root.join("tests/simulation")).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        tests.append(&mut names(&fs::read_to_string(file).unwrap(), "\nfn "));
    }
    assert_eq!(names(&page, "`"), tests);
    for number in 1..=42 {
        let row = page.lines().find(|line| line.starts_with(&format!("| {number} |")));
        let row = row.unwrap_or_else(|| panic!("scenario {number} has no row"));
        let named = names(row, "`");
        assert!(named.iter().all(|name| name.starts_with(&format!("scenario_{number:02}_"))), "{row}");
        assert!(!named.is_empty() || row.contains(".py`: `test_"), "scenario {number} has no test");
    }
}
