use super::{Expression, ExpressionError};
use proptest::prelude::*;

fn posix(text: &str, name: &str) -> bool {
    Expression::posix(text).expect(text).matches(name)
}

fn re2(text: &str, name: &str) -> bool {
    Expression::re2(text).expect(text).matches(name)
}

#[test]
fn posix_is_found_anywhere_and_re2_matches_the_whole() {
    assert!(posix("^re-", "re-a0"));
    assert!(posix("b", "abc"));
    assert!(!re2("b", "abc"));
    assert!(re2("a|abc", "abc"));
    assert!(!re2("a|b", "ab"));
}

#[test]
fn posix_brackets_are_those_of_the_c_library() {
    assert!(posix("^re-a[[:digit:]]$", "re-a7"));
    assert!(!posix("^re-a[[:digit:]]$", "re-ad"));
    assert!(posix("^[]a]+$", "]a]"));
    assert!(posix(r"^[\d]+$", r"d\d"), "a backslash is a character");
    assert!(!posix(r"^[\d]+$", "7"));
    assert!(posix("^[[.a.]-c[=x=]]+$", "abcx"));
    assert!(posix("^[a&&b~~[]+$", "a&b~["));
    assert!(posix("^[^[:alnum:]._]+$", "--"));
    assert!(posix("^[a-c-]+$", "a-c"));
    for wrong in ["^[b-a]", "^[a", "^[]", "^[[:nothing:]]", "^[[:alpha:", "^[[.ab.]]", "^[a-c-e]", "^[a-[:digit:]]"] {
        assert!(Expression::posix(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn posix_operators_are_those_of_the_c_library() {
    assert!(posix("^(a|b|)*$", "abba"));
    assert!(posix("^()x", "x"));
    assert!(posix("^a**+?$", "aaa"));
    assert!(posix("^a{2}?$", ""), "repeated at most once, and not reluctantly");
    assert!(!posix("^a{2}?$", "a"));
    assert!(posix("^a{,2}$", "aa") && !posix("^a{,2}$", "aaa"));
    assert!(posix("^a{,}$", "aaaa"));
    assert!(posix(r"^a}\{\)$", "a}{)"));
    assert!(posix("^a)+", "a))"));
    assert!(posix(r"\<re\>", "x-re.b") && !posix(r"\<re\>", "x_re.b"));
    assert!(posix(r"^\w+\W\w+$", "a_1-b") && !posix(r"^\w+\W\w+$", "a_1b"));
    assert!(posix(r"^\d", "d"), "a letter without a meaning");
    for wrong in ["^*", "^{2}", "^a|*", "^(*a)", "^(a", "^a{", "^a{b}", "^a{2,1}", "^a{99999}", r"^a\", "^a{2,1b}"] {
        assert!(Expression::posix(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_applications_own_is_re2_found_anywhere() {
    let found = |text: &str, name: &str| Expression::search(text).expect(text).matches(name);
    assert!(found("^join-", "join-orders-1") && !found("^join-", "rejoin-1"));
    assert!(found(r"-\d{2}|x$", "a-17-b") && !found(r"-\d{2}|x$", "xa-1"));
    assert!(Expression::search("a)|(b").is_err() && Expression::search("(?=a)").is_err());
    // In a request it would be too large.
    let many: Vec<String> = (0..5_000).map(|number| format!("group-{number:05}")).collect();
    assert!(Expression::re2(&many.join("|")).is_err());
    assert!(found(&many.join("|"), "group-04999") && !found(&many.join("|"), "group-05000"));
}

#[test]
fn back_references_are_refused_by_name() {
    let error = Expression::posix(r"^(a)\1").unwrap_err();
    assert_eq!(error, ExpressionError("a back-reference, which is not supported, at character 5".to_owned()));
}

#[test]
fn re2_is_read_as_brokers_read_it() {
    assert!(re2("orders|payments-.*", "payments-eu"));
    assert!(re2("(?i)ORD[A-F]rs", "ordErs"));
    assert!(!re2("(?i)[^A]", "a"));
    assert!(re2("a(?)b", "ab") && !re2("(?)", "a"));
    assert!(Expression::re2("(?-)a").is_err() && Expression::re2("(?)*").is_err());
    assert!(re2("(?ii)A(?s-i:b)", "ab") && !re2("(?i-i:A)", "a") && re2("(?i)(?-ii)A", "A"));
    assert!(re2("(?P<region>eu|us)-(?<kind>x)(?:y)", "eu-xy"));
    assert!(re2(r"\Qa.b\E.", "a.bc") && !re2(r"\Qa.b\E.", "axbc"));
    assert!(re2(r"a{,2}", "a{,2}") && re2("a{x", "a{x"));
    assert!(re2("[[a]+", "[a["));
    assert!(re2("[a&&b~~+--]+", "a&b~,"));
    assert!(re2("[[:word:][:^alpha:]]+", "a_1-"));
    assert!(re2(r"[\d\pL]+\p{Pd}\P{L}\p{^Lu}", "a1-0x"));
    assert!(re2(r"\x61\x{62}\143\_", "abc_"));
    assert!(re2(r"\<\>", "<>"));
    assert!(re2("^a$", "a") && re2(r"\Aa\z", "a"));
    assert!(re2("a+?b??c{1,2}?", "aacc"));
    assert!(!re2("a.b", "a\nb") && re2("(?s)a.b", "a\nb"));
    for wrong in [
        "(", ")", "a**b(", "*", "(?x)a", "(?=a)", "(?!a)", r"\1", r"\E", r"\", "[a", "[b-a]", "a{1001}", r"\p", "(?i-)",
    ] {
        assert!(Expression::re2(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn counts_beyond_the_longest_name_are_cut_to_it() {
    let longest = "a".repeat(249);
    assert!(posix("^a{32767}$", &"a".repeat(300)) && !posix("^a{32767}$", &longest));
    assert!(posix("^a{3,32767}$", &longest));
    assert!(re2("a{1,1000}", &longest));
}

#[test]
fn what_would_be_too_large_is_refused() {
    assert!(Expression::re2("((a{200}){200}){200}").is_err());
    assert!(Expression::posix("^((a{200}){200}){200}").is_err());
    assert!(Expression::re2(&"a".repeat(17 << 10)).is_err());
    for text in ["(".repeat(100_000), "a".to_owned() + &"{2}".repeat(100_000), "(".repeat(199) + &")".repeat(199)] {
        let _ = Expression::posix(&text);
        let _ = Expression::re2(&text);
    }
    let names: Vec<String> = (0..20_000).map(|number| format!("a-topic-of-many-{number}")).collect();
    assert!(posix(&format!("^({})$", names.join("|")), "a-topic-of-many-19999"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Every text, of any sender, is accepted or refused by this module, never by an engine that reads another syntax.
    #[test]
    fn anything_is_taken_or_refused(text in r"[\[\]\(\)\{\}\\^$|*+?.:=,<>a-c0-3QEpPLdwsx&~\-é]{0,24}", name in "[a-c0-3._-]{0,8}") {
        for compile in [Expression::posix, Expression::re2] {
            match compile(&text) {
                Ok(expression) => {
                    let _ = expression.matches(&name);
                }
                Err(ExpressionError(reason)) => prop_assert!(!reason.contains("regex parse error"), "{text}: {reason}"),
            }
        }
    }
}
