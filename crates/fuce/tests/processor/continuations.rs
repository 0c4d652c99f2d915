//! No continuation is lost or doubled: random programs on the chip against a simple interpreter of the thread model.

use std::fmt::Write;

use crate::reference::Machine;
use proptest::prelude::*;
use sidestep_fuce::assembler::assemble_text;
use sidestep_fuce::chip::{Chip, ChipConfig, Stop};
use sidestep_fuce::controller::ThreadId;
use sidestep_fuce::image::Image;

/// Words of a page's frame: eight threads of eight slots.
const SLOTS: usize = 8;
const MEMORY: usize = 1 << 16;

/// A node of a random data-flow graph.
#[derive(Debug, Clone)]
struct Node {
    /// Later nodes it continues to.
    successors: Vec<usize>,
    /// How often it self-continues before it does.
    repeats: u32,
}

/// Graphs whose edges lead from lower to higher numbers; a node has at most eight predecessors.
fn graph() -> impl Strategy<Value = Vec<Node>> {
    prop::collection::vec((prop::collection::vec(1..12usize, 0..5), 0..3u32), 1..40).prop_map(|draws| {
        let count = draws.len();
        let mut fan_in = vec![0; count];
        let mut nodes = Vec::new();
        for (index, (steps, repeats)) in draws.into_iter().enumerate() {
            let mut successors: Vec<usize> = steps.into_iter().map(|step| index + step).collect();
            successors.sort_unstable();
            successors.dedup();
            successors.retain(|next| {
                let fits = *next < count && fan_in[*next] < SLOTS;
                if fits {
                    fan_in[*next] += 1;
                }
                fits
            });
            nodes.push(Node { successors, repeats });
        }
        nodes
    })
}

/// The graph as a program. A node sums what it was given, and hands the sum on. A reporter of each node, which has to
/// lock it first (Figure 3), continues to one exclusive thread that adds up all sums.
fn program(graph: &[Node]) -> Image {
    let pages = graph.len().div_ceil(8);
    let mut given = vec![0; graph.len()];
    let mut nodes = String::new();
    // Nodes are threads 8 on, reporters follow on pages of their own, the exclusive thread comes last.
    let thread = |node: usize| 8 + node;
    let reporter = |node: usize| 8 + pages * 8 + node;
    let total = 8 + 2 * pages * 8;
    let mut senders: Vec<String> = Vec::new();
    for (index, node) in graph.iter().enumerate() {
        let mut code = format!(
            "node{index}:\nla r10, runs{index}\nldw r11, 0(r10)\naddi r11, r11, 1\nstw r11, 0(r10)\n"
        );
        write!(
            code,
            "li r12, {}\nbgt r11, r12, go{index}\nself\ngo{index}:\nli r4, {index}\n",
            node.repeats
        )
        .expect("a string");
        senders.push(code);
        for next in &node.successors {
            given[*next] += 1;
        }
    }
    let mut filled = vec![0; graph.len()];
    for (index, code) in senders.iter_mut().enumerate() {
        for slot in 0..given[index] {
            let word = index % 8 * SLOTS + slot;
            writeln!(code, "ldw r5, {}(r1)\nadd r4, r4, r5", word * 4).expect("a string");
        }
        writeln!(code, "li r6, {}\ncontd r6, r4, {}", reporter(index), index % 8).expect("a string");
        for next in &graph[index].successors {
            let slot = next % 8 * SLOTS + filled[*next];
            filled[*next] += 1;
            writeln!(code, "li r6, {}\ncontd r6, r4, {slot}", thread(*next)).expect("a string");
        }
        writeln!(
            code,
            "end\nreporter{index}:\nli r6, {total}\nlock r7, r6\nbnez r7, report{index}\nself"
        )
        .expect("a string");
        writeln!(
            code,
            "report{index}:\nldw r4, {}(r1)\ncontd r6, r4, 0\nend",
            index % 8 * 4
        )
        .expect("a string");
        nodes.push_str(code);
    }
    let mut source = String::from(".entry boot\nboot:\nla r9, frames\n");
    for _ in 0..2 * pages + 1 {
        writeln!(
            source,
            "create r4, r9, {}\naddi r9, r9, {}",
            8 * SLOTS,
            32 * SLOTS
        )
        .expect("a string");
    }
    writeln!(source, "li r4, {total}\nla r5, total\ninstall kernel, r4, r5, 1").expect("a string");
    for (index, &inputs) in given.iter().enumerate() {
        let fan_in = inputs.max(1);
        writeln!(
            source,
            "li r4, {}\nla r5, node{index}\ninstall kernel, r4, r5, {fan_in}",
            thread(index)
        )
        .expect("a string");
        writeln!(
            source,
            "li r4, {}\nla r5, reporter{index}\ninstall kernel, r4, r5, 1",
            reporter(index)
        )
        .expect("a string");
    }
    for index in (0..graph.len()).filter(|index| given[*index] == 0) {
        writeln!(source, "li r4, {}\ncont r4", thread(index)).expect("a string");
    }
    source.push_str("end\n");
    source.push_str(&nodes);
    source.push_str(
        "total:\nla r5, sum\nldw r6, 0(r1)\nldw r7, 0(r5)\nadd r7, r7, r6\nstw r7, 0(r5)\nstw r0, 0(r1)\n",
    );
    source.push_str("rearm\nunlock r2\nend\n.data\n.align 4\nsum: .word 0\n");
    for index in 0..graph.len() {
        writeln!(source, "runs{index}: .word 0").expect("a string");
    }
    writeln!(source, "frames: .space {}", (2 * pages + 1) * 32 * SLOTS).expect("a string");
    assemble_text("graph.s", &source)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .image
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_chip_does_what_the_thread_model_says(
        graph in graph(),
        units in prop::sample::select(vec![1usize, 2, 3, 4, 16]),
        queue in prop::sample::select(vec![1u16, 2, 5, 1024]),
        controller_cycles in 1..5u32,
        preload: bool,
        seed in any::<u64>(),
    ) {
        let image = program(&graph);
        let mut model = Machine::new(&image, MEMORY);
        let mut state = seed | 1;
        model.run(|ready| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % ready as u64) as usize
        });
        let config = ChipConfig {
            units, queue, controller_cycles, preload, memory_bytes: MEMORY as u32, ..ChipConfig::default()
        };
        let mut chip = Chip::new(&config, &image, Vec::new()).expect("a chip");
        prop_assert_eq!(chip.run(10_000_000), Stop::Idle);
        let data = image.data_address..image.end() as u32;
        for address in data.step_by(4) {
            prop_assert_eq!(chip.memory().word(address), Some(model.word(address)), "word {:#x}", address);
        }
        for (number, thread) in model.threads.iter().enumerate() {
            let id = ThreadId::from_register(number as u32, 1024).expect("a thread");
            let entry = chip.controller().memory().entry(id);
            prop_assert!(!entry.ready);
            prop_assert_eq!(
                (u32::from(entry.count), u32::from(entry.fan_in), entry.locked),
                (thread.count, thread.fan_in, thread.locked),
                "thread {}", id
            );
        }
        let controller = *chip.controller().counters();
        prop_assert_eq!(controller.activations, controller.dispatches);
        prop_assert_eq!(controller.faults, 0);
        // How often a reporter had to start over depends on the order; all else must have run equally often.
        let total = model.threads.last_chunk::<8>().expect("the last page")[0];
        prop_assert_eq!(total.runs, graph.len() as u64);
    }
}
