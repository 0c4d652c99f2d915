//! What is typed at a guest's console, and what is understood of its answers: login, one command after the other, power
//! off.
//!
//! The guest is typed to when it asks, by its own time and not by the host's: the same machine with the same commands
//! does the same each time, to the instruction.

use std::collections::VecDeque;

use regex::bytes::Regex;
use sidestep_machine::firmware::boot::SHELL_GREETING;

/// What a guest prints behind a command, before its exit status. In the typed line there is no space behind it, so that
/// its echo is nothing of the kind.
const STATUS: &str = "sidestep-status ";
/// The longest line that terminals take.
const LINE_MAX: usize = 4095;
/// How much of a line is looked at for a prompt.
const PROMPT_MAX: usize = 512;

/// What is said to the guest.
pub struct Script {
    /// The name to log in with, where the console asks for one.
    pub login: Option<String>,
    /// The password.
    pub password: String,
    /// The end of what the shell prints when it waits for a command.
    pub prompt: Regex,
    /// The commands, each run by a shell of its own.
    pub commands: Vec<String>,
    /// Whether the next command is run behind one that has failed.
    pub keeps_going: bool,
    /// What is typed behind the last one, for the machine to end; nothing, for it to be stopped.
    pub shutdown: String,
}

/// What is being waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The shell's first prompt.
    Boot,
    /// The end of the command of this number.
    Command(usize),
    /// The end of the machine.
    Shutdown,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Result {
    /// As it should.
    Passed,
    /// The command had this exit status.
    Failed(u32),
    /// It did not come to its end, for this reason.
    Broken(String),
}

/// A step that is over.
#[derive(Debug)]
pub struct Done {
    /// Which.
    pub step: Step,
    /// How it ended.
    pub result: Result,
    /// What was on the console meanwhile.
    pub output: Vec<u8>,
    /// How long it took by the machine's time, in ticks.
    pub ticks: u64,
}

/// A conversation with a guest.
pub struct Dialogue {
    script: Script,
    step: Step,
    /// What was printed in this step.
    output: Vec<u8>,
    /// The line that was answered last: what moves the cursor in it asks nothing new.
    answered: Vec<u8>,
    /// When the step began, in ticks.
    began: u64,
    typed: VecDeque<u8>,
    done: Vec<Done>,
    /// Whether nothing has booted, and the firmware's shell waits for somebody.
    is_stranded: bool,
}

impl Script {
    /// The first command that no terminal would take.
    pub fn unfit(&self) -> Option<&str> {
        let is_unfit =
            |command: &&String| line_of(command).len() > LINE_MAX || command.contains(['\n', '\r']);
        self.commands.iter().find(is_unfit).map(String::as_str)
    }
}

/// What is typed for a command.
fn line_of(command: &str) -> String {
    let quoted = command.replace('\'', r"'\''");
    let status = STATUS.trim_end();
    format!("sh -c '{quoted}' </dev/null; echo '{status}' $?\n")
}

impl Dialogue {
    /// Waits for the first prompt.
    pub fn new(script: Script) -> Dialogue {
        Dialogue {
            script,
            step: Step::Boot,
            output: Vec::new(),
            answered: Vec::new(),
            began: 0,
            typed: VecDeque::new(),
            done: Vec::new(),
            is_stranded: false,
        }
    }

    /// Whether nothing has booted: nothing that could be typed would be understood.
    pub fn is_stranded(&self) -> bool {
        self.is_stranded
    }

    /// What is being waited for.
    pub fn step(&self) -> Step {
        self.step
    }

    /// What was said and not read yet.
    pub fn unread(&self) -> Vec<u8> {
        self.typed.iter().copied().collect()
    }

    /// The next byte that is typed, if there is one.
    pub fn next_typed(&mut self) -> Option<u8> {
        self.typed.pop_front()
    }

    /// Takes what the guest prints at a tick. Whether a step has begun with it, or none can.
    pub fn hear(&mut self, bytes: &[u8], tick: u64) -> bool {
        let mut begins = false;
        for byte in bytes {
            self.output.push(*byte);
            begins |= match self.step {
                Step::Shutdown => false,
                Step::Boot => self.look_for_prompt(tick),
                Step::Command(_) if self.is_step_over() => self.look_for_prompt(tick),
                Step::Command(_) => {
                    if *byte == b'\n' {
                        self.look_for_status(tick);
                    }
                    false
                }
            };
        }
        begins
    }

    /// The line that the guest is printing, without what only colours it or moves the cursor.
    pub fn last_line(&self) -> Vec<u8> {
        let start = self
            .output
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let start = start.max(self.output.len().saturating_sub(PROMPT_MAX));
        strip_ansi_escapes::strip(&self.output[start..])
    }

    fn look_for_prompt(&mut self, tick: u64) -> bool {
        let line = self.last_line();
        if self.script.prompt.is_match(&line) {
            if self.step == Step::Boot {
                self.end_step(Result::Passed, tick);
            }
            self.begin_next();
            return true;
        }
        if self.output.ends_with(b"\n") {
            self.answered.clear();
            let said = self.output.trim_ascii_end();
            self.is_stranded |= self.step == Step::Boot && said.ends_with(SHELL_GREETING.as_bytes());
            return self.is_stranded;
        } else if self.step == Step::Boot && line != self.answered {
            if line.ends_with(b"login: ") {
                if let Some(login) = &self.script.login {
                    self.typed.extend(login.bytes().chain([b'\n']));
                }
            } else if line.ends_with(b"assword: ") {
                self.typed.extend(self.script.password.bytes().chain([b'\n']));
            }
            self.answered = line;
        }
        false
    }

    fn look_for_status(&mut self, tick: u64) {
        let lines = self.output.strip_suffix(b"\n").unwrap_or(&self.output);
        let start = lines
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let line = &lines[start..];
        // Output need not end with a line.
        let Some(place) = line
            .windows(STATUS.len())
            .rposition(|text| text == STATUS.as_bytes())
        else {
            return;
        };
        let status = line[place + STATUS.len()..].trim_ascii_end();
        let Some(status) = str::from_utf8(status).ok().and_then(|status| status.parse().ok()) else {
            return;
        };
        self.output.truncate(start + place);
        // What the typed line is shown as is no output of the command.
        let echo = self.output.iter().position(|byte| *byte == b'\n');
        self.output.drain(..echo.map_or(0, |at| at + 1));
        let result = match status {
            0 => Result::Passed,
            _ => Result::Failed(status),
        };
        self.end_step(result, tick);
    }

    fn begin_next(&mut self) {
        let next = match self.step {
            Step::Command(_) if self.has_failed() && !self.script.keeps_going => None,
            Step::Command(index) => Some(index + 1),
            Step::Boot | Step::Shutdown => Some(0),
        };
        self.output.clear();
        let next = next.and_then(|next| Some((next, self.script.commands.get(next)?)));
        let line = match next {
            Some((next, command)) => {
                self.step = Step::Command(next);
                line_of(command)
            }
            None => {
                self.step = Step::Shutdown;
                match self.script.shutdown.as_str() {
                    "" => String::new(),
                    shutdown => format!("{shutdown}\n"),
                }
            }
        };
        self.typed.extend(line.bytes());
    }

    /// Ends what is being waited for, unless it is over already.
    pub fn end_step(&mut self, result: Result, tick: u64) {
        if self.is_step_over() {
            return;
        }
        self.done.push(Done {
            step: self.step,
            result,
            output: std::mem::take(&mut self.output),
            ticks: tick - self.began.min(tick),
        });
        self.began = tick;
    }

    /// Whether the step has ended, and the prompt before the next one is waited for.
    fn is_step_over(&self) -> bool {
        self.done.last().is_some_and(|last| last.step == self.step)
    }

    /// The steps that are over.
    pub fn done(&self) -> &[Done] {
        &self.done
    }

    /// Whether a step did not end as it should.
    pub fn has_failed(&self) -> bool {
        self.done.iter().any(|done| done.result != Result::Passed)
    }

    /// Whether nothing is left to be waited for.
    pub fn is_over(&self) -> bool {
        self.step == Step::Shutdown && self.script.shutdown.is_empty()
    }

    /// The commands, in order.
    pub fn commands(&self) -> &[String] {
        &self.script.commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialogue(commands: &[&str]) -> Dialogue {
        Dialogue::new(Script {
            login: Some("root".to_owned()),
            password: "secret".to_owned(),
            prompt: Regex::new("[#$] $").expect("a pattern"),
            commands: commands.iter().map(|command| (*command).to_owned()).collect(),
            keeps_going: false,
            shutdown: "poweroff".to_owned(),
        })
    }

    fn typed(dialogue: &mut Dialogue) -> String {
        let bytes = std::iter::from_fn(|| dialogue.next_typed()).collect();
        String::from_utf8(bytes).expect("what is typed is text")
    }

    #[test]
    fn it_logs_in_and_runs_the_commands_one_after_the_other() {
        let mut dialogue = dialogue(&["true", "echo 'a b'; false"]);
        assert!(!dialogue.hear(b"Booting\r\nhost login: ", 10));
        assert_eq!(typed(&mut dialogue), "root\n");
        assert!(!dialogue.hear(b"root\r\nPassword: ", 11));
        assert_eq!(typed(&mut dialogue), "secret\n");
        assert!(dialogue.hear(b"\r\n\x1b[1;32mroot@host\x1b[0m:~# ", 20));
        assert_eq!(dialogue.step(), Step::Command(0));
        let line = typed(&mut dialogue);
        assert_eq!(line, "sh -c 'true' </dev/null; echo 'sidestep-status' $?\n");
        // The echo of the line is no status, nor is output that looks like a prompt a prompt.
        assert!(!dialogue.hear(line.replace('\n', "\r\n").as_bytes(), 21));
        assert!(!dialogue.hear(b"\r\nsidestep-status 0\r\n", 30));
        assert!(dialogue.hear(b"~ # ", 31));
        assert!(typed(&mut dialogue).starts_with(r"sh -c 'echo '\''a b'\''; false' <"));
        dialogue.hear(b"echo\r\na \xff # sidestep-status 1\r\n# ", 40);
        assert_eq!(dialogue.step(), Step::Shutdown);
        assert_eq!(typed(&mut dialogue), "poweroff\n");
        let done: Vec<_> = dialogue
            .done()
            .iter()
            .map(|done| (done.step, done.result.clone(), done.ticks))
            .collect();
        let expected = [
            (Step::Boot, Result::Passed, 20),
            (Step::Command(0), Result::Passed, 10),
            (Step::Command(1), Result::Failed(1), 10),
        ];
        assert_eq!(done, expected);
        assert_eq!(dialogue.done()[2].output, b"a \xff # ");
    }

    #[test]
    fn a_failure_is_the_end_unless_the_others_are_wanted() {
        for (keeps_going, step) in [(false, Step::Shutdown), (true, Step::Command(1))] {
            let mut dialogue = dialogue(&["false", "true"]);
            dialogue.script.keeps_going = keeps_going;
            dialogue.hear(b"# \r\nsidestep-status 1\r\n# ", 1);
            assert_eq!(dialogue.step(), step);
            assert!(dialogue.has_failed());
            assert!(!dialogue.is_over(), "the machine is to be switched off");
        }
    }

    #[test]
    fn a_step_ends_once() {
        let mut dialogue = dialogue(&[]);
        dialogue.hear(b"panic", 5);
        dialogue.end_step(Result::Broken("the kernel panicked".to_owned()), 6);
        dialogue.end_step(Result::Passed, 7);
        assert_eq!(dialogue.done().len(), 1);
        assert_eq!(dialogue.done()[0].output, b"panic");
    }

    #[test]
    fn commands_that_no_terminal_takes_are_found() {
        let long = "x".repeat(5000);
        for (commands, unfit) in [
            (["true", "a\nb"], "a\nb"),
            (["true", long.as_str()], long.as_str()),
        ] {
            assert_eq!(dialogue(&commands).script.unfit(), Some(unfit));
        }
        assert_eq!(dialogue(&["true"]).script.unfit(), None);
    }
}
