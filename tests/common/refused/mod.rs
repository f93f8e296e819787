// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that every reader must refuse: at least one for each rule of §7 of the eight documents. Where a frame can
//! break its rule alone, there is one that does; tests/vectors/not_alone.toml lists the others, and what else they
//! break.
//!
//! ```text
//! this file               the list; rules of the frame, of `bytes` and `ndzip`
//! szx, lorenzo, scaled, dense
//!                         rules of these codecs; those of `planes` stand in planes/refused
//! ```

mod dense;
mod lorenzo;
mod scaled;
mod szx;

use super::by_hand::{self, bytes_frame, le, zstd_runs};
use super::draft::{Draft, F32, F64, I32};
use super::planes;
use super::seal::{checksum, seal};
use super::vectors::{CODECS, folder};
use std::path::Path;

/// A frame and why it is refused.
pub struct Refused {
    /// The rule that it breaks, and how: `F2-another-magic`.
    pub name: &'static str,
    /// A part of this reader's message.
    pub says: &'static str,
    /// Bytes that the caller expects.
    pub raw_bytes: usize,
    pub frame: Vec<u8>,
}

impl Refused {
    /// The rule's number in §7 of its document.
    pub fn rule(&self) -> &'static str {
        self.name.split('-').next().expect("a rule")
    }

    /// The codec that the frame names, where there is one.
    pub fn codec(&self) -> &'static str {
        self.frame.get(9).and_then(|&c| CODECS.get(usize::from(c)).copied()).unwrap_or("none")
    }

    /// The line of the index.
    fn line(&self) -> String {
        let (name, rule, codec, raw) = (self.name, self.rule(), self.codec(), self.raw_bytes);
        let reason = name[rule.len() + 1..].replace('-', " ");
        format!("{name:?} = {{ rule = {rule:?}, codec = {codec:?}, raw_bytes = {raw}, reason = {reason:?} }}\n")
    }
}

/// What the folder holds besides the frames.
pub fn index(all: &[Refused]) -> String {
    let head = "# NAME.bin: the rule of §7 that it breaks, its codec, the raw bytes that its caller expects, and why \
                it is refused.\n";
    head.to_string() + &all.iter().map(Refused::line).collect::<String>()
}

/// Writes the frames that are missing, and the index; returns how many. A frame that is there is never rewritten.
pub fn write() -> Result<usize, String> {
    let folder = folder().join("refused");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let all = all();
    let mut written = 0;
    for r in &all {
        let path = folder.join(format!("{}.bin", r.name));
        if !path.exists() {
            std::fs::write(&path, &r.frame).map_err(|e| format!("{}: {e}", path.display()))?;
            written += 1;
        }
    }
    std::fs::write(folder.join("index.toml"), index(&all)).map_err(|e| e.to_string())?;
    Ok(written)
}

/// What a folder of vectors has to refuse: name, raw bytes that a caller expects, frame.
pub fn read_in(folder: &Path) -> Result<Vec<(String, usize, Vec<u8>)>, String> {
    let folder = folder.join("refused");
    let text = std::fs::read_to_string(folder.join("index.toml")).map_err(|e| e.to_string())?;
    let entry = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        let raw_bytes = rest.split_once("raw_bytes = ")?.1.split_once(',')?.0.parse().ok()?;
        let name = name.trim_matches('"');
        Some((name.to_string(), raw_bytes, std::fs::read(folder.join(format!("{name}.bin"))).ok()?))
    };
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    lines.map(|l| entry(l).ok_or_else(|| format!("{l:?} of the index, or its file"))).collect()
}

/// The frame of §9 of a codec's document.
fn example(codec: &str) -> Draft {
    let path = folder().join(codec).join("worked-example.bin");
    Draft::of(&std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// A list that grows.
#[derive(Default)]
pub struct List(Vec<Refused>);

impl List {
    /// A frame as it is.
    pub fn bytes(&mut self, name: &'static str, says: &'static str, raw_bytes: usize, frame: Vec<u8>) {
        self.0.push(Refused { name, says, raw_bytes, frame });
    }

    /// A draft, for a caller who believes it.
    pub fn draft(&mut self, name: &'static str, says: &'static str, draft: &Draft) {
        self.bytes(name, says, draft.raw_len as usize, draft.frame());
    }

    /// A changed draft, for a caller who expects what was there before.
    pub fn but(&mut self, name: &'static str, says: &'static str, draft: &Draft, change: impl FnOnce(&mut Draft)) {
        let mut changed = draft.clone();
        change(&mut changed);
        self.bytes(name, says, draft.raw_len as usize, changed.frame());
    }

    /// A draft whose bytes are changed, then sealed.
    fn patched(&mut self, name: &'static str, says: &'static str, draft: &Draft, change: impl FnOnce(&mut Vec<u8>)) {
        let mut frame = draft.frame();
        change(&mut frame);
        seal(&mut frame);
        self.bytes(name, says, draft.raw_len as usize, frame);
    }
}

/// All of them, in the order of the rules.
pub fn all() -> Vec<Refused> {
    let mut list = List::default();
    frame_rules(&mut list);
    section_rules(&mut list);
    bytes_rules(&mut list);
    szx::rules(&mut list);
    lorenzo::rules(&mut list);
    ndzip_rules(&mut list);
    planes::refused::frame_rules(&mut list);
    planes::refused::rules(&mut list);
    scaled::rules(&mut list);
    dense::rules(&mut list);
    list.0
}

/// F1 to F9: the mark, the version, lengths, the checksum, codec, mode, rank and type.
fn frame_rules(list: &mut List) {
    let [stored, szx, lorenzo, ndzip, bytes] = ["stored", "szx", "lorenzo", "ndzip", "bytes"].map(example);
    let whole = stored.frame();
    list.bytes("F1-no-bytes", "header has 0 bytes where 56", 1, Vec::new());
    list.bytes("F1-frame-of-55-bytes", "header has 55 bytes where 56", 1, whole[..55].into());
    list.patched("F2-another-magic", "mark", &stored, |f| f[7] = 0x0A);
    list.but("F3-version-0", "format 0", &stored, |d| d.version = 0);
    list.but("F3-version-1", "a build before 0.1.0", &stored, |d| d.version = 1);
    list.but("F3-version-3", "format 3", &stored, |d| d.version = 3);
    list.but("F18-draft-of-another-state", "an unreleased build", &stored, |d| d.draft = 1);
    list.bytes("F4-last-byte-cut", "frame has 64 bytes where 65", 1, whole[..64].into());
    list.bytes("F4-one-byte-more", "frame has 66 bytes where 65", 1, [&whole[..], &[0]].concat());
    list.bytes("F4-stored-length-of-a-byte-more", "frame has 65 bytes where 66", 1, {
        // In as many words: the checksum is that of the longer frame, too.
        let mut f = whole.clone();
        f[24] += 1;
        let sum = checksum(&f);
        f[40..48].copy_from_slice(&sum.to_le_bytes());
        f
    });
    let changed = |at: usize| {
        let mut f = whole.clone();
        f[at] ^= 1;
        f
    };
    list.bytes("F5-changed-raw-byte", "checksum", 1, changed(64));
    list.bytes("F5-changed-checksum", "checksum", 1, changed(47));
    list.but("F6-codec-8", "codec 8", &stored, |d| d.codec = 8);
    list.but("F6-codec-255", "codec 255", &stored, |d| d.codec = 255);
    list.but("F7-mode-0", "mode 0", &szx, |d| d.mode = 0);
    list.but("F7-mode-5", "mode 5", &szx, |d| d.mode = 5);
    list.but("F7-stored-in-mode-1", "mode 1", &stored, |d| d.mode = 1);
    list.but("F7-bytes-in-mode-2", "mode 2", &bytes, |d| d.mode = 2);
    list.but("F7-ndzip-in-mode-3", "mode 3", &ndzip, |d| d.mode = 3);
    let lossless = |d: &mut Draft| (d.mode, d.bound) = (9, 0);
    list.but("F7-szx-in-mode-9", "szx with mode", &szx, lossless);
    list.but("F7-lorenzo-in-mode-9", "lorenzo with mode", &lorenzo, lossless);
    list.but("F8-rank-9", "rank 9", &ndzip, |d| d.dims = vec![2, 3, 683, 1, 1, 1, 1, 1, 1]);
    let border = vec![le(&[1, 512]), vec![0; 4 * 512]];
    list.draft("F8-rank-9-of-512-values", "rank 9", &Draft::new(3, 9, 0.0, F32, &[2; 9], border));
    list.but("F8-stored-with-an-extent", "1 extents", &stored, |d| d.dims = vec![2]);
    list.but("F8-bytes-with-an-extent", "1 extents", &bytes, |d| d.dims = vec![64]);
    list.bytes("F8-stored-swapped", "rank 0 with", 1, by_hand::swapped(&stored.frame()));
    let one_axis = Draft::new(3, 9, 0.0, F32, &[512], vec![le(&[1, 512]), vec![0; 4 * 512]]);
    list.bytes("F8-swapped-rank-1", "rank 1 with", 4 * 512, by_hand::swapped(&one_axis.frame()));
    let coded: [&[u8]; 3] = [&[64 + 2 + 9, 0, 0, 0], &[0; 4], &[1; 2 * 128]];
    let two_axes = by_hand::szx_frame(1, 0.5, F32, &[2, 64], &coded);
    list.bytes("F8-szx-swapped", "exchanged, codec szx", 4 * 128, by_hand::swapped(&two_axes.frame()));
    let two_axes = Draft { dims: vec![2, 256], ..one_axis };
    list.bytes("F8-ndzip-swapped", "exchanged, codec ndzip", 4 * 512, by_hand::swapped(&two_axes.frame()));
    list.but("F9-class-2", "type word", &stored, |d| d.kind = 2);
    list.but("F9-bit-13", "type word", &stored, |d| d.kind |= 1 << 13);
    list.but("F9-bit-15", "type word", &stored, |d| d.kind |= 1 << 15);
    list.but("F9-szx-of-integers", "Integer", &szx, |d| d.kind = I32);
    list.but("F9-szx-with-5-exponent-bits", "exponent_bits: 5", &szx, |d| d.kind = F32 - (3 << 16));
    list.but("F9-lorenzo-without-sign", "signed: false", &lorenzo, |d| d.kind &= !(1 << 14));
    list.but("F9-lorenzo-with-10-mantissa-bits", "mantissa_bits: 10", &lorenzo, |d| d.kind -= 13 << 24);
    let whole = Draft::of_integers(&by_hand::ends(&[36]), 0x4080);
    list.but("F9-lorenzo-of-integers-in-mode-1", "Integer", &whole, |d| d.mode = 1);
    let odd = Draft { raw_len: 36 * 8 + 1, ..whole.clone() };
    list.draft("F14-lorenzo-of-integers-and-a-byte", "raw length 289", &odd);
    list.draft("F9-lorenzo-of-integers-of-3-bytes", "size: 3", &Draft { kind: 0x4030, raw_len: 36 * 3, ..whole });
    list.but("F9-ndzip-of-bytes", "Bytes", &ndzip, |d| d.kind |= 15);
    list.but("F9-ndzip-of-2-byte-numbers", "elements of 2 bytes", &ndzip, |d| {
        (d.kind, d.dims[0]) = (0x4020, 2 * d.dims[0]);
    });
}

/// F10 to F17: the bound, extents, sections and what lies between them.
fn section_rules(list: &mut List) {
    let [stored, szx, lorenzo, ndzip, bytes] = ["stored", "szx", "lorenzo", "ndzip", "bytes"].map(example);
    list.but("F10-infinite-bound", "bound inf", &szx, |d| d.bound = f64::INFINITY.to_bits());
    list.but("F10-bound-that-is-no-number", "bound NaN", &szx, |d| d.bound = f64::NAN.to_bits());
    list.but("F10-negative-bound", "bound -5e-1", &szx, |d| d.bound |= 1 << 63);
    list.but("F10-bound-of-minus-zero", "bound -0e0", &lorenzo, |d| d.bound = 1 << 63);
    list.but("F10-stored-with-a-bound", "mode 9 with bound 5e-1", &stored, |d| d.bound = 0.5f64.to_bits());
    list.but("F10-bytes-with-a-bound", "mode 9 with bound 5e-324", &bytes, |d| d.bound = 1);
    list.but("F10-ndzip-with-a-bound-of-minus-zero", "mode 9 with bound -0e0", &ndzip, |d| d.bound = 1 << 63);
    list.but("F11-nine-sections", "9 sections", &stored, |d| d.sections.resize(9, Vec::new()));
    list.but("F11-stored-without-a-section", "0 sections", &stored, |d| d.sections.clear());
    list.but("F11-szx-with-three-sections", "3 sections", &szx, |d| d.sections.push(Vec::new()));
    list.but("F11-szx-without-sections", "sections end at 60, the frame at 64", &szx, |d| d.sections.clear());
    list.but("F11-lorenzo-with-three-sections", "3 sections", &lorenzo, |d| drop(d.sections.remove(1)));
    list.but("F11-ndzip-with-one-section", "1 sections", &ndzip, |d| drop(d.sections.remove(0)));
    list.but("F11-bytes-with-two-sections", "2 sections", &bytes, |d| drop(d.sections.remove(0)));
    list.patched("F12-header-beyond-the-frame", "header has 63 bytes where 64", &stored, |f| f.truncate(63));
    list.but("F13-extent-of-0", "extents [0]", &szx, |d| d.dims[0] = 0);
    let none = |codec: u8| Draft::new(codec, 1, 1e-3, F32, &[0], vec![Vec::new(); 2]);
    list.draft("F13-szx-of-no-values", "extents [0]", &none(1));
    list.draft("F13-planes-of-no-values", "extents [0]", &none(5));
    list.but("F13-extent-of-1", "extents [131, 1]", &szx, |d| d.dims.push(1));
    let many = Draft { raw_len: 0, ..Draft::new(3, 9, 0.0, F32, &[2], vec![Vec::new(); 2]) };
    list.draft("F13-extents-of-2^64-values", "extents [256, 256", &Draft { dims: vec![256; 8], ..many });
    list.but("F14-szx-with-other-extents", "raw length 524", &szx, |d| d.dims[0] = 132);
    list.but("F14-lorenzo-with-other-extents", "raw length 396", &lorenzo, |d| d.dims.push(2));
    list.but("F14-ndzip-of-another-size", "raw length 16392", &ndzip, |d| d.kind = F64);
    list.bytes("F15-two-bytes-expected", "caller", 2, stored.frame());
    let mut two = stored.clone();
    two.raw_len = 2;
    list.draft("F15-stored-section-of-another-length", "raw bytes has 1 bytes where 2", &two);
    list.patched("F16-section-beyond-the-frame", "section 0 has 2 bytes", &stored, |f| f[56] = 2);
    list.patched("F16-sections-end-before-the-frame", "sections end at 64", &stored, |f| f[56] = 0);
    list.patched("F16-lengths-that-add-up-modulo-2^64", "section 1 has 18446744073709551608 bytes", &bytes, |f| {
        f[64..72].copy_from_slice(&(-8i64).to_le_bytes());
        f[72..80].copy_from_slice(&(78 + 16i64).to_le_bytes());
    });
    list.patched("F17-filling-behind-the-header", "filled up", &szx, |f| f[76] = 1);
    list.patched("F17-filling-between-sections", "filled up", &szx, |f| f[87] = 0x80);
    list.patched("F17-filling-before-the-last-section", "filled up", &lorenzo, |f| f[135] = 1);
}

fn bytes_rules(list: &mut List) {
    let runs = |n: u32| zstd_runs(&[(7, n)]);
    // Three tiles: 100 and 100 bytes of zstd, 50 raw ones.
    let good = bytes_frame(250, 2, 100, &[runs(100), runs(100), vec![3; 50]]);
    let head = |stride: u32, tile: u32| move |d: &mut Draft| d.sections[0] = le(&[stride, tile]);
    let tile = |code: Vec<u8>| bytes_frame(100, 1, 100, &[code]);
    list.but("B1-head-of-7-bytes", "head has 7 bytes", &good, |d| d.sections[0].truncate(7));
    list.but("B1-head-of-9-bytes", "head has 9 bytes", &good, |d| d.sections[0].push(0));
    list.but("B2-stride-0", "stride 0", &good, head(0, 100));
    list.but("B2-stride-256", "stride 256", &good, head(256, 512));
    list.draft("B2-stride-256-of-one-element", "stride 256", &bytes_frame(256, 256, 512, &[runs(256)]));
    list.but("B3-tiles-of-0-bytes", "tiles of 0 bytes", &good, head(2, 0));
    list.but("B3-tiles-of-1048577-bytes", "tiles of 1048577", &good, head(1, 1_048_577));
    let long = bytes_frame(250, 1, 1_048_577, &[runs(250)]);
    list.draft("B3-one-tile-of-1048577-bytes", "tiles of 1048577", &long);
    list.but("B3-tiles-of-cut-elements", "tiles of 100 bytes", &good, head(3, 100));
    list.but("B4-an-end-too-few", "tile ends has 16 bytes where 24", &good, |d| d.sections[1].truncate(16));
    list.but("B4-an-end-too-many", "tile ends has 32 bytes where 24", &good, |d| d.sections[1].extend([0; 8]));
    list.but("B4-half-an-end", "tile ends has 28 bytes where 24", &good, |d| d.sections[1].extend([0; 4]));
    list.but("B4-tiles-of-one-byte", "tile ends has 24 bytes where 2000", &good, head(1, 1));
    list.but("B5-tile-of-no-bytes", "tile 1 lies at 10 to 10", &good, |d| d.sections[1].copy_within(0..8, 8));
    list.but("B5-ends-that-fall", "tile 1 lies at 10 to 9", &good, |d| d.sections[1][8] = 9);
    list.draft("B6-tile-longer-than-its-bytes", "limits are 1 to 100", &tile(vec![0; 101]));
    // One block of 100 bytes as they are: a frame of 109.
    let raw = [&[0x28, 0xB5, 0x2F, 0xFD, 0, 0][..], &(1 | 100u32 << 3).to_le_bytes()[..3], &[3; 100]].concat();
    list.draft("B6-zstd-frame-longer-than-its-bytes", "limits are 1 to 100", &tile(raw));
    list.but("B7-end-beyond-the-payload", "tile 2 lies at", &good, |d| {
        d.sections[2].pop();
    });
    list.but("B7-byte-behind-the-last-tile", "payload has 71 bytes where 70", &good, |d| d.sections[2].push(0));
    let mut code = runs(100);
    code[0] ^= 1;
    list.draft("B8-no-zstd-frame", "tile 0, 10 bytes", &tile(code));
    list.draft("B8-two-zstd-frames", "ends at 10", &tile([runs(100), runs(0)].concat()));
    list.draft("B8-byte-behind-a-zstd-frame", "ends at 10", &tile([runs(100), vec![0]].concat()));
    list.draft("B8-cut-zstd-frame", "tile 0, 9 bytes", &tile(runs(100)[..9].into()));
    list.draft("B8-skippable-frame", "tile 0", &tile([&[0x50, 0x2A, 0x4D, 0x18, 4, 0, 0, 0][..], &[1; 4]].concat()));
    let mut code = runs(100);
    code[6] |= 3 << 1;
    list.draft("B8-block-of-a-reserved-type", "tile 0", &tile(code));
    // A descriptor that brings a dictionary's number of one byte.
    let mut code = runs(100);
    code[4] = 1;
    code.insert(6, 9);
    list.draft("B8-dictionary", "tile 0", &tile(code));
    // A descriptor that says: a content checksum follows.
    let mut code = runs(100);
    code[4] = 4;
    code.extend([1, 2, 3, 4]);
    list.draft("B8-wrong-content-checksum", "tile 0", &tile(code));
    list.draft("B9-content-too-short", "zstd gives 99 bytes", &tile(runs(99)));
    list.draft("B9-content-too-long", "tile 0", &tile(runs(101)));
    // A descriptor with a size of 8 bytes: 2^40.
    let mut code = runs(100);
    code[4] = 0xC0;
    code.splice(6..6, (1u64 << 40).to_le_bytes());
    list.draft("B9-size-of-a-terabyte", "tile 0", &tile(code));
    // The upper half of the stride's word is the unit.
    let long = bytes_frame(256, 1 << 16 | 256, 512, &[runs(256)]);
    list.draft("B2-stride-256-of-bits-of-one-element", "stride 256", &long);
    list.but("B3-bits-of-cut-elements", "tiles of 100 bytes", &good, head(1 << 16 | 3, 100));
    list.but("B10-unit-2", "unit 2;", &good, head(2 << 16 | 2, 100));
    list.but("B10-unit-256", "unit 256", &good, head(256 << 16 | 2, 100));
}

fn ndzip_rules(list: &mut List) {
    let ndzip =
        |kind: u32, n: u32, grid: &[u32], stream: Vec<u8>| Draft::new(3, 9, 0.0, kind, &[n], vec![le(grid), stream]);
    let border = |grid: &[u32]| ndzip(F32, 40, grid, vec![0; 160]);
    // Two cubes of zeros and two values of border.
    let two = |ends: [u32; 2]| ndzip(F32, 8194, &[1, 8194], [le(&ends), vec![0; 4 * (256 + 2)]].concat());
    list.draft("N1-no-grid", "0 bytes for rank", &border(&[]));
    list.draft("N1-rank-0", "rank 0", &border(&[0]));
    list.draft("N1-rank-4", "rank 4", &border(&[4, 2, 2, 2, 5]));
    list.draft("N1-extent-too-many", "12 bytes for rank 1", &border(&[1, 40, 1]));
    list.draft("N2-extent-of-0", "extents [0, 40]", &border(&[2, 0, 40]));
    list.draft("N2-another-product", "extents [5, 9] for 40", &border(&[2, 5, 9]));
    list.draft("N2-product-modulo-2^32", "extents [2, 2147483668] for 40", &border(&[2, 2, (1 << 31) + 20]));
    list.draft("N3-stream-of-cut-words", "161 bytes for 0 cubes", &ndzip(F32, 40, &[1, 40], vec![0; 161]));
    list.draft("N3-stream-too-short", "156 bytes for 0 cubes", &ndzip(F32, 40, &[1, 40], vec![0; 156]));
    list.draft("N3-no-stream", "0 bytes for 1 cubes", &ndzip(F32, 4096, &[1, 4096], Vec::new()));
    let filled = [le(&[64, 1]), vec![0; 512]].concat();
    list.draft("N4-filling-of-the-table", "filled up with [01", &ndzip(F64, 4096, &[1, 4096], filled));
    list.draft("N5-ends-that-fall", "cube 1 ends at word 127", &two([128, 127]));
    list.draft("N6-cube-of-127-words", "cube 0: 127 words", &two([127, 256]));
    list.draft("N6-cube-of-4225-words", "cube 1: 4225 words", &two([128, 128 + 4225]));
    let long = ndzip(F32, 4096, &[1, 4096], [le(&[128]), vec![0; 4 * 129]].concat());
    list.draft("N7-cubes-that-end-before-the-border", "cubes end at word 128", &long);
    let head = |bits: u32, planes: u32| {
        let mut words = vec![128 + planes, bits];
        words.resize(1 + (128 + planes) as usize, 0);
        ndzip(F32, 4096, &[1, 4096], le(&words))
    };
    list.draft("N8-plane-too-few", "cube 0", &head(5, 1));
    list.draft("N8-plane-too-many", "cube 0", &head(5, 3));
}
