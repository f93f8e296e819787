// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes frames that nobody wrote: valid ones of every codec, type and mode, changed at random and sealed again, so
//! that a change reaches the decoder. One in ten is left with a wrong checksum.
//!
//! ```text
//! hostile CASES [JOBS [SEED [LIBRARY]]]     by the crate and by the C interface, that of LIBRARY where one is named
//! hostile --leave FILE SEED CASES           leaves frames with the crate's answers for the readers in other languages
//! ```
//!
//! A case is its seed and its number: the same two make the same frame. Prints for each codec and type what became of
//! its frames, each way to refuse one, the most memory beside the raw bytes, and the slowest frame. Status 1 where one
//! ends a process, breaks a promise of targets/frames.rs or takes a minute: that case is named.

#[path = "hostile/change.rs"]
mod change;
#[path = "../../common/generate.rs"]
#[allow(dead_code)] // other tests use the rest
mod generate;
#[path = "hostile/leave.rs"]
mod leave;
#[path = "hostile/reader.rs"]
mod reader;
#[path = "../targets/mod.rs"]
#[allow(dead_code)] // the targets of libFuzzer's programs
mod targets;

use change::Pool;
use generate::Random;
use reader::Reader;
use std::collections::BTreeMap;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;
use targets::counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Cases after which a process says that it still works. A minute for them is a hang.
const BLOCK: u64 = 1024;
const BLOCK_SECONDS: u32 = 60;

/// What is added up, and what only grows: both printed and read as lines of a name, a tab and a number.
#[derive(Default)]
struct Counts {
    sums: BTreeMap<String, u64>,
    most: BTreeMap<String, u64>,
}

impl Counts {
    fn read(&mut self, lines: &str) {
        for line in lines.lines() {
            let Some((name, n)) = line.rsplit_once('\t') else { continue };
            let n: u64 = n.parse().expect("a number");
            match name.strip_prefix("most ") {
                Some(name) => {
                    let most = self.most.entry(name.into()).or_default();
                    *most = n.max(*most);
                }
                None => *self.sums.entry(name.into()).or_default() += n,
            }
        }
    }

    fn print(&self) {
        self.sums.iter().for_each(|(name, n)| println!("{name}\t{n}"));
        self.most.iter().for_each(|(name, n)| println!("most {name}\t{n}"));
    }
}

/// Cases `first` to `first + count` of a seed, in this process.
fn work(seed: u64, first: u64, count: u64, library: Option<&str>) {
    targets::begin();
    let (pool, reader) = (Pool::new(), Reader::new(library));
    let mut counts = Counts::default();
    let (mut slowest, mut most_held) = ((0, 0), 0);
    for case in first..first + count {
        if (case - first).is_multiple_of(BLOCK) {
            // SAFETY: sets a timer; the signal ends the process.
            unsafe { libc::alarm(BLOCK_SECONDS) };
            eprintln!("{case}");
        }
        let mut random = Random(seed << 40 ^ case);
        let (of, frame) = pool.changed(&mut random, 4);
        let begun = Instant::now();
        let outcome = reader.read(&frame, &mut random);
        slowest = slowest.max((begun.elapsed().as_micros() as u64, case));
        most_held = most_held.max(outcome.held);
        let end = outcome.refusal.as_deref().map_or("decoded", |_| "refused");
        for name in [of, outcome.refusal.as_deref().unwrap_or("decoded"), "all"] {
            *counts.sums.entry(if name == of { format!("{of} {end}") } else { name.into() }).or_default() += 1;
        }
    }
    counts.most.insert("bytes held beside the raw ones".into(), most_held);
    counts.most.insert(format!("microseconds of a frame (seed {seed}, case {})", slowest.1), slowest.0);
    counts.print();
}

fn start(seed: u64, first: u64, count: u64, library: Option<&str>) -> Child {
    let program = std::env::current_exe().expect("this program");
    let numbers = [seed, first, count].map(|n| n.to_string());
    let mut command = Command::new(program);
    command.arg("--work").args(numbers).args(library);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("another process")
}

/// Finds the case of a block that ends a process.
fn find(seed: u64, block: u64, library: Option<&str>) {
    for case in block..block + BLOCK {
        let done = start(seed, case, 1, library).wait_with_output().expect("a process");
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            eprintln!("hostile: seed {seed}, case {case}: {}\n{said}", done.status);
        }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize| args.get(k).and_then(|n| n.parse::<f64>().ok()).map(|n| n as u64);
    if args.first().is_some_and(|a| a == "--work") {
        let [seed, first, count] = [1, 2, 3].map(|k| number(k).expect("a number"));
        work(seed, first, count, args.get(4).map(String::as_str));
        return ExitCode::SUCCESS;
    }
    if let ("--leave", Some(file)) = (args.first().map_or("", String::as_str), args.get(1)) {
        let [seed, cases] = [2, 3].map(|k| number(k).expect("a number"));
        leave::leave(file, seed, cases).expect("a file");
        return ExitCode::SUCCESS;
    }
    let Some(cases) = number(0) else {
        eprintln!("hostile CASES [JOBS [SEED [LIBRARY]]]");
        return ExitCode::FAILURE;
    };
    let (jobs, seed, library) = (number(1).unwrap_or(1), number(2).unwrap_or(443), args.get(3).map(String::as_str));
    let begun = Instant::now();
    let each = cases.div_ceil(jobs);
    let children: Vec<_> = (0..jobs).map(|k| start(seed + k, 0, each, library)).collect();
    let (mut counts, mut failed) = (Counts::default(), 0);
    // Each is read on its own, or one that has much to say would wait for the others.
    let wait = |child: Child| std::thread::spawn(|| child.wait_with_output().expect("a process"));
    let done: Vec<_> = children.into_iter().map(wait).collect();
    for (k, done) in done.into_iter().enumerate() {
        let done = done.join().expect("a process");
        counts.read(&String::from_utf8_lossy(&done.stdout));
        if !done.status.success() {
            failed += 1;
            let said = String::from_utf8_lossy(&done.stderr);
            let block = said.lines().filter_map(|line| line.parse().ok()).next_back().unwrap_or(0);
            eprintln!("hostile: seed {}, block at {block}: {}", seed + k as u64, done.status);
            find(seed + k as u64, block, library);
        }
    }
    counts.print();
    let slowest = counts.most.iter().filter(|(name, _)| name.starts_with("micro")).max_by_key(|(_, n)| **n);
    println!("slowest: {slowest:?}. {jobs} processes, {:.0} s, {failed} ended early", begun.elapsed().as_secs_f64());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
