// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line, run as a user runs it.

#![cfg(feature = "cli")]

mod common;

use common::generate;
use h5z_gpu::{Dtype, Params, words};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program, with nothing said about plugins.
fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_h5z-gpu"));
    program.env_remove("HDF5_PLUGIN_PATH").env_remove("HDF5_PLUGIN_PRELOAD");
    program
}

/// Exit status, standard output, standard error.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let out = program().args(arguments).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

/// Runs what must work.
fn good(line: &str) -> String {
    let (status, out, err) = run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!((status, &*err), (0, ""), "{line}: {out}");
    out
}

/// Runs what must be refused with this status; the sentence.
fn bad(line: &str, status: i32) -> String {
    let (got, out, err) = run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(got, status, "{line}: {out}{err}");
    assert!(err.starts_with("h5z-gpu: ") && err.len() > 40, "{line}: {err}");
    err
}

/// A folder of its own for each test, empty at the start.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn one_number_says_a_bound_in_every_tool() {
    let text = good("words abs 1e-3 --codec szx");
    for line in [
        "number    111003\n",
        "h5repack -l v:CHUNK=16x64x64 -f v:UD=443,1,1,111003 ",
        "nccopy -4 -F 'v,443,111003' ",
        "ncks -A -C -v v --cmp='443,111003' ",
        "cdo --filter \"443,111003\" copy ",
        "v:_Filter = \"443,111003\" ;",
        "compression=443, compression_opts=(111003,)",
        "{'v': {'compression': 443, 'compression_opts': (111003,)}}",
        "H5Pset_filter(dcpl, 443, H5Z_FLAG_OPTIONAL, 1, cd)",
        "nc_def_var_filter(ncid, varid, 443, 1, cd)",
        "h5pset_filter_f(dcpl, 443, H5Z_FLAG_OPTIONAL_F, 1_size_t, [111003], error)",
        "nf90_def_var_filter(ncid, varid, 443, 1, [111003])",
        "CustomFilterID=443, CustomFilterParameters=[111003])",
        "dcpl$set_filter(443L, h5const$H5Z_FLAG_OPTIONAL, c(111003L))",
        "ExternalFilter(443, UInt32[111003])",
        "coordinates would lose bits as well",
        "mode=abs,bound=1e-3,codec=szx",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(good("words abs 1e-3 --tool number"), "11003\n");
    assert_eq!(good("words mode=psnr,bound=60 --tool number"), "40600\n");
    assert_eq!(good("words lossless --tool number"), "90000\n");
    assert_eq!(good("words --tool h5repack"), "h5repack -l v:CHUNK=16x64x64 -f v:UD=443,1,1,90000 in.h5 out.h5\n");
}

#[test]
fn a_bound_of_many_digits_takes_three_words_where_the_tool_can() {
    let text = good("words abs 1.234e-3 --codec szx");
    let [cm, low, high] = words::three("mode=abs,bound=1.234e-3,codec=szx".parse().unwrap());
    assert!(text.contains(&format!("UD=443,1,3,{cm},{low},{high} ")), "{text}");
    assert!(text.contains("nccopy -4 -F 'v,443,11,1.234e-3d'"), "{text}");
    assert!(text.contains("\nncks      - hands over the last parameter alone"), "{text}");
    assert!(bad("words abs 1.234e-3 --tool ncks", 2).contains("two digits"));
    let explained = good(&format!("words 443,{cm},{low},{high}"));
    assert!(explained.contains("1.234e-3") && explained.contains("codec szx"), "{explained}");
}

#[test]
fn words_are_explained_as_the_tools_print_them() {
    assert!(good("words 11003").contains("no value changes by more than 1e-3, in the units of the data"));
    assert!(good("words 31002").contains("zeros stay zero"));
    assert!(good("words 90000").starts_with("lossless: the same bits"));
    let mut params = Params::new("mode=rel,bound=1e-4".parse().unwrap(), Dtype::F32, &[1, 64, 100]).unwrap();
    params.fill = Some(1e20f32.to_bits().into());
    let list = words::store(&params, &[21004], 3).iter().map(u32::to_string).collect::<Vec<_>>();
    // ncdump -hs, h5dump -p (which shows words as signed numbers), and a list typed by hand.
    let signed = list.iter().map(|w| (w.parse::<u32>().unwrap() as i32).to_string()).collect::<Vec<_>>().join(" ");
    assert!(signed.starts_with('-'));
    for form in [format!("\"443,{}\"", list.join(",")), format!("PARAMS {{ {signed} }}"), signed, list.join(", ")] {
        let text = good(&format!("words {form}"));
        for part in
            ["typed as   21004", "chunk      [64, 100] (of rank 3)", "1e20", "1e-4 of the chunk", "f32", "allowed"]
        {
            assert!(text.contains(part), "{form}: {part} is not in\n{text}");
        }
    }
}

#[test]
fn contradictions_are_refused_with_a_sentence_and_status_2() {
    for (line, part) in [
        ("words 0", "absolute 1e-3 is 11003, lossless is 90000"),
        ("words abs 1e-3 --codec ndzip", "ndzip is lossless"),
        ("words lossless --codec lorenzo", "needs a bound"),
        ("words lossless --codec szx", "needs a bound"),
        ("words rel 1.5", "below 1"),
        ("words abs", "needs one"),
        ("words abs 1e-3 2", "give a mode and a value"),
        ("words most 3", "allowed are abs"),
        ("words 0", "absolute 1e-3 is 11003"),
        ("words 1", "M = 0"),
        ("words 21003 4", "2 words"),
        ("words 4294967296", "no word"),
        ("words 1e-3", "such as abs 1e-3"),
        ("words abs 0", "above 0"),
        ("words abs 1e-3 --tool excel", "allowed are number"),
        ("words mode=abs,eb=3", "key \"eb\""),
    ] {
        let text = bad(line, 2);
        assert!(text.contains(part), "{line}: {text}");
    }
}

#[test]
fn a_file_goes_through_compress_inspect_decompress_and_verify() {
    let dir = folder("cli-round-trip");
    let [raw, frame, back] = ["raw", "frame", "back"].map(|n| dir.join(n).to_str().unwrap().to_string());
    for (dtype, name) in [(Dtype::F32, "f32"), (Dtype::F64, "f64"), (Dtype { big_endian: true, ..Dtype::F32 }, "f32be")]
    {
        let n = 40 * 300 * usize::from(dtype.size);
        let fill = if dtype.size == 4 { u64::from(1e20f32.to_bits()) } else { 1e20f64.to_bits() };
        std::fs::write(&raw, generate::input("masked", 3, dtype, &[40, 300], Some(fill), n)).unwrap();
        for request in ["abs 1e-3", "rel 1e-3", "pw_rel 1e-2", "psnr 70", "lossless"] {
            let numbers = format!("--dtype {name} --dims 40x300 --fill 1e20");
            good(&format!("compress {raw} {frame} {numbers} {request}"));
            let text = good(&format!("inspect {frame}"));
            assert!(text.contains(&format!("raw bytes    {n}\n")) && text.contains("checksum     right"), "{text}");
            assert!(text.lines().filter(|l| l.starts_with("section")).all(|l| l.ends_with(')')), "{text}");
            good(&format!("decompress {frame} {back}"));
            for reconstructed in [&frame, &back] {
                let text = good(&format!("verify {raw} {reconstructed} --dtype {name} --fill 1e20 {request}"));
                assert!(text.contains("held: no violation"), "{text}");
            }
        }
        good(&format!("verify {raw} {frame}"));
    }
}

#[test]
fn a_broken_promise_and_a_damaged_frame_end_with_status_1() {
    let dir = folder("cli-broken");
    let [raw, frame, other] = ["raw", "frame", "other"].map(|n| dir.join(n).to_str().unwrap().to_string());
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let bytes = |v: &[f32]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    std::fs::write(&raw, bytes(&values)).unwrap();
    let mut changed = values.clone();
    changed[7] += 0.25;
    std::fs::write(&other, bytes(&changed)).unwrap();
    good(&format!("verify {raw} {other} --dtype f32 abs 0.25"));
    let text = bad(&format!("verify {raw} {other} --dtype f32 abs 0.2499"), 1);
    assert!(text.contains("BROKEN for 1 values; the first is 7"), "{text}");
    assert!(bad(&format!("verify {raw} {other} lossless"), 1).contains("first different byte is 30"));
    assert!(bad(&format!("verify {raw} {other}"), 2).contains("state no bound"));

    good(&format!("compress {raw} {frame} --dtype f32 abs 0.1"));
    std::fs::write(&other, [0; 4]).unwrap();
    assert!(bad(&format!("verify {other} {frame}"), 1).contains("the original has 4 bytes, the reconstruction 4000"));
    let mut damaged = std::fs::read(&frame).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&frame, damaged).unwrap();
    assert!(bad(&format!("decompress {frame} {other}"), 1).contains("checksum"));
    assert!(bad(&format!("inspect {raw}"), 1).contains("mark"));
    assert!(bad(&format!("inspect {raw}-absent"), 1).contains("No such file"));
    assert!(
        bad(&format!("compress {raw} {frame} --dtype f32 --dims 10x10 abs 1"), 2)
            .contains("need 400 bytes, the file has 4000")
    );
    assert!(bad(&format!("compress {raw} {frame} --dtype f23 abs 1"), 2).contains("allowed are f32"));
}

/// Judged is the promise, not what a writer makes of it: 0.1 of a range of 3 is no f64, and these two differ by just
/// that.
#[test]
fn verify_holds_a_value_exactly_at_the_bound() {
    let dir = folder("cli-exact");
    let [raw, other] = ["raw", "other"].map(|n| dir.join(n).to_str().unwrap().to_string());
    let (unit, down) = (2f64.powi(-55), -10_808_639_105_689_190.0 * 2f64.powi(-55));
    let write = |path: &str, values: &[f64]| {
        std::fs::write(path, values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    };
    let judged = |request: &str| run(&["verify", &raw, &other, "--dtype", "f64", "--fill", "9", request]).0;
    write(&raw, &[-1.0, 2.0, unit]);
    for (last, status) in [(down, 0), (down.next_down(), 1)] {
        write(&other, &[-1.0, 2.0, last]);
        assert_eq!(judged("mode=rel,bound=0.1"), status, "{last:e}");
    }
    write(&raw, &[3.0, 13.0, 4.0, 5.0]);
    for (last, status) in [(6.0, 0), (6f64.next_up(), 1)] {
        write(&other, &[4.0, 14.0, 5.0, last]);
        assert_eq!(judged("mode=psnr,bound=20"), status, "{last:e}");
    }
    let text = bad(&format!("verify {raw} {other} --dtype f64 psnr 20.5"), 1);
    assert!(text.contains("below 20.5"), "{text}");
    // Zeros are HDF5's default fill: they stretch no range, unless another fill value is named.
    write(&raw, &[280.0, 0.0, 281.0]);
    write(&other, &[280.0, 0.0, 281.1]);
    bad(&format!("verify {raw} {other} --dtype f64 rel 0.01"), 1);
    good(&format!("verify {raw} {other} --dtype f64 --fill 9 rel 0.01"));
}

#[test]
fn a_limit_below_the_raw_length_is_named() {
    let dir = folder("cli-limit");
    let [raw, frame] = ["raw", "frame"].map(|n| dir.join(n).to_str().unwrap().to_string());
    std::fs::write(&raw, vec![0u8; 4000]).unwrap();
    good(&format!("compress {raw} {frame} --dtype i16"));
    assert!(bad(&format!("decompress {frame} {raw} --limit 3999"), 1).contains("--limit 4000"));
}

#[test]
fn bench_prints_verified_rates() {
    let dir = folder("cli-bench");
    let raw = dir.join("raw").to_str().unwrap().to_string();
    std::fs::write(&raw, generate::input("wave", 1, Dtype::F32, &[50, 400], None, 80_000)).unwrap();
    let text = good(&format!("bench {raw} --dtype f32 --dims 50x400 --runs 1 --threads 1,2 --chunk-bytes 20000"));
    assert_eq!(text.lines().filter(|l| l.starts_with("mode=")).count(), 8, "{text}");
}

#[test]
fn files_of_datasets_are_for_the_python_package() {
    let dir = folder("cli-elsewhere");
    for (name, mark, what) in [
        ("a.h5", &b"\x89HDF\r\n\x1a\n"[..], "an HDF5 or netCDF-4 file"),
        ("b.nc", b"CDF\x01", "a netCDF-3 file"),
        ("c.npy", b"\x93NUMPY\x01\x00", "a .npy file"),
    ] {
        let path = dir.join(name);
        std::fs::write(&path, [mark, &[0; 64]].concat()).unwrap();
        let file = path.display();
        for (line, then) in [
            (format!("inspect {file}"), format!("python -m h5z_gpu inspect {file}")),
            (format!("verify {file} {file} --dtype f32 abs 1"), format!("python -m h5z_gpu verify {file}")),
            (
                format!("compress {file} {file}.out --dtype u8 --dims 72 lossless"),
                format!("python -m h5z_gpu advise {file}"),
            ),
        ] {
            let err = bad(&line, 2);
            assert!(err.contains(what), "{line}: {err}");
            let then = if name == "c.npy" { format!("numpy.load({:?}).tofile", path.to_str().unwrap()) } else { then };
            assert!(err.contains(&then), "{line}: {err}");
        }
        assert!(!dir.join(format!("{name}.out")).exists());
    }
    for command in ["advise", "repack", "recover"] {
        let err = bad(&format!("{command} a.h5 --out b.h5"), 2);
        assert!(err.contains(&format!("then python -m h5z_gpu {command} a.h5 --out b.h5")), "{err}");
    }
}

#[test]
fn doctor_says_what_is_missing() {
    let (status, out, err) = run(&["doctor"]);
    assert_eq!(status, 1, "{out}{err}");
    assert!(
        out.contains("HDF5_PLUGIN_PATH: not set") && out.contains("round trip: ") && !out.contains("FAILED"),
        "{out}"
    );

    let dir = folder("cli-doctor");
    std::fs::write(dir.join("libh5zgpu.so"), "not a library").unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_h5z-gpu"))
        .arg("doctor")
        .env("HDF5_PLUGIN_PATH", &dir)
        .env("HDF5_PLUGIN_PRELOAD", "::")
        .env("H5Z_GPU_THREADS", "many")
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{text}");
    for part in [
        "is no library for this machine (13 bytes)",
        "unset HDF5_PLUGIN_PRELOAD",
        "H5Z_GPU_THREADS is \"many\"; allowed: a number above 0",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn doctor_names_a_plugin_that_cannot_be_loaded() {
    // An ELF file of this machine: this program.
    let whole = std::fs::read(env!("CARGO_BIN_EXE_h5z-gpu")).unwrap();
    let dir = folder("cli-doctor-elf");
    for (len, part) in [
        (whole.len(), "cannot be loaded"),
        (whole.len() - 1, "is cut short"),
        (whole.len() / 2, "is cut short"),
        (4096, "is cut short"),
        (40, "no library for this machine"),
    ] {
        std::fs::write(dir.join("libh5zgpu.so"), &whole[..len]).unwrap();
        let out = program().arg("doctor").env("HDF5_PLUGIN_PATH", &dir).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        assert_eq!(out.status.code(), Some(1), "{text}");
        assert!(text.contains(part) && text.contains("copy it again"), "{len}: {part} is not in\n{text}");
    }
}

#[test]
fn env_adds_the_folder_and_keeps_what_is_set() {
    let dir = folder("cli env's");
    let (program, plugin) = (dir.join("bin/h5z-gpu"), dir.join("plugin"));
    for sub in ["bin", "plugin", "a b"] {
        std::fs::create_dir(dir.join(sub)).unwrap();
    }
    // A link: a copy is busy while a child that another test has just forked still holds it open for writing.
    let _ = std::fs::remove_file(&program);
    std::fs::hard_link(env!("CARGO_BIN_EXE_h5z-gpu"), &program).unwrap();
    let other = dir.join("a b");
    let request = |set: Option<String>| {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg("eval \"$(\"$0\" env)\"; printf %s \"$HDF5_PLUGIN_PATH\"").arg(&program);
        match set {
            Some(value) => shell.env("HDF5_PLUGIN_PATH", value),
            None => shell.env_remove("HDF5_PLUGIN_PATH"),
        };
        let out = shell.output().unwrap();
        (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let (none, why) = request(None);
    assert!(none.is_empty() && why.contains("`make` puts it there"), "{none}{why}");

    std::fs::write(plugin.join("libh5zgpu.so"), "").unwrap();
    let (ours, others) = (plugin.to_str().unwrap(), other.to_str().unwrap());
    let (value, said) = request(None);
    assert!(value.starts_with(ours) && value.split(':').skip(1).all(|f| Path::new(f).is_dir()), "{value}");
    assert_eq!(said, "");
    // Ours comes first and once; empty parts say nothing to HDF5; behind a folder that is missing HDF5 1.10 finds none.
    let (value, said) = request(Some(format!("/missing:{others}::{ours}:{others}")));
    assert_eq!(value, format!("{ours}:{others}"));
    assert!(said.contains("left out /missing") && said.lines().count() == 1, "{said}");
}

#[test]
fn whoever_reads_may_stop() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    for (out, said) in [(Stdio::from(writer), ""), (full.into(), "No space left")] {
        let end =
            Command::new(env!("CARGO_BIN_EXE_h5z-gpu")).args(["words", "abs", "1e-3"]).stdout(out).output().unwrap();
        let err = String::from_utf8(end.stderr).unwrap();
        assert!(end.status.code() == Some(1) && err.contains(said) && err.lines().count() <= 1, "{err}");
    }
}
