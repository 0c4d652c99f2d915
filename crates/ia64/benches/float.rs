//! The register arithmetic's cost per operation beside the host's fused multiply-add on the same operands.

use criterion::{BatchSize, Criterion};
use sidestep_ia64::float::{
    Completer, Control, FloatRegister, MultiplyAdd, StatusField, StatusRegister, multiply, multiply_add,
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

fn multiply_adds(criterion: &mut Criterion) {
    let (a, b, c) = (doubles(1), doubles(2), doubles(3));
    let (x, y, z) = (registers(&a), registers(&b), registers(&c));
    let mut group = criterion.benchmark_group("float, 1024 operations");
    for (name, completer) in [
        ("fma.s", Completer::Single),
        ("fma.d", Completer::Double),
        ("fma (extended)", Completer::Dynamic),
    ] {
        let control = StatusRegister::LINUX.control(StatusField::S0, completer);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for index in 0..COUNT {
                    let result = multiply_add(
                        x[index],
                        y[index],
                        z[index],
                        MultiplyAdd::Add,
                        black_box(&control),
                    );
                    let _ = black_box(result);
                }
            })
        });
    }
    let control = StatusRegister::LINUX.control(StatusField::S0, Completer::Double);
    group.bench_function("fmpy.d", |bencher| {
        bencher.iter(|| {
            for index in 0..COUNT {
                let _ = black_box(multiply(
                    x[index],
                    y[index],
                    MultiplyAdd::Add,
                    black_box(&control),
                ));
            }
        })
    });
    dependent_chain(&mut group, &control, &x, &y);
    group.bench_function("host f64::mul_add", |bencher| {
        bencher.iter(|| {
            for index in 0..COUNT {
                black_box(a[index].mul_add(b[index], c[index]));
            }
        })
    });
    group.finish();
}

/// A dot product: each operation waits for the one before, as an accumulation does.
fn dependent_chain(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    control: &Control,
    x: &[FloatRegister],
    y: &[FloatRegister],
) {
    group.bench_function("fma.d, dependent", |bencher| {
        bencher.iter_batched(
            || FloatRegister::ONE,
            |start| {
                x.iter().zip(y).fold(start, |sum, (x, y)| {
                    multiply_add(*x, *y, sum, MultiplyAdd::Add, control).map_or(sum, |rounded| rounded.value)
                })
            },
            BatchSize::SmallInput,
        )
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    multiply_adds(&mut criterion);
    criterion.final_summary();
}
