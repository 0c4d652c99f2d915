use sidestep_schedule::{Options, assembly};
use std::time::Duration;
fn main() {
    let path = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let out = std::env::args().nth(2).unwrap();
    let o = Options {
        parameters: Default::default(),
        time_limit: Duration::from_secs(20),
    };
    let text = assembly::preprocess(&path).unwrap_or_else(|e| panic!("{e}"));
    match assembly::rewrite(&text, &path, None, &o) {
        Ok(r) => {
            for f in &r.functions {
                println!("{} {} -> {}", f.name, f.before, f.after);
                for b in &f.blocks {
                    println!(
                        "   {} n={} {} -> {}/{} {}",
                        b.line, b.instructions, b.before, b.outcome.modelled, b.outcome.bound, b.is_written
                    );
                }
            }
            std::fs::write(out, r.text).unwrap();
        }
        Err(e) => println!("{e}: {:?}", std::error::Error::source(&e).map(|s| s.to_string())),
    }
}
