// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that every reader must refuse: at least one for each rule of §7 of the six documents. All else about them is right,
//! the checksum too. Those of `planes` stand in planes/refused.rs.

use super::by_hand::{bytes_frame, fixed_width, le, szx_frame, without_codebook, zstd_runs};
use super::draft::{Draft, F32, F64, I32};
use super::frames::Parts;
use super::planes;
use super::seal::seal;
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
    let head = "# NAME.bin: the rule of §7 that it breaks, its codec, the raw bytes that its caller expects, and why it is refused.\n";
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
    bytes_rules(&mut list);
    szx_rules(&mut list);
    lorenzo_rules(&mut list);
    ndzip_rules(&mut list);
    planes::refused::frame_rules(&mut list);
    planes::refused::rules(&mut list);
    list.0
}

fn frame_rules(list: &mut List) {
    let [stored, szx, lorenzo, ndzip, bytes] = ["stored", "szx", "lorenzo", "ndzip", "bytes"].map(example);
    let whole = stored.frame();
    list.bytes("F1-no-bytes", "header has 0 bytes where 56", 1, Vec::new());
    list.bytes("F1-frame-of-55-bytes", "header has 55 bytes where 56", 1, whole[..55].into());
    list.patched("F2-another-magic", "mark", &stored, |f| f[7] = 0x0A);
    list.but("F3-version-0", "format 0", &stored, |d| d.version = 0);
    list.but("F3-version-2", "format 2", &stored, |d| d.version = 2);
    list.bytes("F4-last-byte-cut", "frame has 64 bytes where 65", 1, whole[..64].into());
    list.bytes("F4-one-byte-more", "frame has 66 bytes where 65", 1, [&whole[..], &[0]].concat());
    let changed = |at: usize| {
        let mut f = whole.clone();
        f[at] ^= 1;
        f
    };
    list.bytes("F5-changed-raw-byte", "checksum", 1, changed(64));
    list.bytes("F5-changed-checksum", "checksum", 1, changed(47));
    list.but("F6-codec-6", "codec 6", &stored, |d| d.codec = 6);
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
    list.but("F8-stored-with-an-extent", "1 extents", &stored, |d| d.dims = vec![2]);
    list.but("F8-bytes-with-an-extent", "1 extents", &bytes, |d| d.dims = vec![64]);
    list.but("F9-class-2", "type word", &stored, |d| d.kind = 2);
    list.but("F9-bit-13", "type word", &stored, |d| d.kind |= 1 << 13);
    list.but("F9-bit-15", "type word", &stored, |d| d.kind |= 1 << 15);
    list.but("F9-szx-of-integers", "Integer", &szx, |d| d.kind = I32);
    list.but("F9-szx-with-5-exponent-bits", "exponent_bits: 5", &szx, |d| d.kind = F32 - (3 << 16));
    list.but("F9-lorenzo-without-sign", "signed: false", &lorenzo, |d| d.kind &= !(1 << 14));
    list.but("F9-lorenzo-with-10-mantissa-bits", "mantissa_bits: 10", &lorenzo, |d| d.kind -= 13 << 24);
    list.but("F9-ndzip-of-bytes", "Bytes", &ndzip, |d| d.kind |= 15);
    list.but("F9-ndzip-of-2-byte-numbers", "elements of 2 bytes", &ndzip, |d| {
        (d.kind, d.dims[0]) = (0x4020, 2 * d.dims[0]);
    });
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
    list.but("F13-extent-of-1", "extents [131, 1]", &szx, |d| d.dims.push(1));
    let many = Draft { raw_len: 0, ..Draft::new(3, 9, 0.0, F32, &[2], vec![Vec::new(); 2]) };
    list.draft("F13-extents-of-2^64-values", "extents [256, 256", &Draft { dims: vec![256; 8], ..many });
    list.but("F14-szx-with-other-extents", "raw length 524", &szx, |d| d.dims[0] = 132);
    list.but("F14-lorenzo-with-other-extents", "raw length 396", &lorenzo, |d| d.dims.push(2));
    list.but("F14-ndzip-of-another-size", "raw length 16392", &ndzip, |d| d.kind = F64);
    list.bytes("F15-two-bytes-expected", "caller", 2, whole.clone());
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
    list.but("B3-tiles-of-0-bytes", "tiles of 0 bytes", &good, head(2, 0));
    list.but("B3-tiles-of-1048577-bytes", "tiles of 1048577", &good, head(1, 1_048_577));
    list.but("B3-tiles-of-cut-elements", "tiles of 100 bytes", &good, head(3, 100));
    list.but("B4-an-end-too-few", "tile ends has 16 bytes where 24", &good, |d| d.sections[1].truncate(16));
    list.but("B4-an-end-too-many", "tile ends has 32 bytes where 24", &good, |d| d.sections[1].extend([0; 8]));
    list.but("B4-half-an-end", "tile ends has 28 bytes where 24", &good, |d| d.sections[1].extend([0; 4]));
    list.but("B4-tiles-of-one-byte", "tile ends has 24 bytes where 2000", &good, head(1, 1));
    list.but("B5-tile-of-no-bytes", "tile 1 lies at 10 to 10", &good, |d| d.sections[1].copy_within(0..8, 8));
    list.but("B5-ends-that-fall", "tile 1 lies at 10 to 9", &good, |d| d.sections[1][8] = 9);
    list.draft("B6-tile-longer-than-its-bytes", "limits are 1 to 100", &tile(vec![0; 101]));
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
}

fn szx_rules(list: &mut List) {
    let good = example("szx");
    // Sections of the example: 20 units of payload; A at 0, B at 4, C at 12, D at 28, E at 32, F at 64 to 79.
    let payload = |at: usize, byte: u8| move |d: &mut Draft| d.sections[1][at] = byte;
    let table = |ends: &'static [u32]| move |d: &mut Draft| d.sections[0] = le(ends);
    list.but("S1-table-without-entry", "table has 0 bytes where 4", &good, table(&[]));
    list.but("S1-table-of-two-tiles", "table has 8 bytes where 4", &good, table(&[20, 20]));
    let huge = Draft::new(1, 1, 1e-3, F64, &[100_000_000, 2], vec![Vec::new(); 2]);
    list.bytes("F15-two-hundred-million-values", "caller", 1 << 20, huge.frame());
    list.but("S2-end-beyond-the-payload", "tile 0 ends at 84", &good, table(&[21]));
    let two = Draft { raw_len: 4 * 4097, dims: vec![4097], ..good.clone() };
    list.bytes("S2-ends-that-fall", "tile 1 ends at 4", 4 * 4097, {
        let mut d = two.clone();
        table(&[2, 1])(&mut d);
        d.frame()
    });
    list.but("S3-payload-behind-the-last-end", "the last tile ends at 76", &good, table(&[19]));
    list.but("S4-zero-with-high-bits-1", "kind 0x40", &good, payload(1, 0x40));
    list.but("S4-constant-with-high-bits-1", "kind 0x41", &good, payload(1, 0x41));
    list.but("S4-raw-with-high-bits-1", "kind 0x42", &good, payload(1, 0x42));
    list.but("S4-raw-with-specials", "kind 0x82", &good, payload(1, 0x82));
    list.but("S4-raw-with-uniform-specials", "kind 0xc2", &good, payload(1, 0xC2));
    list.but("S5-q-of-24-in-an-absolute-mode", "kind 0x1a", &good, payload(0, 2 + 24));
    list.but("S5-q-of-8-in-mode-3", "kind 0x0a", &good, |d| {
        d.mode = 3;
        d.sections[1][0] = 2 + 8;
    });
    list.but("S5-q-of-33-in-mode-3", "kind 0x23", &good, |d| {
        d.mode = 3;
        d.sections[1][0] = 2 + 33;
    });
    list.but("S6-coded-with-a-bound-of-0", "kind 0xc6", &good, |d| d.bound = 0);
    list.but("S6-coded-with-a-bound-of-1e39", "kind 0xc6", &good, |d| d.bound = 1e39f64.to_bits());
    list.but("S6-coded-with-a-subnormal-bound", "kind 0xc6", &good, |d| d.bound = 1);
    list.but("S7-byte-behind-the-kinds", "kinds are not filled up", &good, payload(3, 1));
    list.but("S8-bitmap-of-no-bit", "bitmap 0x0", &good, payload(12, 0));
    list.but("S8-bitmap-beyond-the-values", "block 1 of 3 values has the bitmap", &good, |d| {
        // A zero block with one outlier: the bitmap's bit is that of value 3 of 3.
        let parts: [&[u8]; 3] = [&[1, 0xC0, 0, 0], &le(&[0x3F80_0000, 8, 0, 0, 0]), &[0, 0, 0xC0, 0x7F]];
        d.sections = szx_frame(1, 0.5, F32, &[131], &parts).sections;
    });
    list.but("S9-code-of-2-with-words-of-1-byte", "code above 1", &good, payload(48, 1));
    let q10: [&[u8]; 5] = [&[2 + 10, 0, 0, 0], &[0; 4], &[1; 16], &[1; 16], &[0; 128]];
    list.draft("S9-code-of-3-with-words-of-2-bytes", "code above 2", &szx_frame(1, 0.5, F32, &[128], &q10));
    list.but("S10-payload-without-kinds", "0 bytes are too few", &good, |d| {
        d.sections = vec![le(&[0]), Vec::new()];
    });
    list.but("S10-payload-too-short", "76 bytes, its blocks need 80", &good, |d| {
        d.sections[1].truncate(76);
        table(&[19])(d);
    });
    list.but("S10-payload-too-long", "84 bytes, its blocks need 80", &good, |d| {
        d.sections[1].extend([0; 4]);
        table(&[21])(d);
    });
    list.but("S11-byte-behind-the-parts", "payload is not filled up", &good, payload(79, 1));
}

/// A tile of `n` values along one axis, class Huffman, every residual one bit: symbol 35 is 0, 36 is 1.
fn stream(n: usize, words: &[u32]) -> Draft {
    let mut p = without_codebook(4, 1, 0.5, &[n as u32]);
    p.head = [&[37][..], &[0; 17], &[0x10, 0x01]].concat();
    p.kinds.push(0x10);
    p.payloads.push(le(words));
    Draft::of(&p.frame())
}

fn lorenzo_rules(list: &mut List) {
    let good = example("lorenzo");
    // Of the example, head: 37 symbols, 19 bytes of lengths; payload: 2 records, a stream of one word.
    let head = |bytes: &'static [u8]| move |d: &mut Draft| d.sections[0] = bytes.into();
    let kind = |kind: u8| move |d: &mut Draft| d.sections[1] = vec![kind];
    let payload = |words: &'static [u32]| {
        move |d: &mut Draft| {
            d.sections[2] = le(&[words.len() as u32]);
            d.sections[3] = le(words);
        }
    };
    list.but("L1-head-of-no-bytes", "head has 0 bytes where 1", &good, head(&[]));
    list.but("L1-head-too-short", "head has 19 bytes where 20", &good, |d| d.sections[0].truncate(19));
    list.but("L1-head-too-long", "head has 21 bytes where 20", &good, |d| d.sections[0].push(0));
    list.but("L2-189-symbols", "189 symbols", &good, |d| {
        // The last one in use is 188.
        d.sections[0][0] = 189;
        d.sections[0][19] = 0;
        d.sections[0].resize(96, 0);
        d.sections[0][95] = 2;
    });
    list.but("L3-bits-behind-the-last-length", "bits after", &good, |d| d.sections[0][19] = 0x12);
    list.but("L4-last-symbol-not-in-use", "last of 38 symbols", &good, |d| d.sections[0][0] = 38);
    list.but("L5-codeword-of-12-bits", "too long", &good, |d| d.sections[0][1] = 12);
    list.but("L6-over-full", "over-full", &good, |d| d.sections[0][1] = 1);
    list.but("L7-under-full", "under-full", &good, |d| d.sections[0][19] = 3);
    list.but("L7-single-codeword", "under-full", &good, head(&[1, 1]));
    list.but("L8-kind-too-few", "kinds has 0 bytes where 1", &good, |d| d.sections[1].clear());
    list.but("L8-kind-too-many", "kinds has 2 bytes where 1", &good, |d| d.sections[1].push(0));
    // 68 tiles, of which tile 51 is raw: 32 values.
    let mut many = without_codebook(4, 1, 0.5, &[17, 17, 513]);
    many.kinds = vec![0; 68];
    many.kinds[51] = 0x30;
    many.payloads = vec![Vec::new(); 68];
    many.payloads[51] = vec![0; 4 * 32];
    let many = Draft::of(&many.frame());
    let start = |unit: u32| move |d: &mut Draft| d.sections[2][136..].copy_from_slice(&unit.to_le_bytes());
    list.but("L9-no-lengths", "lengths has 0 bytes where 4", &good, |d| d.sections[2].clear());
    list.but("L9-length-not-filled-up", "lengths has 2 bytes where 4", &good, |d| d.sections[2].truncate(2));
    list.but("L9-length-too-many", "lengths has 8 bytes where 4", &good, |d| d.sections[2].extend([0; 4]));
    list.but("L9-start-too-few", "lengths has 136 bytes where 140", &many, |d| d.sections[2].truncate(136));
    list.but("L9-start-too-many", "lengths has 144 bytes where 140", &many, |d| d.sections[2].extend([32, 0, 0, 0]));
    let huge = Draft::new(2, 1, 1e-3, F32, &[100_000_000], vec![Vec::new(); 4]);
    list.bytes("F15-hundred-million-values", "caller", 1 << 20, huge.frame());
    list.but("L10-byte-behind-the-last-length", "behind the lengths", &good, |d| d.sections[2][2] = 1);
    list.but("L11-start-that-is-not-the-sum", "starts at", &many, start(33));
    list.but("L11-start-at-16-GiB", "starts at", &many, start(u32::MAX));
    list.but("L11-length-that-is-missing", "starts at", &many, |d| d.sections[2][2 * 51] = 0);
    list.but("L12-lengths-beyond-the-payload", "payload has 24 bytes", &good, |d| d.sections[2][0] = 7);
    list.but("L12-payload-behind-the-lengths", "payload has 24 bytes", &good, |d| d.sections[2][0] = 5);
    list.but("L12-byte-behind-the-payload", "payload has 25 bytes", &good, |d| d.sections[3].push(0));
    list.but("L12-lengths-of-65535-units", "payload has 128 bytes", &many, |d| d.sections[2][130..136].fill(255));
    list.but("L13-bit-7-of-a-kind", "kind 0xd1", &good, kind(0xD1));
    list.but("L13-finer-steps-without-axes", "kind 0xd0", &good, kind(0xD0));
    list.but("L14-interpolation-without-axes", "kind 0x58", &good, kind(0x58));
    list.but("L14-finer-steps-of-interpolation-without-axes", "kind 0xd8", &good, kind(0xD8));
    list.but("L14-interpolation-along-an-axis-of-one-value", "axes 0b010 of [1, 1, 99]", &good, kind(0x5A));
    list.but("L14-interpolation-along-another-axis-of-one-value", "axes 0b101 of [1, 1, 99]", &good, kind(0x5D));
    // Of two tiles, 16 x 16 x 32 and 16 x 16 x 1, the second has one value along x.
    let mut last = without_codebook(4, 1, 0.5, &[16, 16, 33]);
    (last.kinds, last.payloads) = (vec![0x0F, 0x0F], vec![Vec::new(); 2]);
    let last = Draft::of(&last.frame());
    list.draft("L14-interpolation-along-one-value-of-the-last-tile", "axes 0b111 of [16, 16, 1]", &last);
    list.but("L15-interpolation-in-mode-3", "kind 0x59", &good, |d| {
        d.mode = 3;
        d.sections[1] = vec![0x59];
    });
    list.but("L16-raw-with-axes", "kind 0x31", &good, kind(0x31));
    list.but("L16-raw-with-exceptions", "kind 0x70", &good, kind(0x70));
    list.but("L16-raw-and-interpolated", "kind 0x39", &good, kind(0x39));
    list.but("L16-raw-with-finer-steps", "kind 0xb9", &good, kind(0xB9));
    list.but("L17-raw-tile-too-short", "raw payload of 24 bytes, 396", &good, kind(0x30));
    list.but("L18-empty-with-a-stream", "for an empty tile", &good, kind(0x41));
    list.but("L19-no-record-of-exceptions", "0 outliers", &good, payload(&[0, 0x0001_0B0B]));
    list.but("L19-more-records-than-values", "100 outliers among 99", &good, |d| d.sections[3][0] = 100);
    list.but("L20-exceptions-beyond-the-payload", "outliers need", &good, |d| d.sections[3][0] = 3);
    list.but("L20-no-count-of-exceptions", "no count", &good, payload(&[]));
    list.but("L21-records-that-overlap", "outliers at 10 to 10, after 11", &good, |d| d.sections[3][8] = 10);
    list.but("L21-records-that-fall", "outliers at 8 to 8, after 11", &good, |d| d.sections[3][8] = 8);
    list.but("L22-exceptions-beyond-the-tile", "outliers at 40 to 99", &good, |d| d.sections[3][10] = 59);
    list.but("L22-65536-exceptions-from-the-last-place", "outliers at 98 to 65633", &good, |d| {
        d.sections[3][8..12].copy_from_slice(&[98, 0, 255, 255]);
    });
    let fixed = |n: usize, payload: Vec<u8>| {
        let mut p: Parts = without_codebook(4, 1, 0.5, &[n as u32]);
        p.kinds.push(0x20);
        p.payloads.push(payload);
        Draft::of(&p.frame())
    };
    list.draft("L23-no-width", "no width", &fixed(5, Vec::new()));
    list.draft("L23-width-0", "residuals of 0 bits", &fixed(5, le(&[0])));
    list.draft("L23-width-33", "residuals of 33 bits", &fixed(5, le(&[33, 0, 0, 0, 0, 0, 0])));
    list.draft("L24-word-too-few", "4 bytes of residuals of 7 bits, 8", &fixed(5, le(&[7, 0])));
    list.draft("L24-word-too-many", "12 bytes of residuals of 7 bits, 8", &fixed(5, le(&[7, 0, 0, 0])));
    let mut bits = fixed_width(5, 7, || 1);
    bits[4 + 4] |= 1 << 3;
    list.draft("L25-bit-behind-the-last-residual", "bits after the last residual", &fixed(5, bits));
    list.but("L26-stream-of-no-words", "no words", &good, |d| {
        d.sections[2] = le(&[5]);
        d.sections[3].truncate(20);
    });
    list.but("L26-stream-without-a-codebook", "no codebook", &good, head(&[0]));
    list.draft("L27-stream-too-short", "codewords end at bit 33", &stream(33, &[0]));
    list.draft("L27-long-stream-too-short", "a stream of 2016 bits", &stream(2048, &[0; 63]));
    // Symbols 0 and 119 of one bit each: the second escape's 30 bits are not there.
    let mut escapes = stream(2, &[u32::MAX]);
    escapes.sections[0] = [&[120, 1][..], &[0; 58], &[0x10]].concat();
    list.draft("L27-outlier-behind-the-end", "codewords end at bit 62", &escapes);
    // In place of zeros to the end: a run of 33, where 32 are left.
    list.but("L28-run-beyond-the-tile", "99 expected", &good, |d| d.sections[3][22] = 0x19);
    // Two symbols of one bit each, in a tile of five.
    let two = |head: Vec<u8>| {
        let mut d = stream(5, &[0]);
        d.sections[0] = head;
        d
    };
    let runs = two([&[35][..], &[0; 16], &[0x10, 1]].concat());
    list.draft("L28-run-of-4096-zeros", "5 expected", &runs);
    let joint = |symbol: u8| two([&[symbol + 2][..], &vec![0; usize::from(symbol) / 2], &[0x11]].concat());
    list.draft("L28-residual-beyond-the-tile", "5 expected", &joint(120));
    list.draft("L28-joint-run-beyond-the-tile", "5 expected", &joint(184));
    list.but("L29-word-behind-the-stream", "64 bits whose codewords end at bit 20", &good, |d| {
        d.sections[3].extend([0; 4]);
        d.sections[2][0] = 7;
    });
    list.draft("L29-word-behind-a-long-stream", "a stream of 2080 bits", &stream(2048, &[0; 65]));
    list.but("L30-bit-behind-the-stream", "32 bits whose codewords end at bit 20", &good, |d| d.sections[3][23] = 1);
    let bit = stream(2040, &[&[0; 63][..], &[1 << 31]].concat());
    list.draft("L30-bit-behind-a-long-stream", "codewords end at bit 2040", &bit);
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
