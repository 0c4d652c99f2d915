use sidestep_ia64::encoding::{Bundle, Instruction, Operation, Target};
use sidestep_itanium2::Parameters;
use sidestep_schedule::{Block, Options, optimize, verify};
use std::time::{Duration, Instant};
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let limit: u64 = std::env::args().nth(2).map_or(20, |a| a.parse().unwrap());
    let show = std::env::args().nth(3).is_some();
    // raw text section, made by objcopy -O binary
    let data = std::fs::read(path).unwrap();
    let parameters = Parameters::default();
    let bundles: Vec<Bundle> = data
        .chunks_exact(16)
        .map(|c| Bundle::from_bytes(c.try_into().unwrap()))
        .collect();
    let mut leaders = vec![false; bundles.len() + 1];
    for (i, b) in bundles.iter().enumerate() {
        for d in b.decode() {
            let Ok(ins) = d.instruction else { continue };
            let branch = matches!(
                ins.operation,
                Operation::Branch { .. } | Operation::Call { .. } | Operation::Return
            );
            if branch {
                leaders[i + 1] = true;
                if let Operation::Branch {
                    target: Target::Relative,
                    ..
                } = ins.operation
                {
                    let t = i as i64 + ins.immediate / 16;
                    if t >= 0 && (t as usize) < bundles.len() {
                        leaders[t as usize] = true;
                    }
                }
            }
        }
    }
    let mut start = 0;
    let (mut sb, mut sa, mut sl) = (0, 0, 0);
    for end in 1..=bundles.len() {
        if end < bundles.len() && !leaders[end] {
            continue;
        }
        let part = &bundles[start..end];
        let ins: Vec<Instruction> = part
            .iter()
            .flat_map(|b| b.decode().filter_map(|d| d.instruction.ok()).collect::<Vec<_>>())
            .collect();
        match Block::new(&ins, &parameters) {
            Ok(block) if !block.items.is_empty() => {
                let before = verify::cycles(part, &parameters);
                let t = Instant::now();
                let o = optimize(
                    &block,
                    &Options {
                        parameters: parameters.clone(),
                        time_limit: Duration::from_secs(limit),
                    },
                );
                println!(
                    "{:5x} n={:3} before={before:3} list={:3}/{:3} cycles={:3} model={:3} bound={:3} arch={:3} {} {:.2}s",
                    start * 16,
                    block.items.len(),
                    o.listed,
                    o.listed,
                    o.cycles,
                    o.modelled,
                    o.bound,
                    o.architectural,
                    if o.is_optimal() { "optimal" } else { "GAP" },
                    t.elapsed().as_secs_f32()
                );
                let graph = sidestep_schedule::Graph::new(
                    &block,
                    sidestep_schedule::graph::Latencies::Of(&parameters),
                );
                let place = verify::placement(part, &parameters);
                for b in graph.broken(&place) {
                    println!("   BROKEN {b}");
                }
                if show {
                    for (i, it) in block.items.iter().enumerate() {
                        println!(
                            "    {i} @{} {} {:?}",
                            place[i],
                            it.instruction.form().mnemonic,
                            it.instruction.operation
                        );
                    }
                }
                sb += before;
                sa += o.modelled;
                sl += o.listed;
                if show {
                    let bs: Vec<_> = o.bundles.iter().map(|p| p.encode(&block.items)).collect();
                    for g in verify::timeline(&bs, &parameters) {
                        println!(
                            "   {:3} {:?} {}",
                            g.cycle,
                            g.bubbles,
                            g.instructions
                                .iter()
                                .map(|i| format!("{:x}.{}", i.ip, i.slot))
                                .collect::<Vec<_>>()
                                .join(" ")
                        );
                    }
                    for p in &o.bundles {
                        print!("  t={:02x}{} ", p.template, if p.stop { ";;" } else { "  " });
                        for s in p.slots {
                            if let sidestep_schedule::bundle::Content::Item(i) = s {
                                print!(
                                    " {i}@{}:{:?}",
                                    o.schedule.cycles[i],
                                    block.items[i].instruction.form().mnemonic
                                );
                            } else {
                                print!(" -");
                            }
                        }
                        println!();
                    }
                }
            }
            Ok(_) => {}
            Err((i, r)) => println!("{:5x} refused at {i}: {r}", start * 16),
        }
        start = end;
    }
    println!("sum before={sb} list={sl} after={sa}");
}
