//! Who shares memory, among the threads of running programs.
//!
//! There are two ways. For any program the kernel's NUMA balancing takes pages away from multithreaded processes now
//! and then, to see who touches them next; the page comes back at that touch with a cheap fault. [`fault`] hears of
//! each, [`region`] names the memory, and [`sidestep_gang`]'s detector, matrix, tree and sets do the rest. No data
//! moves, and on a host with a single memory node nothing else changes either. A VMM that offers its guest's memory
//! ([`userfault`]) makes pages of it fault when asked, and nothing of the host is touched.
//!
//! Limits, stated where it is used ([`Way`]): the setting is the host's, not the program's; the kernel chooses the rate
//! (at first once a second of run time, less as faults prove to be local) unless debugfs allows to set it; a huge page
//! counts as one page; private memory of a process with a single thread, shared memory that has no memory policy of its
//! own (`mbind`), read-only files and dirty pages of disk files are skipped by the kernel.

mod ahead;
mod attention;
mod budget;
pub mod fault;
mod pace;
mod price;
pub mod region;
mod ring;
mod rounds;
mod samples;
mod snapshot;
mod source;
pub mod userfault;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sidestep_gang::detection::Access;
use sidestep_gang::{
    Amounts, CoscheduledSets, Detector, DetectorSettings, Selection, SharingMatrix, TaskId, Touched,
};

use crate::HostError;
use crate::changed::Changed;
use crate::journal::Journal;
use crate::process::{self, Stat, ThreadName};
use crate::setting::{self, NUMA_BALANCING, SCAN_RATES};
use attention::Attention;
use budget::{Budget, Prices, SHARE_PERMILLE};
use fault::{Faults, Record};
use pace::Pace;
use region::{AddressSpaces, PAGE_BITS, Region};
use rounds::Rounds;
pub use samples::SampledBy;
use samples::Samples;
pub use snapshot::{Snapshot, WatchedThread, Way};
use source::Source;

/// What to watch and how.
#[derive(Clone, Copy, Debug)]
pub struct WatchSettings {
    /// How often pages are to fault, where the kernel allows to set it.
    pub scan_period: Option<Duration>,
    /// How often to interrupt what runs on a core, to see what it touches; `None`: never.
    pub sample_period: Option<Duration>,
    /// What is counted for that.
    pub sampled_by: SampledBy,
    /// What counts as communication.
    pub detector: DetectorSettings,
    /// How sets are found.
    pub selection: Selection,
    /// The part of each count that stays in a second in which communication was seen, in thousandths. In others nothing
    /// fades: what is known holds until something contradicts it.
    pub keep_permille: u32,
    /// After each time of this length in which nothing has changed pages are left alone for a while, up to eight times
    /// as long; zero: they never are.
    pub look: Duration,
    /// The most that watching may cost, in thousandths of the time that the watched threads run; `None`: whatever it
    /// costs.
    pub share_permille: Option<u32>,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self {
            scan_period: None,
            sample_period: Some(Duration::from_millis(2)),
            sampled_by: SampledBy::Time,
            detector: DetectorSettings {
                skips_first_touch: true,
                ..DetectorSettings::default()
            },
            selection: Selection::Modularity,
            keep_permille: 990,
            look: Duration::from_secs(5),
            share_permille: Some(SHARE_PERMILLE),
        }
    }
}

/// Ended threads that are still shown; the oldest beyond are forgotten.
const ENDED_MAX: usize = 64;
/// How long it takes until a sampled touch counts half.
const HALF_LIFE: Duration = Duration::from_secs(60);

/// Watches programs until it is dropped, which puts the kernel's settings back.
pub struct Watcher {
    source: Source,
    settings: WatchSettings,
    way: Way,
    attention: Attention,
    /// How long the processes had run when it was last read.
    ran_ns: u64,
    /// How long threads of the source had run when that was last read.
    source_ns: u64,
    changed: Vec<Changed>,
    processes: BTreeSet<i32>,
    spaces: AddressSpaces,
    rounds: Rounds,
    detector: Detector<Region>,
    amounts: Amounts<Region>,
    /// Where how much is shared is known from samples.
    samples: Option<Samples>,
    touched: Touched<Region>,
    interruptions: u64,
    /// When what was touched last faded.
    halved: Instant,
    matrix: SharingMatrix,
    /// The matrix's total when it last faded.
    faded_total: u128,
    threads: Vec<WatchedThread>,
    numbers: BTreeMap<i32, TaskId>,
    ended: VecDeque<TaskId>,
    free: Vec<TaskId>,
    began: Instant,
    decayed: Instant,
    faults_seen: u64,
    lost: u64,
}

impl Watcher {
    /// Begins to watch these processes and their descendants.
    ///
    /// # Errors
    /// When the kernel cannot make or report faults; settings changed so far are put back.
    pub fn start(
        journal: &mut Journal,
        processes: &[i32],
        settings: WatchSettings,
    ) -> Result<Self, HostError> {
        let balancing = Path::new(NUMA_BALANCING);
        if !balancing.exists() {
            return Err(HostError::Unsupported(format!(
                "{NUMA_BALANCING} does not exist; a kernel with CONFIG_NUMA_BALANCING is needed to make pages fault"
            )));
        }
        let faults = Faults::listen()?;
        let mut changed = Vec::new();
        let prices = price::measure(&faults);
        let mut rate = set_rate(journal, settings.scan_period, &mut changed)?;
        if let Some(share) = settings.share_permille {
            rate.push_str(&format!(
                ", in {}.{} % of their time at most ({} ns a hint fault, {} ns a report)",
                share / 10,
                share % 10,
                prices.hint_fault_ns,
                prices.report_ns
            ));
        }
        let balancing = Changed::to(journal, balancing, "1")?;
        let mut misses = vec![
            "a huge page counts as one page".to_owned(),
            "private memory of a process with one thread".to_owned(),
            "shared memory (tmpfs, memfd, shared anonymous) without a memory policy of its own".to_owned(),
            "read-only file mappings and dirty pages of disk files".to_owned(),
        ];
        if !faults.sees_guests() {
            misses.push("memory that a KVM guest uses without its VMM touching it".to_owned());
        }
        let way = Way {
            faults: "NUMA-balancing hint faults, for every multithreaded process of the host".to_owned(),
            rate,
            misses,
            amounts: String::new(),
        };
        let family = |&root: &i32| process::family(root);
        let processes: Vec<i32> = processes.iter().flat_map(family).collect();
        let source = Source::hints(faults, balancing);
        let mut watcher = Self::new(source, prices, way, settings, &processes);
        watcher.changed = changed;
        Ok(watcher)
    }

    /// Begins to watch the guests whose VMMs offer their memory on these sockets; nothing of the host is changed.
    ///
    /// # Errors
    /// When a process must be left alone, or its offer cannot be used; see
    /// [`Guest::connect`](userfault::Guest::connect).
    pub fn start_on_guests(
        sockets: &[PathBuf],
        settings: WatchSettings,
        other_users: bool,
    ) -> Result<Self, HostError> {
        let (source, prices) = Source::guests(sockets, settings.scan_period)?;
        let processes = source.processes_to_look_at().unwrap_or_default();
        processes
            .iter()
            .try_for_each(|&process| process::check(process, other_users))?;
        let mut rate = "all of the memory, at most 256 MB of it, each second".to_owned();
        if let Some(round) = settings.scan_period {
            rate = format!(
                "all of the memory, at most 256 MB of it, every {} ms",
                round.as_millis()
            );
        }
        if let Some(share) = settings.share_permille {
            rate.push_str(&format!(
                ", in {}.{} % of the VMMs' time at most ({} ns a fault)",
                share / 10,
                share % 10,
                prices.hint_fault_ns
            ));
        }
        let way = Way {
            faults: "userfaultfd minor faults, for the guests of the VMMs alone".to_owned(),
            rate,
            misses: vec![
                "a huge page of the file counts as one page".to_owned(),
                "memory that the VMMs do not offer".to_owned(),
            ],
            amounts: String::new(),
        };
        Ok(Self::new(source, prices, way, settings, &processes))
    }

    fn new(source: Source, prices: Prices, mut way: Way, settings: WatchSettings, processes: &[i32]) -> Self {
        let samples = (settings.sample_period).map(|period| Samples::listen(period, settings.sampled_by));
        let (amounts, samples) = match samples {
            Some(Ok(samples)) => (samples.describe(), Some(samples)),
            Some(Err(error)) => (
                format!("who touches pages first, since samples cannot be had: {error}"),
                None,
            ),
            None => ("who touches pages first".to_owned(), None),
        };
        way.amounts = amounts;
        let mut watcher = Self {
            source,
            settings,
            way,
            attention: Attention::new(
                Pace::new(settings.look),
                Budget::new(settings.share_permille, prices),
            ),
            ran_ns: 0,
            source_ns: 0,
            changed: Vec::new(),
            processes: BTreeSet::new(),
            spaces: AddressSpaces::default(),
            rounds: Rounds::default(),
            detector: Detector::new(settings.detector),
            amounts: Amounts::new(
                settings.detector.regions_max,
                settings.detector.skips_first_touch,
                settings.scan_period.unwrap_or(Duration::from_secs(1)).as_nanos() as u64 / 4,
            ),
            samples,
            touched: Touched::new(settings.detector.regions_max),
            interruptions: 0,
            halved: Instant::now(),
            matrix: SharingMatrix::new(0),
            faded_total: 0,
            threads: Vec::new(),
            numbers: BTreeMap::new(),
            ended: VecDeque::new(),
            free: Vec::new(),
            began: Instant::now(),
            decayed: Instant::now(),
            faults_seen: 0,
            lost: 0,
        };
        for &process in processes {
            watcher.add_process(process);
        }
        watcher.ran_ns = watcher.ran_ns();
        watcher
    }

    /// How sharing is seen here.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// Takes in what happened since the last time. Should be called several times a second, or the kernel's rings
    /// fill up (what was lost is counted).
    pub fn poll(&mut self) {
        let (began_ns, faults_before) = (price::own_time_ns(), self.faults_seen);
        let mut records = Vec::new();
        self.source.drain(|record| records.push(record));
        // Rings are in order each, not among each other.
        records.sort_by_key(|record| match *record {
            Record::Fault { time_ns, .. } | Record::GuestFault { time_ns, .. } => time_ns,
            // Beginnings first, so that a new thread's faults count; ends and the like at the end.
            Record::Began { .. } => 0,
            Record::Mapped { .. } => 1,
            Record::Ended { .. } | Record::Lost { .. } => u64::MAX,
        });
        let now = self.began.elapsed();
        let is_second = self.decayed.elapsed() >= Duration::from_secs(1);
        if is_second {
            records.extend(self.threads_that_came_and_went());
        }
        for record in records {
            if let Record::Began { process, .. } | Record::Ended { process, .. } = record
                && self.processes.contains(&process)
            {
                self.attention.stir(now);
            }
            self.take(record);
        }
        let interruptions_ns = self.take_samples();
        if is_second {
            self.decayed = Instant::now();
            let ran_ns = self.ran_ns();
            self.attention
                .earn(ran_ns.saturating_sub(self.ran_ns), &mut self.source);
            self.ran_ns = ran_ns;
            if self.attention.is_looking() {
                self.note_rounds(now);
            }
            if self.matrix.total() != self.faded_total {
                self.matrix.fade(1000 - self.settings.keep_permille, 1000);
                self.faded_total = self.matrix.total();
            }
        }
        let reports = self.faults_seen - faults_before;
        let source_ns = self.source.ran_ns();
        let own_ns = price::own_time_ns() - began_ns + (source_ns - self.source_ns) + interruptions_ns;
        self.source_ns = source_ns;
        let (matrix, selection, seen) = (&self.matrix, self.settings.selection, self.faults_seen);
        self.attention.step(now, reports, own_ns, &mut self.source, || {
            (seen > 0).then(|| CoscheduledSets::find(matrix, selection))
        });
        self.want_samples();
    }

    /// Samples while it looks.
    fn want_samples(&self) {
        if let Some(samples) = &self.samples {
            samples.want(self.attention.is_looking());
        }
    }

    /// Takes in what was sampled since the last time; answers what the interruptions of watched threads cost.
    fn take_samples(&mut self) -> u64 {
        let Some(samples) = &mut self.samples else {
            return 0;
        };
        let (processes, mut touches) = (&self.processes, Vec::new());
        let interruptions = samples.drain(
            |process| processes.contains(&process),
            |touch| touches.push(touch),
        );
        let cost_ns = interruptions.saturating_mul(samples.price_ns());
        if samples.has_slowed() {
            self.way.amounts = samples.describe();
        }
        for touch in touches {
            if let Some(task) = self.task(touch.process, touch.thread)
                && self.source.sees(touch.process, touch.address)
            {
                let region = self.spaces.region(touch.process, touch.address);
                let sample = self.interruptions + touch.sample;
                self.touched.record(sample, task, region, touch.weight);
            }
        }
        if self.halved.elapsed() >= HALF_LIFE {
            self.halved = Instant::now();
            self.touched.fade();
        }
        self.interruptions += interruptions;
        cost_ns
    }

    /// Notes how often the kernel has taken the pages of each process away.
    fn note_rounds(&mut self, now: Duration) {
        let looked = now.saturating_sub(self.attention.blind());
        for &process in &self.processes {
            if let Some(count) = process::numa_rounds(process) {
                self.rounds.note(process, count, looked);
            }
        }
    }

    /// Whether pages are left alone because nothing has changed for some time.
    pub fn is_resting(&self) -> bool {
        self.attention.is_resting()
    }

    /// Leaves pages alone, or not, whatever the pace and the budget: to compare.
    ///
    /// # Errors
    /// When the kernel's setting cannot be written.
    pub fn set_aside(&mut self, is_aside: bool) -> Result<(), HostError> {
        let outcome = self
            .attention
            .set_aside(self.began.elapsed(), is_aside, &mut self.source);
        self.want_samples();
        outcome
    }

    /// What began and ended, where the kernel does not tell of it.
    fn threads_that_came_and_went(&self) -> Vec<Record> {
        let Some(living) = self.source.processes_to_look_at() else {
            return Vec::new();
        };
        let mut records = Vec::new();
        for &process in &self.processes {
            let threads = match living.contains(&process) {
                true => process::threads(process),
                false => Vec::new(),
            };
            let has_ended = |thread: &&WatchedThread| {
                thread.is_alive && thread.name.process == process && !threads.contains(&thread.name.thread)
            };
            let ended = self.threads.iter().filter(has_ended);
            records.extend(ended.map(|thread| Record::Ended {
                process,
                thread: thread.name.thread,
            }));
            let new = threads.iter().filter(|thread| !self.numbers.contains_key(thread));
            records.extend(new.map(|&thread| Record::Began {
                process,
                thread,
                parent: process,
            }));
        }
        records
    }

    /// How long the watched processes have run. Those that ended are missing, which makes a budget smaller, not
    /// greater.
    fn ran_ns(&self) -> u64 {
        let processes = self.processes.iter();
        processes.filter_map(|&process| process::ran_ns(process)).sum()
    }

    /// Forgets all sharing seen so far, as after a program's start.
    pub fn reset(&mut self) {
        self.matrix.reset();
        self.detector.reset();
        self.amounts.reset();
        self.touched.reset();
        self.attention.stir(self.began.elapsed());
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Fault {
                process,
                thread,
                time_ns,
                address,
            } => {
                // Following code reads memory that was taken away.
                let is_own = thread == rustix::thread::gettid().as_raw_pid();
                let task = if is_own { None } else { self.task(process, thread) };
                if let Some(task) = task {
                    let region = self.spaces.region(process, address);
                    let stood_ns = self.rounds.stood(process).as_nanos() as u64;
                    self.observe(task, region, time_ns.saturating_sub(stood_ns));
                }
            }
            Record::GuestFault {
                process,
                thread,
                time_ns,
                address,
            } => {
                if let Some(task) = self.task(process, thread) {
                    self.observe(
                        task,
                        Region::Guest {
                            process,
                            page: address >> PAGE_BITS,
                        },
                        time_ns,
                    );
                }
            }
            Record::Began {
                process,
                thread,
                parent,
            } => {
                if process != parent && self.processes.contains(&parent) {
                    self.add_process(process);
                } else if self.processes.contains(&process) {
                    self.task(process, thread);
                }
            }
            Record::Ended { process, thread } => self.end(process, thread),
            Record::Mapped { process } => self.forget_memory(process),
            Record::Lost { records } => self.lost += records,
        }
    }

    fn observe(&mut self, task: TaskId, region: Region, time_ns: u64) {
        self.faults_seen += 1;
        let time_ns = time_ns.saturating_sub(self.attention.blind().as_nanos() as u64);
        let access = Access {
            task,
            region,
            time_ns,
        };
        self.amounts.observe(access);
        self.detector.observe(access, &mut self.matrix);
    }

    /// A process's mappings changed, or it ended.
    fn forget_memory(&mut self, process: i32) {
        self.spaces.forget(process);
        if let Some(samples) = &mut self.samples {
            samples.forget(process);
        }
    }

    fn add_process(&mut self, process: i32) {
        self.processes.insert(process);
        self.spaces.forget(process);
        for thread in process::threads(process) {
            self.task(process, thread);
        }
    }

    /// The number of a thread of a watched process; a thread not seen before gets one.
    fn task(&mut self, process: i32, thread: i32) -> Option<TaskId> {
        if let Some(&task) = self.numbers.get(&thread) {
            return Some(task);
        }
        if !self.processes.contains(&process) {
            return None;
        }
        // A thread that is gone already has no start time any more; its number tells it from the living.
        let name = ThreadName::of(process, thread).unwrap_or(ThreadName {
            process,
            thread,
            start: 0,
        });
        let program = Stat::of(process, process).map_or_else(|| "?".to_owned(), |stat| stat.name);
        let place = self
            .threads
            .iter()
            .filter(|other| other.name.process == process)
            .count();
        let is_reused = self.free.pop();
        let task = is_reused.unwrap_or(TaskId::new(self.threads.len()));
        let watched = WatchedThread {
            task,
            name,
            program,
            place,
            is_alive: true,
        };
        if is_reused.is_some() {
            self.threads[task.index()] = watched;
        } else {
            self.threads.push(watched);
            self.matrix.grow(self.threads.len());
        }
        self.numbers.insert(thread, task);
        Some(task)
    }

    fn end(&mut self, process: i32, thread: i32) {
        if thread == process {
            self.processes.remove(&process);
            self.forget_memory(process);
            self.rounds.forget(process);
        }
        let Some(task) = self.numbers.remove(&thread) else {
            return;
        };
        self.threads[task.index()].is_alive = false;
        self.ended.push_back(task);
        if self.ended.len() > ENDED_MAX {
            let forgotten = self.ended.pop_front().expect("more than the most that are kept");
            self.matrix.forget(forgotten);
            self.detector.forget(forgotten);
            self.amounts.forget(forgotten);
            self.touched.forget(forgotten);
            self.free.push(forgotten);
        }
    }
}

/// Sets how often pages fault, if asked and allowed; says who decides.
fn set_rate(
    journal: &mut Journal,
    period: Option<Duration>,
    changed: &mut Vec<Changed>,
) -> Result<String, HostError> {
    let folder = Path::new(SCAN_RATES);
    let is_readable = setting::read(&folder.join("scan_period_min_ms")).is_ok();
    let kernel = "the kernel's own rate (first after a second of run time, then less often)";
    match period {
        None => Ok(kernel.to_owned()),
        Some(_) if !is_readable => Ok(format!(
            "{kernel}; {SCAN_RATES} cannot be used (debugfs not mounted, or the kernel is locked down), so the period \
             asked for is ignored"
        )),
        Some(period) => {
            let milliseconds = period.as_millis().max(1).to_string();
            for file in ["scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms"] {
                changed.extend(Changed::to(journal, &folder.join(file), &milliseconds)?);
            }
            Ok(format!("every {milliseconds} ms of run time, as asked"))
        }
    }
}
