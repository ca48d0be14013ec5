//! How quantities are read and printed.

use super::*;

#[test]
fn what_kubernetes_takes_for_canonical_is_printed_as_typed() {
    let texts = [
        "1.125",
        "1.500",
        "2.250",
        "12.500m",
        "1.125k",
        "+1",
        "01",
        "001Gi",
        "1E3",
        "1E-3",
        "1e3",
        "8192M",
        "5.",
        "1",
        "100m",
        "1Gi",
        "1536Mi",
        "500M",
        "0",
        "-3",
        "999999999999999999",
        "7Ti",
    ];
    for text in texts {
        assert_eq!(print(text), text);
    }
}

#[test]
fn everything_else_is_printed_in_canonical_form() {
    let cases = [
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("1.0", "1"),
        ("1.1000", "1100m"),
        ("0.250", "250m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1000M", "1G"),
        ("5E2", "500"),
        ("15e2", "1500"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.1Gi", "107374182400m"),
        ("0m", "0"),
        ("0Gi", "0"),
        // Beyond the contract's rows.
        ("-0", "0"),
        ("0.0", "0"),
        (".5", "500m"),
        ("-1000m", "-1"),
        ("0.5Ki", "512"),
        ("8Ki", "8Ki"),
        ("8192Ki", "8Mi"),
        ("0100Ti", "100Ti"),
        ("1Ki", "1Ki"),
        ("1.5Ki", "1536"),
        ("1000000000000000000000", "1"),
        ("5000E", "5"),
        ("-1000E", "-1"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("1e22", "10e21"),
        ("0.0000000001", "1n"),
        ("1.0000000001", "1000000001n"),
        ("1e-12", "1e-9"),
        ("8Ei", "9223372036854775807"),
        ("9.3Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
        ("4Ei", "4Ei"),
        ("347391210545085088699999999.18007213000Gi", "9223372036854775807"),
        ("m", "0"),
        ("-", "0"),
        ("+.Ki", "0"),
        ("e3", "0"),
        ("123456789012345678901", "123456789012345678901"),
    ];
    for (typed, printed) in cases {
        assert_eq!(print(typed), printed, "{typed}");
    }
}

#[test]
fn equal_amounts_have_the_same_value_however_they_are_typed() {
    let same = [
        ("1", "1000m"),
        ("1.5", "1.500"),
        ("0.15", "150m"),
        ("1Gi", "1024Mi"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1k"),
        ("0", "-0Gi"),
        ("1Ki", "1024"),
        ("+01", "1"),
    ];
    for (one, other) in same {
        let parse = |text| Quantity::parse(text).unwrap();
        assert!(parse(one).same_value(&parse(other)), "{one} = {other}");
    }
    let different = [("1", "1001m"), ("1", "-1"), ("1k", "1Ki"), ("0", "1n")];
    for (one, other) in different {
        let parse = |text| Quantity::parse(text).unwrap();
        assert!(!parse(one).same_value(&parse(other)), "{one} ≠ {other}");
    }
}

#[test]
fn resources_are_rounded_up_to_milli() {
    let cases = [
        ("1n", "1m"),
        ("100u", "1m"),
        ("1.0001", "1001m"),
        ("-1.0001", "-1001m"),
        ("999.9999", "1k"),
        ("1500u", "2m"),
        ("250m", "250m"),
        ("1Gi", "1Gi"),
        ("0", "0"),
    ];
    for (typed, rounded) in cases {
        let quantity = Quantity::parse(typed).unwrap().rounded_up_to_milli();
        assert_eq!(quantity.to_string(), rounded, "{typed}");
    }
}

#[test]
fn what_is_no_quantity_is_refused_and_printed_as_it_is() {
    let texts = ["", "x", "1x", "1 Gi", "1ki", "1e", "1e1.5", "--1", "1.2.3", "1Gi ", "½"];
    for text in texts {
        assert_eq!(
            Quantity::parse(text).unwrap_err(),
            QuantityError::Malformed(text.into()),
            "{text:?}"
        );
        assert_eq!(print(text), text);
    }
    let long = "9".repeat(40);
    assert_eq!(Quantity::parse(&long).unwrap_err(), QuantityError::TooLong(long.clone()));
    assert_eq!(print(&long), long);
}

proptest::proptest! {
    /// No amount that Kubernetes has a suffix for is changed, and the canonical form is stable.
    #[test]
    fn printing_keeps_the_value(
        sign in "[+-]?",
        whole in "[0-9]{1,12}",
        fraction in "(\\.[0-9]{0,8})?",
        suffix in "(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|e-?[0-9]|E[0-9])?",
    ) {
        let typed = format!("{sign}{whole}{fraction}{suffix}");
        let quantity = Quantity::parse(&typed).unwrap();
        let printed = print(&typed);
        let (_, _, exponent) = quantity.value();
        proptest::prop_assume!(exponent < 21 || quantity.format == Format::Exponent);
        proptest::prop_assert!(quantity.same_value(&Quantity::parse(&printed).unwrap()));
        let canonical = quantity.to_string();
        proptest::prop_assert_eq!(Quantity::parse(&canonical).unwrap().to_string(), canonical);
    }
}
