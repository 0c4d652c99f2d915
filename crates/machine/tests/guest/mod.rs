//! The machines of the tests: the image of several processors at work, from `guests/ia64/machine`.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use sidestep_machine::Machine;
use sidestep_machine::description::{self, bare::Description};

/// What a machine prints.
#[derive(Clone, Default)]
pub struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    /// All of it so far.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).expect("our guests print UTF-8")
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A machine with the image of several processors at work.
pub struct Guest {
    pub machine: Machine,
    pub printed: Printed,
    pub image: Vec<u8>,
}

impl Guest {
    /// With so many processors, and the image's parameters.
    pub fn new(processors: usize, parameters: &str) -> Guest {
        Guest::of("machine-smp", processors, parameters)
    }

    /// With another image.
    pub fn of(image: &str, processors: usize, parameters: &str) -> Guest {
        let text = format!(
            "machine = {{ processors = {processors}, parameters = '{parameters}' }}
             image.file = '{image}'
             memory = [{{ start = 0x100000, size = '15M' }}]"
        );
        let description: Description = description::parse("test.toml", &text).expect("a good description");
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin");
        let printed = Printed::default();
        let built = description
            .build(&images, Box::new(printed.clone()))
            .expect("a machine");
        Guest {
            machine: built.machine,
            printed,
            image: built.image,
        }
    }
}
