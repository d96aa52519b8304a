//! `docs/fault-scenarios.md` names every scenario of the consumer protocol and all of its tests, and no test that does not exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn names(text: &str, before: &str) -> BTreeSet<String> {
    let after = text.split(before).skip(1);
    let name = |rest: &str| rest.chars().take_while(|&c| c.is_ascii_alphanumeric() || c == '_').collect::<String>();
    after.map(name).filter(|name| name.starts_with("kip848_")).collect()
}

#[test]
fn the_table_of_scenarios_is_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/fault-scenarios.md")).unwrap();
    let tests = names(include_str!("scenarios.rs"), "\nfn ");
    assert_eq!(names(&page, "`"), tests);
    for number in 1..=25 {
        let row = page.lines().find(|line| line.starts_with(&format!("| N{number} |")));
        let row = row.unwrap_or_else(|| panic!("scenario N{number} has no row"));
        assert!(names(row, "`").iter().all(|name| name.starts_with(&format!("kip848_{number:02}_"))), "{row}");
    }
}
