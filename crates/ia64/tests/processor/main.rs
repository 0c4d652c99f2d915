//! The processor as whoever runs it sees it.

mod backend;
mod computing;
mod control_flow;
mod float_instructions;
mod float_multiply_add;
mod float_oracle;
mod light_calls;
#[path = "../machine/mod.rs"]
mod machine;
#[path = "../random_guest/mod.rs"]
mod random_guest;
mod random_system;
mod register_stack;
mod snapshot;
mod speculation;
mod system_mode;
