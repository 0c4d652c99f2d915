use sidestep_schedule::{Options, assembly, optimize};
fn main() {
    let path = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let line: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let o = Options {
        parameters: Default::default(),
        time_limit: std::time::Duration::from_secs(5),
    };
    let text = assembly::preprocess(&path).unwrap();
    let source = assembly::Source::parse(&text);
    let object = assembly::assemble(&text, &path).unwrap();
    for f in assembly::Function::all(&source, &object, None, &o.parameters, &path).unwrap() {
        for p in f.pieces {
            if let assembly::Piece::Block {
                lines, block, texts, ..
            } = p
            {
                if source.lines[lines.start].number == line {
                    let out = optimize(&block, &o);
                    for (i, t) in texts.iter().enumerate() {
                        println!("{i}@{} {}", out.schedule.cycles[i], t.instruction);
                    }
                    for b in &out.bundles {
                        println!("{b:?}");
                    }
                }
            }
        }
    }
}
