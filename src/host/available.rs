// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory this process may still take.
//!
//! On Linux the least of what the machine has available and of what each control group has left that the process is in:
//!
//! ```text
//!   /proc/meminfo                     MemAvailable: what may be taken before the machine swaps
//!   /proc/self/cgroup                 the groups: "0::/a/b" of version 2, "4:memory:/a/b" of version 1
//!   /sys/fs/cgroup/a/b, /a, /         version 2: memory.max - memory.current + inactive_file of memory.stat
//!   /sys/fs/cgroup/memory/a/b, /a, /  version 1: memory.limit_in_bytes - memory.usage_in_bytes + total_inactive_file
//! ```
//!
//! A group's use counts pages of files, which the system takes back before it ends a process: those that nobody has
//! used lately (`inactive_file`) are added again. In a container a group's path may be the host's, which is not there:
//! what is mounted as the root is the container's own group then, and is on the way up.

use std::fs;
use std::path::Path;

/// Where nothing says how much there is.
const UNKNOWN: u64 = 2 << 30;

/// Bytes of memory that this process may still take, as far as the system says.
pub fn memory_available() -> u64 {
    if cfg!(target_os = "linux") { available(Path::new("/")) } else { UNKNOWN }
}

/// The same of a system whose files are in `root`.
fn available(root: &Path) -> u64 {
    let machine = field(&root.join("proc/meminfo"), "MemAvailable:").map(|kib| kib.saturating_mul(1024));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let left = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_v2 = controllers.is_empty();
        let is_memory = is_v2 || controllers.split(',').any(|controller| controller == "memory");
        let top = root.join(if is_v2 { "sys/fs/cgroup" } else { "sys/fs/cgroup/memory" });
        let group = top.join(path.trim_start_matches('/'));
        let ways_up = group.ancestors().take_while(|folder| folder.starts_with(&top));
        if is_memory { ways_up.filter_map(|folder| left_in(folder, is_v2)).min() } else { None }
    });
    left.chain(machine).min().unwrap_or(UNKNOWN)
}

/// Bytes that a control group may still take; `None` where it has no limit.
fn left_in(group: &Path, is_v2: bool) -> Option<u64> {
    let (limit, used, kept) = match is_v2 {
        true => ("memory.max", "memory.current", "inactive_file"),
        false => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    };
    let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
    // Version 1 writes "none" as the largest number of whole pages. Of such a group nothing else is asked: to add up
    // its use takes the system longer than all else here.
    let limit = number(limit).filter(|&limit| limit < 1 << 62)?;
    let used = number(used)?;
    let kept = field(&group.join("memory.stat"), kept).unwrap_or(0).min(used);
    Some(limit.saturating_sub(used - kept))
}

/// The number behind a name at the beginning of a line of a file.
fn field(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let mut words =
        text.lines().map(str::split_ascii_whitespace).find_map(|mut words| (words.next()? == name).then_some(words))?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system of these files.
    fn of(files: &[(&str, &str)]) -> u64 {
        let name = format!("h5z-gpu-available-{}-{:?}", std::process::id(), std::thread::current().id());
        let root = std::env::temp_dir().join(name);
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let found = available(&root);
        let _ = fs::remove_dir_all(root);
        found
    }

    const MACHINE: (&str, &str) =
        ("proc/meminfo", "MemTotal:       24683724 kB\nMemFree: 1 kB\nMemAvailable:     1000 kB\nBuffers: 5 kB\n");

    #[test]
    fn a_machine_without_groups() {
        assert_eq!(of(&[MACHINE]), 1000 << 10);
        assert_eq!(of(&[]), UNKNOWN);
        assert_eq!(of(&[("proc/meminfo", "MemTotal: 5 kB\nMemAvailable: much\n")]), UNKNOWN);
        assert_eq!(of(&[MACHINE, ("proc/self/cgroup", "0::/\n4:cpu,memory\nnonsense\n")]), 1000 << 10);
    }

    #[test]
    fn groups_of_version_2() {
        let own = ("proc/self/cgroup", "0::/job/step\n");
        let group = |folder: &'static str, limit, used, stat| {
            let file = |name: &str| -> &'static str { format!("sys/fs/cgroup{folder}/memory.{name}").leak() };
            [(file("max"), limit), (file("current"), used), (file("stat"), stat)]
        };
        let [a, b, c] = group("/job/step", "max\n", "77\n", "");
        let [d, e, f] = group("/job", "900000\n", "500000\n", "anon 3\ninactive_file 100\nactive_file 9\n");
        assert_eq!(of(&[MACHINE, own, a, b, c, d, e, f]), 400_100);
        // More is used than is allowed; the limit was lowered.
        let [d, e, f] = group("/job", "400000\n", "500000\n", "inactive_file 100\n");
        assert_eq!(of(&[MACHINE, own, d, e, f]), 0);
        // A container that sees its own group as the root, by its own name or by the host's.
        let [d, e, f] = group("", "300\n", "200\n", "inactive_file 999\n");
        assert_eq!(of(&[MACHINE, ("proc/self/cgroup", "0::/\n"), d, e, f]), 300);
        assert_eq!(of(&[MACHINE, ("proc/self/cgroup", "0::/docker/1a\n"), d, e, f]), 300);
        assert_eq!(of(&[MACHINE, ("proc/self/cgroup", "0::/../../b\n"), d, e, f]), 300);
    }

    #[test]
    fn groups_of_version_1() {
        let own = ("proc/self/cgroup", "9:cpu:/x\n4:memory:/job\n0::/\n");
        let top = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        let top_used = ("sys/fs/cgroup/memory/memory.usage_in_bytes", "800000\n");
        let limit = ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
        let used = ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4000\n");
        let stat = ("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 7\ntotal_inactive_file 50\n");
        assert_eq!(of(&[MACHINE, own, top, top_used, limit, used, stat]), 1050);
        assert_eq!(of(&[MACHINE, own, top, top_used]), 1000 << 10);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(memory_available() > 0);
    }
}
