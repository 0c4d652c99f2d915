//! `sidestep schedule --pipeline` on compilers' loops: the linked program prints what it did, in fewer cycles, and its
//! groups keep the rules.

use std::fs;
use std::process::{Command, Output};

use tests_need::{ASSEMBLER, cross_compiler};

fn sidestep(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(arguments)
        .output();
    command.expect("the command starts")
}

/// Loops as compilers make them: with one store and two, sums, integer multiplication in the floating-point unit,
/// predicates, a local array in a function that calls.
const LOOPS: &str = "
void add(long *restrict to, const long *restrict from, long count, long more) {
    for (long place = 0; place < count; place++) to[place] = from[place] + more;
}
void scaled(double *restrict to, const double *restrict from, double by, long count) {
    for (long place = 0; place < count; place++) to[place] += by * from[place];
}
double product(const double *one, const double *other, long count) {
    double sum = 0;
    for (long place = 0; place < count; place++) sum += one[place] * other[place];
    return sum;
}
long sum(const int *of, long count) {
    long sum = 0;
    for (long place = 0; place < count; place++) sum += of[place];
    return sum;
}
void multiply(int *all, long count, int by) {
    for (long place = 0; place < count; place++) all[place] *= by;
}
long largest(const long *of, long count) {
    long most = of[0];
    for (long place = 0; place < count; place++) if (of[place] > most) most = of[place];
    return most;
}
void count(const unsigned char *of, long length, int *counts) {
    for (long place = 0; place < length; place++) counts[of[place]]++;
}
void take(long *);
void squares(long by) {
    long all[64];
    for (long place = 0; place < 64; place++) all[place] = place * by;
    take(all);
}
";

const MAIN: &str = "
#include <stdio.h>
void add(long *, const long *, long, long);
void scaled(double *, const double *, double, long);
double product(const double *, const double *, long);
long sum(const int *, long);
void multiply(int *, long, int);
long largest(const long *, long);
void count(const unsigned char *, long, int *);
void squares(long);
static long total;
void take(long *all) { for (int place = 0; place < 64; place++) total += all[place] * place; }
static long a[300], b[300];
static double x[300], y[300];
static int w[300], counts[256];
static unsigned char bytes[300];
int main(void) {
    for (int place = 0; place < 300; place++) {
        a[place] = place * 7919 % 513; b[place] = place * 31; x[place] = place * .5; y[place] = place * .25;
        w[place] = place * 977; bytes[place] = place * 131;
    }
    for (long length = 0; length <= 300; length += length < 9 ? 1 : 97) {
        add(a, b, length, length);
        scaled(y, x, 1.25, length);
        double of = product(x, y, length);
        long all = sum(w, length);
        multiply(w, length, 3);
        count(bytes, length, counts);
        squares(length);
        long hash = total;
        for (int place = 0; place < 300; place++) hash = hash * 31 + a[place] + w[place] + (long)y[place];
        for (int place = 0; place < 256; place++) hash = hash * 33 + counts[place];
        printf(\"%ld %g %ld %ld %ld\\n\", length, of, all, largest(a, length), hash);
    }
    return 0;
}
";

#[test]
fn a_program_with_pipelined_loops_prints_the_same() {
    let (Some(_), Some(compiler)) = (ASSEMBLER.find(), cross_compiler()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("loops.c"), LOOPS).expect("a temporary file can be written");
    fs::write(at("main.c"), MAIN).expect("a temporary file can be written");
    let built = |arguments: &[&str]| {
        let status = Command::new(compiler.gcc()).args(arguments).status();
        assert!(status.expect("the compiler starts").success());
    };
    built(&["-O2", "-S", "-o", &at("loops.s"), &at("loops.c")]);
    let options = ["--pipeline", "--time-limit", "0", "-o", &at("out.s")];
    let output = sidestep(&[&["schedule", &at("loops.s")], &options[..]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.matches("optimal\n").count() >= 4, "{table}");
    let kernels = fs::read_to_string(at("out.s")).expect("the result was written");
    assert!(kernels.matches("br.ctop").count() >= 5, "{kernels}");
    built(&[
        "-O1",
        "-static",
        "-o",
        &at("before"),
        &at("main.c"),
        &at("loops.s"),
    ]);
    built(&["-O1", "-static", "-o", &at("after"), &at("main.c"), &at("out.s")]);
    let before = sidestep(&["exec", &at("before")]);
    let after = sidestep(&["exec", "--check-groups=error", &at("after")]);
    assert_eq!(
        after.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&after.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&after.stdout),
        String::from_utf8_lossy(&before.stdout)
    );
}
