//! The thread model in its simplest form: no time, no units, no queue. A thread runs from its first instruction to its
//! end as one step; which of the ready threads runs next is drawn. Knows what the generated programs need.

use sidestep_fuce::image::Image;
use sidestep_fuce::instruction::Instruction;
use sidestep_fuce::operation::Operation;

/// What a thread is to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thread {
    /// Instruction number of its beginning.
    pub code: u32,
    /// Continuations it still awaits.
    pub count: u32,
    /// What the counter is set back to.
    pub fan_in: u32,
    /// Whether somebody has locked it.
    pub locked: bool,
    /// How often it has run.
    pub runs: u64,
    installed: bool,
}

/// The machine: threads, memory, and the ready threads in no order.
pub struct Machine {
    /// Threads by number.
    pub threads: Vec<Thread>,
    memory: Vec<u8>,
    frames: Vec<u32>,
    text: Vec<Instruction>,
    ready: Vec<usize>,
}

impl Machine {
    /// A machine with the image loaded and its boot thread ready.
    pub fn new(image: &Image, memory_bytes: usize) -> Machine {
        let mut memory = vec![0; memory_bytes];
        let start = image.data_address as usize;
        memory[start..start + image.data.len()].copy_from_slice(&image.data);
        let mut threads = vec![Thread::default(); 8];
        threads[0] = Thread {
            code: image.entry / 4,
            fan_in: 1,
            installed: true,
            ..Thread::default()
        };
        let text = image
            .text
            .iter()
            .map(|word| Instruction::decode(*word).expect("an instruction"))
            .collect();
        Machine {
            threads,
            memory,
            frames: vec![0],
            text,
            ready: vec![0],
        }
    }

    /// The word at an address.
    pub fn word(&self, address: u32) -> u32 {
        let at = address as usize;
        u32::from_le_bytes(self.memory[at..at + 4].try_into().expect("four bytes"))
    }

    fn set_word(&mut self, address: u32, value: u32) {
        let at = address as usize;
        self.memory[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Runs until no thread is ready; `draw` chooses among so many.
    pub fn run(&mut self, mut draw: impl FnMut(usize) -> usize) {
        while !self.ready.is_empty() {
            let thread = self.ready.swap_remove(draw(self.ready.len()));
            self.thread(thread);
        }
    }

    fn continue_to(&mut self, target: u32) {
        let thread = &mut self.threads[target as usize];
        assert!(
            thread.installed && thread.count > 0,
            "the programs continue only to threads that await it"
        );
        thread.count -= 1;
        if thread.count == 0 {
            self.ready.push(target as usize);
        }
    }

    fn thread(&mut self, number: usize) {
        self.threads[number].runs += 1;
        let mut registers = [0u32; 32];
        registers[1] = self.frames[number / 8];
        registers[2] = number as u32;
        let mut pc = self.threads[number].code;
        loop {
            let instruction = self.text[pc as usize];
            let (a, b, c) = (
                instruction.a as usize,
                registers[instruction.b as usize],
                instruction.c as usize,
            );
            let immediate = instruction.number as u32;
            pc += 1;
            let value = match instruction.operation {
                Operation::Add => b.wrapping_add(registers[c]),
                Operation::Mul => b.wrapping_mul(registers[c]),
                Operation::Addi => b.wrapping_add(immediate),
                Operation::Ori => b | immediate,
                Operation::Lui => immediate << 13,
                Operation::Ldw => self.word(b.wrapping_add(immediate)),
                Operation::Lock => {
                    let thread = &mut self.threads[b as usize];
                    u32::from(!std::mem::replace(&mut thread.locked, true))
                }
                Operation::Create => {
                    self.frames.push(b);
                    self.threads.extend([Thread::default(); 8]);
                    (self.frames.len() as u32 - 1) * 8
                }
                Operation::Stw => {
                    self.set_word(b.wrapping_add(immediate), registers[a]);
                    continue;
                }
                Operation::Blt | Operation::Bne => {
                    let taken = match instruction.operation {
                        Operation::Blt => (registers[a] as i32) < b as i32,
                        _ => registers[a] != b,
                    };
                    if taken {
                        pc = (pc - 1).wrapping_add(immediate);
                    }
                    continue;
                }
                Operation::Install => {
                    let fan_in = immediate;
                    let code = registers[c] / 4;
                    let thread = Thread {
                        code,
                        count: fan_in,
                        fan_in,
                        installed: true,
                        ..Thread::default()
                    };
                    self.threads[b as usize] = thread;
                    continue;
                }
                Operation::Cont => {
                    self.continue_to(b);
                    continue;
                }
                Operation::Contd => {
                    let address = self.frames[b as usize / 8] + immediate * 4;
                    self.set_word(address, registers[c]);
                    self.continue_to(b);
                    continue;
                }
                Operation::Unlock => {
                    self.threads[b as usize].locked = false;
                    continue;
                }
                Operation::Rearm => {
                    self.threads[number].count = self.threads[number].fan_in;
                    continue;
                }
                Operation::SelfContinue => {
                    self.ready.push(number);
                    return;
                }
                Operation::End => return,
                other => panic!("the programs do not use {other:?}"),
            };
            registers[a] = value;
            registers[0] = 0;
        }
    }
}
