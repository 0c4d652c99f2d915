//! No test: what `cargo test --workspace` runs last. It sums up what the tests before it had and lacked.

fn main() {
    // Where tests are only listed there is none here.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    println!("\n{}\n", tests_need::Summary::take());
}
