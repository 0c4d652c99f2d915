//! No test: what `cargo test --workspace` runs last, before the doc tests. It sums up what the tests had and lacked.

fn main() {
    // Where tests are only listed there is none here.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    println!("\n{}\n", tests_need::Summary::so_far());
}
