// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why each kernel takes its time, by Nsight Compute's counters. ncu runs this program once for each request: a process
//! cannot read its own counters.

use super::{Field, params, range_of};
use h5z_gpu::testing::{IMAGES, decode_times, encode_times};
use h5z_gpu::{Bound, Codec, DecodeJob, EncodeJob, Keep};
use std::collections::BTreeMap;
use std::process::Command;

/// Codec, part of the range (0: without loss), bits of what is kept.
const REQUESTS: [(Codec, f64, u32); 8] = [
    (Codec::Planes, 1e-3, 0),
    (Codec::Planes, 1e-6, 0),
    (Codec::Planes, 1e-3, 1),
    (Codec::Planes, 0.0, 0),
    (Codec::Lorenzo, 1e-3, 0),
    (Codec::Lorenzo, 1e-3, 4),
    (Codec::Szx, 1e-3, 0),
    (Codec::Ndzip, 0.0, 0),
];

const TIME: &str = "gpu__time_duration.sum";
const DRAM: &str = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
const ISSUE: &str = "sm__inst_issued.avg.pct_of_peak_sustained_active";
const REGISTERS: &str = "launch__registers_per_thread";
const WAITS: &str = "barrier branch_resolving dispatch_stall drain imc_miss lg_throttle long_scoreboard \
                     math_pipe_throttle membar mio_throttle no_instruction short_scoreboard sleeping tex_throttle wait";

fn wait_metric(name: &str) -> String {
    format!("smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio")
}

/// Launches the kernels of request `k`, three times each: what ncu watches.
pub fn launch(field: &Field, k: usize) {
    let (codec, part, bits) = REQUESTS[k];
    let bound = if part > 0.0 { Bound::Absolute(part * range_of(field)) } else { Bound::Lossless };
    let mut p = params(field, &field.dims, codec, bound);
    p.request.keep = Keep::new(bits).expect("three bits");
    let (frames, _) = encode_times(&[EncodeJob { params: &p, raw: &field.raw }], 0, 16).expect("the device encodes");
    let mut out = vec![0; field.raw.len()];
    decode_times(&mut [DecodeJob { frame: &frames[0], out: &mut out }], 0, 16);
}

/// A table of the kernels of every request, on the first field.
pub fn why(dir: &str, field: &Field) {
    println!(
        "\nkernels on {}, by ncu: shares of DRAM's and of the issue slots' peak, registers, kB of code,\n\
         the two largest waits (cycles between two instructions of a warp)",
        field.name
    );
    println!("{:18} {:32} {:>8} DRAM issue  regs   kB  waits", "request", "kernel", "ms");
    for (k, (codec, part, bits)) in REQUESTS.into_iter().enumerate() {
        let rows = match counters(dir, k) {
            Ok(rows) => rows,
            Err(why) => return println!("counters cannot be read here: {why}"),
        };
        let keep = Keep::new(bits).expect("three bits").to_string();
        let request = format!("{} {} {keep}", codec.name(), if part > 0.0 { format!("{part:e}") } else { "".into() });
        for (kernel, of) in rows {
            let mut waits: Vec<_> =
                WAITS.split_whitespace().filter_map(|w| Some((*of.get(&wait_metric(w))?, w))).collect();
            waits.sort_by(|a, b| b.0.total_cmp(&a.0));
            let waits: Vec<String> = waits.iter().take(2).map(|(n, name)| format!("{name} {n:.1}")).collect();
            let [ms, dram, issue, registers] = [TIME, DRAM, ISSUE, REGISTERS].map(|name| of[name]);
            println!(
                "{request:18} {kernel:32} {:8.3} {dram:3.0}% {issue:4.0}% {registers:5.0} {:4.0}  {}",
                ms / 1e6,
                code(of["CC"])[&kernel] as f64 / 1e3,
                waits.join(", ")
            );
        }
    }
}

/// ncu's numbers of the last launch of each kernel of request `k`.
fn counters(dir: &str, k: usize) -> Result<BTreeMap<String, BTreeMap<String, f64>>, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let metrics: Vec<String> = WAITS.split_whitespace().map(wait_metric).collect();
    let said = Command::new("ncu")
        .args(["--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--metrics"])
        .arg([TIME, DRAM, ISSUE, REGISTERS, &metrics.join(",")].join(","))
        .arg(own)
        .args([dir, "--watched", &k.to_string()])
        .output()
        .map_err(|e| format!("ncu: {e}"))?;
    let text = String::from_utf8_lossy(&said.stdout);
    // The names of columns, their units, then a line a launch.
    let mut lines = text.lines().filter(|l| l.starts_with('"')).map(|l| l.trim_matches('"').split("\",\""));
    let Some(names) = lines.next() else { return Err(text.lines().last().unwrap_or("ncu is silent").into()) };
    let row = |line: std::str::Split<'_, &str>| {
        let row: BTreeMap<&str, &str> = names.clone().zip(line).collect();
        let numbers = row.iter().filter_map(|(name, n)| Some((name.to_string(), n.replace(',', "").parse().ok()?)));
        (row["Kernel Name"].into(), numbers.collect())
    };
    Ok(lines.skip(1).map(row).collect())
}

/// Bytes of each kernel's machine code in the image for this device: the lengths of ELF sections `.text.NAME`.
fn code(capability: f64) -> BTreeMap<String, usize> {
    let capability = ((10.0 * capability).round() as u32 / 10, (10.0 * capability).round() as u32 % 10);
    let images = IMAGES.iter().filter(|i| !i.ptx && i.runs_on(capability));
    let image = images.max_by_key(|i| i.arch).expect("machine code for this device");
    let all = zstd::bulk::decompress(image.frame, image.len).expect("the kernels' frame");
    let mut lengths = BTreeMap::new();
    for &(_, at) in image.files {
        let elf = &all[at..];
        let number = |at: usize, len: usize| elf[at..at + len].iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
        let (headers, each) = (number(0x28, 8), number(0x3a, 2));
        let section = |k: usize| headers + k * each;
        let names = number(section(number(0x3e, 2)) + 0x18, 8);
        for header in (0..number(0x3c, 2)).map(section) {
            let name = elf[names + number(header, 4)..].split(|&b| b == 0).next().unwrap_or_default();
            if let Some(kernel) = name.strip_prefix(b".text.") {
                lengths.insert(String::from_utf8_lossy(kernel).into_owned(), number(header + 0x20, 8));
            }
        }
    }
    lengths
}
