// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program, run as a user runs it.

use h5z_gpu::{Dtype, Params, words};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program, with nothing said about plugins.
fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_h5z-gpu"));
    program.env_remove("HDF5_PLUGIN_PATH").env_remove("HDF5_PLUGIN_PRELOAD").env_remove("H5Z_GPU_PLUGIN_PATH");
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
        "dcpl$set_filter(443L, h5const$H5Z_FLAG_OPTIONAL, c(111003))",
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
    let &[cm, low, high] = &words::several("mode=abs,bound=1.234e-3,codec=szx".parse().unwrap())[..] else {
        panic!("three words")
    };
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
    assert!(good("words 90000").starts_with("lossless: every bit is kept"));
    let mut params = Params::new("mode=rel,bound=1e-4".parse().unwrap(), Dtype::F32, &[1, 64, 100]).unwrap();
    params.fill = Some(1e20f32.to_bits().into());
    let list = words::store(&params, &[21004], 3).iter().map(u32::to_string).collect::<Vec<_>>();
    // ncdump -hs, h5dump -p (which shows words as signed numbers), and a list typed by hand.
    let signed = list.iter().map(|w| (w.parse::<u32>().unwrap() as i32).to_string()).collect::<Vec<_>>().join(" ");
    assert!(signed.starts_with('-'));
    for form in [format!("\"443,{}\"", list.join(",")), format!("PARAMS {{ {signed} }}"), signed, list.join(", ")] {
        let text = good(&format!("words {form}"));
        for part in
            ["typed as   21004", "chunk      [64, 100] (of rank 3)", "1e20", "1e-4 of its chunk", "f32", "allowed"]
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
fn files_of_datasets_are_for_the_python_package() {
    for command in ["advise", "repack", "verify", "inspect", "recover"] {
        let err = bad(&format!("{command} a.h5 --out b.h5"), 2);
        assert!(err.contains(&format!("then python -m h5z_gpu {command} a.h5 --out b.h5")), "{err}");
    }
    assert!(bad("compress a b", 2).contains("no command \"compress\""));
}

#[test]
fn doctor_says_what_is_missing() {
    let dir = folder("cli-doctor");
    std::fs::write(dir.join("libh5zgpu.so"), "not a library").unwrap();
    let out = program().arg("doctor").env("H5Z_GPU_PLUGIN_PATH", &dir).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{text}");
    for part in ["HDF5_PLUGIN_PATH: not set", "this program's own plugin", "is no library (13 bytes)", "or unset it"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let preload =
        program().arg("doctor").env("HDF5_PLUGIN_PATH", &dir).env("HDF5_PLUGIN_PRELOAD", "::").output().unwrap();
    let text = String::from_utf8(preload.stdout).unwrap();
    for part in ["is no library (13 bytes)", "copy the file there again", "unset HDF5_PLUGIN_PRELOAD"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(bad("doctor --hdf5 /no/libhdf5.so", 2).contains("no such file"));
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
        (40, "is no library (40 bytes)"),
    ] {
        std::fs::write(dir.join("libh5zgpu.so"), &whole[..len]).unwrap();
        let out = program().arg("doctor").env("HDF5_PLUGIN_PATH", &dir).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        assert_eq!(out.status.code(), Some(1), "{text}");
        assert!(text.contains(part) && text.contains("copy the file there again"), "{len}: {part} is not in\n{text}");
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
fn what_is_kept_is_a_fourth_word_of_every_tool() {
    let text = good("words abs 1e-3 --codec szx --keep range,sign");
    for line in [
        "as text: mode=abs,bound=1e-3,codec=szx,keep=sign+range\n",
        "; signs and the range of each chunk are kept\n",
        "number    - no one number says what is kept",
        "f v:UD=443,1,4,11,",
        "nccopy -4 -F 'v,443,11,1e-3d,5' ",
        "ncks      - hands over the last parameter alone, and what is kept",
        "v:_Filter = \"443,11,1e-3d,5\" ;",
        "H5Pset_filter(dcpl, 443, H5Z_FLAG_OPTIONAL, 4, cd)",
        "nc_def_var_filter(ncid, varid, 443, 4, cd)",
        "H5Z_FLAG_OPTIONAL_F, 4_size_t, [11, ",
        ", 5])",
        ", 5))",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(text, good("words abs 1e-3 --codec szx --keep sign+range"));
    assert_eq!(text, good("words mode=abs,bound=1e-3,codec=szx --keep sign+range"));
    assert_eq!(text, good("words mode=abs,bound=1e-3,codec=szx,keep=range+sign"));
    let line = good("words abs 1e-3 --codec szx --keep sign,range --tool h5repack");
    let words = line.split("UD=443,1,4,").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let back = good(&format!("words {words}"));
    assert!(back.contains("signs and the range of each chunk are kept") && back.contains("keep=sign+range"), "{back}");
    for (line, part) in [
        ("words abs 1e-3 --keep signs", "allowed are sign, zero, range"),
        ("words lossless --keep sign", "lossless keeps every bit by itself"),
        ("words pw_rel 1e-3 --keep zero", "signs and zeros stay by themselves"),
        ("words 11003 --keep sign", "give a mode and a value"),
    ] {
        let why = bad(line, 2);
        assert!(why.contains(part), "{line}: {why}");
    }
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
