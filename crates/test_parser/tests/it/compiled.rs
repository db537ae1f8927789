//! Rust, Go, Java, C and C++.

use crate::{check, check_absent, check_skipped, tests};

#[test]
fn rust_tests_have_their_modules_in_their_names() {
    let text = "
        #[cfg(test)]
        mod tests {
            use super::*;
            /// Documented.
            #[test]
            fn adds() { assert_eq!(1 + 1, 2); assert!(true, \"x\"); }
            mod deep {
                #[tokio::test(flavor = \"multi_thread\")]
                async fn waits() { sleep().await; }
            }
            fn helper() { assert!(true); }
            proptest! {
                #![proptest_config(x)]
                #[test]
                fn holds(x in 0..9) { prop_assert!(x < 9); }
            }
        }
        #[rstest]
        #[case(1)]
        fn cases(#[case] n: u8) { panic!(); }
        pub fn test_like() {}";
    let expected = [
        "cases: active, 1",
        "tests > adds: active, 2",
        "tests > deep > waits: active, 0",
        "tests > holds: active, 1",
    ];
    check("src/lib.rs", text, &expected);
}

#[test]
fn rust_tests_that_do_not_run_are_skipped_or_absent() {
    let skipped = [
        "#[test] #[ignore] fn a() {}",
        "#[ignore = \"slow\"] #[test] fn a() {}",
        "#[cfg(any())] #[test] fn a() {}",
        "#[test] #[cfg( any ( ) )] fn a() {}",
        "#![cfg(any())] #[test] fn a() {}",
        "#[test] fn a() { return; }",
        "#[test] fn a() { return; assert!(x) }",
    ];
    check_skipped("a.rs", "a", &skipped);
    check_skipped("a.rs", "m > a", &["#[cfg(any())] mod m { #[test] fn a() {} }"]);
    let absent = [
        "// #[test] fn a() {}",
        "/* #[test]\nfn a() {} */",
        "fn f() -> &'static str { \"#[test] fn a() {}\" }",
        "fn a() {}",
        "fn outer() { #[test] fn a() {} }",
        "macro_rules! m { () => { #[test] fn a() {} } }",
    ];
    check_absent("a.rs", &absent);
}

#[test]
fn rust_code_that_cannot_run_asserts_nothing() {
    let text = "#[test] fn a() { if false { assert!(x); } assert!(y); while false { assert!(z) } }";
    check("a.rs", text, &["a: active, 1"]);
    check("a.rs", "#[test] fn a() { assert!(x); return; assert!(y); }", &["a: active, 1"]);
    check("a.rs", "#[test] fn a() { /* assert!(x); */ }", &["a: active, 0"]);
}

#[test]
fn two_tests_of_one_name_are_two_tests() {
    let text = "#[cfg(unix)] #[test] fn a() {} #[cfg(windows)] #[test] fn a() {}";
    check("a.rs", text, &["a: active, 0", "a (2): active, 0"]);
}

#[test]
fn layout_and_comments_do_not_change_a_test() {
    let one = tests("a.rs", "#[test]\nfn a() {\n    assert_eq!(f(1), 2); // two\n}");
    let other = tests("a.rs", "#[test] fn a() { assert_eq!( f( 1 ), 2 ); }");
    assert_eq!(one, other);
}

#[test]
fn go_tests_and_subtests() {
    let text = "package x\n
        func TestA(t *testing.T) {
            if got := f(); got != 1 { t.Errorf(\"%d\", got) }
            t.Run(\"sub one\", func(t *testing.T) { require.Equal(t, 1, f()) })
        }
        func Testable() {}
        func TestMain(m *testing.M) {}
        func (s *Suite) TestB() { s.Equal(1, 2); s.Require().NoError(err) }
        func FuzzC(f *testing.F) {}
        var _ = Describe(\"d\", func() { It(\"i\", func() { Expect(1).To(Equal(1)) }) })";
    let expected = [
        "FuzzC: active, 0",
        "Suite > TestB: active, 0",
        "TestA: active, 2",
        "TestA > sub one: active, 1",
        "d > i: active, 1",
    ];
    check("x_test.go", text, &expected);
}

#[test]
fn go_tests_that_do_not_run_are_skipped_or_absent() {
    let skipped = [
        "package x\nfunc TestA(t *testing.T) { t.Skip(\"later\") }",
        "package x\nfunc TestA(t *testing.T) { t.SkipNow(); f() }",
        "package x\nfunc TestA(t *testing.T) { return }",
        "//go:build ignore\n\npackage x\nfunc TestA(t *testing.T) { f() }",
    ];
    check_skipped("a_test.go", "TestA", &skipped);
    check_skipped("a.go", "TestA", &["package x\nfunc TestA(t *testing.T) { f() }"]);
    let pending = "package x\nvar _ = Describe(\"d\", func() { PIt(\"i\", func() { f() }) })";
    check_skipped("a_test.go", "d > i", &[pending]);
    let absent =
        ["package x\n// func TestA(t *testing.T) {}", "package x\nfunc testA(t *testing.T) {}"];
    check_absent("a_test.go", &absent);
    let dead = "package x\nfunc TestA(t *testing.T) { if false { t.Fatal() } }";
    check("a_test.go", dead, &["TestA: active, 0"]);
}

#[test]
fn java_tests_have_their_classes_in_their_names() {
    let text = "package x;
        class ATest {
            @Test void one() { assertEquals(1, f()); assertThat(x).isEqualTo(2); }
            @ParameterizedTest @ValueSource(ints = {1}) void two(int x) { }
            @Nested class Inner { @org.junit.jupiter.api.Test public void three() throws E { verify(m).call(); } }
            void helper() {}
        }
        class Old extends TestCase { public void testFour() { fail(); } void testing() {} }";
    let expected = [
        "ATest > Inner > three: active, 1",
        "ATest > one: active, 2",
        "ATest > two: active, 0",
        "Old > testFour: active, 1",
        "Old > testing: active, 0",
    ];
    check("src/test/java/ATest.java", text, &expected);
}

#[test]
fn java_tests_that_do_not_run_are_skipped_or_absent() {
    let skipped = [
        "class A { @Disabled @Test void a() {} }",
        "@Disabled(\"x\") class A { @Test void a() {} }",
        "class A { @Test @Ignore public void a() {} }",
        "class A { @Test(enabled = false) public void a() {} }",
        "class A { @Test void a() { return; } }",
        "class A { @Test void a() { Assumptions.assumeTrue(false); f(); } }",
    ];
    check_skipped("A.java", "A > a", &skipped);
    check_absent("A.java", &["class A { /* @Test void a() {} */ }", "class A { void a() {} }"]);
    let dead = "class A { @Test void a() { if (false) { assertTrue(x); } } }";
    check("A.java", dead, &["A > a: active, 0"]);
}

#[test]
fn cpp_tests_of_the_common_libraries() {
    let text = "
        TEST(Suite, Name) { EXPECT_EQ(1, f()); ASSERT_TRUE(x); }
        TEST_F(Fixture, Other) { }
        TEST_CASE(\"words here\", \"[tag]\") {
            REQUIRE(x == 1);
            SECTION(\"in\") { CHECK(y); }
        }
        BOOST_AUTO_TEST_CASE(boost) { BOOST_CHECK(x); }
        namespace n { void test_plain() { assert(x); } void other() { } }";
    let expected = [
        "Fixture > Other: active, 0",
        "Suite > Name: active, 2",
        "boost: active, 1",
        "test_plain: active, 1",
        "words here: active, 2",
        "words here > in: active, 1",
    ];
    check("a_test.cc", text, &expected);
}

#[test]
fn cpp_tests_that_do_not_run_are_skipped_or_absent() {
    let skipped = [
        "TEST(S, DISABLED_N) { f(); }",
        "TEST(DISABLED_S, N) { f(); }",
        "TEST(S, N) { GTEST_SKIP() << \"x\"; f(); }",
        "TEST(S, N) { return; }",
        "IGNORE_TEST(S, N) { f(); }",
    ];
    check_skipped("a.cpp", "S > N", &skipped);
    check_skipped("a.cpp", "w", &["TEST_CASE(\"w\", \"[.]\") { REQUIRE(x); }"]);
    let absent =
        ["// TEST(S, N) { }", "#if 0\nTEST(S, N) { f(); }\n#endif\n", "int f() { return 1; }"];
    check_absent("a.cpp", &absent);
    let other = "#if 0\nTEST(S, A) { f(); }\n#else\nTEST(S, B) { if (false) { EXPECT_TRUE(x); } }\n#endif\n";
    check("a.cpp", other, &["S > B: active, 0"]);
}

#[test]
fn c_tests_of_the_common_libraries() {
    let text = "
        START_TEST(check_a) { ck_assert(1); } END_TEST
        Test(suite, name) { cr_assert(x); }
        static void test_b(void **state) { assert_true(1); }
        TEST(group, name) { TEST_ASSERT_EQUAL(1, 2); }
        static int helper(void) { return 1; }";
    let expected = [
        "check_a: active, 1",
        "group > name: active, 1",
        "suite > name: active, 1",
        "test_b: active, 1",
    ];
    check("t.c", text, &expected);
    check_absent("t.c", &["/* void test_a(void) { } */", "#if 0\nvoid test_a(void) { }\n#endif\n"]);
    check_skipped("t.c", "test_a", &["void test_a(void) { return; }"]);
}
