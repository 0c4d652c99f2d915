//! The register arithmetic's cost per operation, computed with integers and on the host's floating-point unit, beside
//! the host's own fused multiply-add on the same operands.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use sidestep_ia64::float::compare::compare;
use sidestep_ia64::float::convert::to_integer;
use sidestep_ia64::float::reciprocal::reciprocal;
use sidestep_ia64::float::{
    Completer, Control, Flags, FloatRegister, FloatRelation, MultiplyAdd, Signedness, StatusField,
    StatusRegister, add, multiply, multiply_add,
};
use std::hint::black_box;

const COUNT: usize = 1024;

/// Doubles between 1/16 and 16 of either sign, from a fixed linear congruential sequence.
fn doubles(seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state
    };
    (0..COUNT)
        .map(|_| f64::from_bits(next() >> 12 | (0x3FB + (next() >> 61)) << 52 | next() >> 63 << 63))
        .collect()
}

fn registers(values: &[f64]) -> Vec<FloatRegister> {
    values
        .iter()
        .map(|value| FloatRegister::from_double(value.to_bits()))
        .collect()
}

/// The control of a completer: with integers only (the widest range excludes the host), or with the host's unit, as
/// after a first inexact result.
fn control(completer: Completer, host: bool) -> Control {
    let status = if host { StatusField::S0 } else { StatusField::S1 };
    let mut fpsr = StatusRegister::LINUX;
    fpsr.raise(status, Flags::INEXACT);
    fpsr.control(status, completer)
}

/// Measures an operation on each of the operands.
fn measure<T>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, mut operation: impl FnMut(usize) -> T) {
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            for index in 0..COUNT {
                let _ = black_box(operation(index));
            }
        })
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let (a, b, c) = (doubles(1), doubles(2), doubles(3));
    let (x, y, z) = (registers(&a), registers(&b), registers(&c));
    let mut group = criterion.benchmark_group("float, 1024 operations");
    measure(&mut group, "host f64::mul_add", |index| {
        a[index].mul_add(b[index], c[index])
    });
    for (name, host) in [("integers", false), ("host", true)] {
        let double = control(Completer::Double, host);
        measure(&mut group, &format!("fma.d by {name}"), |index| {
            multiply_add(x[index], y[index], z[index], MultiplyAdd::Add, black_box(&double))
        });
        measure(&mut group, &format!("fadd.d by {name}"), |index| {
            add(x[index], z[index], MultiplyAdd::Add, black_box(&double))
        });
        measure(&mut group, &format!("fmpy.d by {name}"), |index| {
            multiply(x[index], y[index], MultiplyAdd::Add, black_box(&double))
        });
        let mut sum = FloatRegister::ONE;
        measure(&mut group, &format!("fma.d by {name}, dependent"), |index| {
            sum = multiply_add(x[index], y[index], sum, MultiplyAdd::Add, &double)
                .map_or(sum, |rounded| rounded.value);
        });
    }
    let extended = control(Completer::Dynamic, false);
    measure(&mut group, "fma (extended)", |index| {
        multiply_add(
            x[index],
            y[index],
            z[index],
            MultiplyAdd::Add,
            black_box(&extended),
        )
    });
    measure(&mut group, "frcpa", |index| {
        reciprocal(x[index], y[index], black_box(&extended))
    });
    measure(&mut group, "fcmp.lt", |index| {
        compare(x[index], y[index], FloatRelation::Less, black_box(&extended))
    });
    measure(&mut group, "fcvt.fx", |index| {
        to_integer(x[index], Signedness::Signed, black_box(&extended))
    });
    group.finish();
    criterion.final_summary();
}
