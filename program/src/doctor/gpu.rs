// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether chunks go to a GPU.

use super::examination::{Examination, some, variable};
use crate::probe::{ask, texts};
use serde_json::Value;

/// The lowest compute capability that kernels are compiled for.
const CAPABILITY: (u64, u64) = (7, 0);
/// CUDA's "no device": a driver alone is no fault.
const NO_DEVICE: u64 = 100;

fn pair(numbers: &Value) -> Option<(u64, u64)> {
    Some((numbers[0].as_u64()?, numbers[1].as_u64()?))
}

fn dotted(pair: (u64, u64)) -> String {
    format!("{}.{}", pair.0, pair.1)
}

/// Bytes as text with three figures: 812 B, 1.23 MB (10^6), 45.6 GB.
pub(super) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut unit = "";
    for next in ["kB", "MB", "GB", "TB"] {
        (value, unit) = (value / 1000.0, next);
        if value < 999.5 {
            break;
        }
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

/// A GPU with its memory and its compute capability, as far as the driver has told them.
fn described(device: &Value) -> String {
    let mut told = vec![device["name"].as_str().unwrap_or_default().to_owned()];
    told.extend(device["memory_bytes"].as_u64().map(size));
    told.extend(pair(&device["capability"]).map(|c| format!("compute capability {}", dotted(c))));
    told.join(", ")
}

/// The kernel module's version and a blank, as its own file says it.
fn module() -> String {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let number = |w: &&str| w.starts_with(|c: char| c.is_ascii_digit()) && w.contains('.');
    text.split_whitespace().find(number).map_or_else(String::new, |w| format!("{w} "))
}

impl Examination {
    /// The answer, in a sentence.
    pub(super) fn check_gpu(&mut self) -> String {
        let status = self.plugin["status"].clone();
        if !some(&status) {
            return "unknown, since the plugin cannot be asked".into();
        }
        let each = self.cuda["devices"].as_array().cloned().unwrap_or_default();
        let devices = each.iter().map(described).collect::<Vec<_>>().join(", ");
        let cuda = pair(&self.cuda["cuda"]);
        let driver = cuda.map_or("no CUDA driver".into(), |v| format!("driver {}for CUDA {}", module(), dotted(v)));
        let mut why = status["gpu_not_used"].as_str().unwrap_or_default().to_owned();
        if let Some(name) = status["gpu"].as_str() {
            let variables = [("H5Z_GPU_MIN_BYTES", Some("1")), ("H5Z_GPU_LOG", Some("info"))];
            let answer = ask("gpu", &[self.own.as_os_str()], &variables);
            if answer["encoded_on_gpu"] == true {
                let image = status["gpu_device"]["image"].as_str().unwrap_or_default();
                return format!("{name} takes larger chunks, with the code for {image}; {driver}; {devices}");
            }
            why = match &texts(&answer["said"])[..] {
                [] => answer["error"].as_str().unwrap_or("it has encoded nothing").to_owned(),
                said => said.join("; "),
            };
        }
        self.why_no_gpu(&status["gpu_code"], cuda, &each, &why);
        let devices = if devices.is_empty() { devices } else { format!("; {devices}") };
        format!("not used ({why}); the CPU does the work, files are the same. {driver}{devices}")
    }

    /// What has to be done where no GPU is used and one could be.
    fn why_no_gpu(&mut self, code: &Value, cuda: Option<(u64, u64)>, devices: &[Value], why: &str) {
        let wanted = variable("H5Z_GPU_DEVICE");
        let newest = devices.iter().filter_map(|d| pair(&d["capability"])).max();
        let answered = self.cuda["code"].as_u64().is_some_and(|c| c != NO_DEVICE);
        let there = !devices.is_empty() || std::path::Path::new("/dev/nvidia0").exists() || answered;
        let needed = pair(&code["cuda"]);
        match (cuda, needed, newest) {
            _ if wanted == "cpu" => {}
            (Some(has), Some(needed), _) if has < needed => self.problem(
                format!(
                    "the NVIDIA driver is too old: it is for CUDA {}, the kernels need {} ({why}); the CPU \
                     does the work",
                    dotted(has),
                    dotted(needed)
                ),
                format!(
                    "install driver {} or newer; files are the same either way",
                    code["driver"].as_str().map_or_else(|| code["driver"].to_string(), str::to_owned)
                ),
            ),
            (_, Some(_), Some(newest)) if newest < CAPABILITY => self.problem(
                format!(
                    "the GPU is too old: it has compute capability {}, the kernels need {}; the CPU does the work",
                    dotted(newest),
                    dotted(CAPABILITY)
                ),
                "set H5Z_GPU_DEVICE=cpu, or use a GPU of Volta (2017) or newer; files are the same either way",
            ),
            _ if !wanted.is_empty() && wanted.bytes().all(|b| b.is_ascii_digit()) => self.problem(
                format!("H5Z_GPU_DEVICE asks for GPU {wanted}, and none is used: {why}"),
                "unset H5Z_GPU_DEVICE, or mend what is named",
            ),
            (_, Some(_), _) if there => self.problem(
                format!("there is a GPU, and it is not used: {why}"),
                "mend what is named; the CPU does the work until then",
            ),
            _ => {}
        }
    }
}
