// SPDX-License-Identifier: MIT OR Apache-2.0
//! Golden vectors: reading, making and checking them. tests/vectors/README.md says what they are.

use super::seal::released;
use super::{backends, by_hand, difference, fnv, generate};
use h5z_gpu::{Class, DecodeJob, Dtype, EncodeJob, Engine, Params, Request};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the vectors of format version 2 lie.
pub fn folder() -> PathBuf {
    // Of the library's package, or of one inside it.
    let mut vectors = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|package| package.join("tests/vectors"));
    vectors.find(|folder| folder.is_dir()).expect("a folder tests/vectors").join("v2")
}

/// Names of the codecs by their number in the frame.
pub const CODECS: [&str; 8] = ["stored", "szx", "lorenzo", "ndzip", "bytes", "planes", "scaled", "dense"];

/// What a vector is made from: everything but the answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub codec: String,
    pub name: String,
    pub generator: String,
    pub seed: u64,
    pub dtype: String,
    /// Empty: no extents are stated, `raw_bytes` bytes of unknown shape.
    pub dims: Vec<u64>,
    pub raw_bytes: usize,
    pub request: String,
    pub fill: Option<u64>,
}

/// codec | name | generator seed | type | extents, or a number of bytes of unknown shape | ask | fill value's bits
///
/// Frames of the generator `by-hand` are those of by_hand.rs, which no writer makes: they are read only.
const CASES: &str = include_str!("cases.txt");

/// Every case of the list, cases.txt. Lines are only added; `cargo run -p h5z-gpu-tools --bin vectors` writes new
/// files.
pub fn listed_cases() -> Vec<Case> {
    CASES.lines().filter(|l| !l.trim().is_empty()).map(|l| case(l).unwrap_or_else(|| panic!("a case: {l}"))).collect()
}

fn case(line: &str) -> Option<Case> {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let [codec, name, generator, dtype, shape, request, fill] = parts[..] else { return None };
    let (generator, seed) = generator.split_once(' ')?;
    let mut case = Case {
        codec: codec.into(),
        name: name.into(),
        generator: generator.into(),
        seed: seed.trim().parse().ok()?,
        dtype: dtype.into(),
        dims: Vec::new(),
        raw_bytes: 0,
        request: request.into(),
        fill: match fill {
            "" => None,
            hex => Some(u64::from_str_radix(hex.strip_prefix("0x")?, 16).ok()?),
        },
    };
    if let Some(bytes) = shape.strip_suffix(" bytes") {
        case.raw_bytes = bytes.parse().ok()?;
    } else {
        case.dims = shape.split('x').map(str::parse).collect::<Result<_, _>>().ok()?;
        case.raw_bytes = case.dims.iter().product::<u64>() as usize * usize::from(case.dtype().size);
    }
    Some(case)
}

/// A case and its answers.
#[derive(Clone)]
pub struct Vector {
    pub case: Case,
    /// FNV-1a of the input: says whether the generator is still the same. None where the frame was made by hand.
    pub raw_fnv: Option<u64>,
    /// FNV-1a of what decoding gives.
    pub decoded_fnv: u64,
    pub frame: Vec<u8>,
}

/// The text of a codec's vectors.toml: a row for each of its vectors, by name.
pub fn table(codec: &str, vectors: &[Vector]) -> String {
    let mut rows: Vec<&Vector> = vectors.iter().filter(|v| v.case.codec == codec).collect();
    rows.sort_by(|a, b| a.case.name.cmp(&b.case.name));
    let head = "# NAME.bin: input, request and answer; README.md says what each key means.\n";
    head.to_string() + &rows.into_iter().map(Vector::row).collect::<String>()
}

/// Name, keys and values of a row: `"NAME" = { key = value, … }`.
fn pairs(row: &str) -> Option<(&str, BTreeMap<&str, &str>)> {
    let (name, rest) = row.split_once(" = { ")?;
    let mut rest = rest.strip_suffix(" }")?;
    let mut pairs = BTreeMap::new();
    while !rest.is_empty() {
        let (key, value) = rest.split_once(" = ")?;
        let end = match value.as_bytes()[0] {
            b'"' => value[1..].find('"')? + 2,
            b'[' => value.find(']')? + 1,
            _ => value.find(',').unwrap_or(value.len()),
        };
        pairs.insert(key, &value[..end]);
        rest = value[end..].trim_start_matches(", ");
    }
    Some((name.trim_matches('"'), pairs))
}

/// What lies in a folder, sorted.
fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> =
        entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    paths.sort();
    Ok(paths)
}

impl Case {
    pub fn dtype(&self) -> Dtype {
        let (stem, big_endian) = self.dtype.strip_suffix("be").map_or((&*self.dtype, false), |s| (s, true));
        let integer = |size, signed| Dtype { class: Class::Integer, signed, ..Dtype::bytes(size) };
        let little = match stem {
            "f32" => Dtype::F32,
            "f64" => Dtype::F64,
            "f16" => Dtype::F16,
            "bfloat16" => Dtype::BFLOAT16,
            "i8" => integer(1, true),
            "u8" => integer(1, false),
            "i16" => integer(2, true),
            "u16" => integer(2, false),
            "i32" => integer(4, true),
            "u32" => integer(4, false),
            "i64" => integer(8, true),
            "u64" => integer(8, false),
            "unknown" => Dtype::bytes(0),
            _ => Dtype::bytes(stem.strip_prefix("bytes").and_then(|n| n.parse().ok()).expect("a type's name")),
        };
        Dtype { big_endian, ..little }
    }

    pub fn params(&self) -> Params {
        let request: Request = self.request.parse().expect("a request");
        let mut params = Params::new(request, self.dtype(), &self.dims).expect("parameters");
        params.fill = self.fill;
        params
    }

    pub fn input(&self) -> Vec<u8> {
        generate::input(&self.generator, self.seed, self.dtype(), &self.dims, self.fill, self.raw_bytes)
    }

    /// No writer makes the frame: it is read only.
    pub fn by_hand(&self) -> bool {
        self.generator == "by-hand"
    }

    /// Whether the decoded bytes lie beside the frame: of the documents' examples, and of frames that have many ways to
    /// be read wrong.
    pub fn shows_raw(&self) -> bool {
        let many_ways = ["f32-every-class", "f32-every-length", "f32-interpolated-every-way"];
        self.name.starts_with("worked-") || many_ways.contains(&&*self.name)
    }

    pub fn path(&self, ending: &str) -> PathBuf {
        folder().join(&self.codec).join(format!("{}.{ending}", self.name))
    }

    /// `bytes` depends on the zstd release, also inside `scaled`: what was written must be readable, and new frames may
    /// be no larger than this.
    pub fn size_limit(&self, frame: &[u8]) -> Option<usize> {
        let (mark, rest) = frame.split_at(8);
        // Sections begin at multiples of 8, and so does the frame that is one.
        let inner = rest.chunks(8).position(|part| part == mark).map(|k| rest[8 * k + 9]);
        let by_bytes = self.codec == "bytes" || self.codec == "scaled" && inner == Some(4);
        by_bytes.then_some(frame.len() + frame.len() / 20 + 64)
    }
}

impl Vector {
    /// Encodes and decodes the case with this build.
    pub fn make(case: Case) -> Result<Vector, String> {
        let engine = Engine::with_threads(1);
        let (raw_fnv, frame) = if case.by_hand() {
            (None, by_hand::frame(&case))
        } else {
            let raw = case.input();
            (Some(fnv(&raw)), released(&engine.encode(&case.params(), &raw)))
        };
        let codec = CODECS[usize::from(frame[9])];
        if codec != case.codec {
            return Err(format!("{}/{}: this build chose {codec}", case.codec, case.name));
        }
        if frame.len() >= 1 << 16 {
            return Err(format!("{}/{}: {} bytes, frames stay below 64 KiB", case.codec, case.name, frame.len()));
        }
        let decoded = engine.decode(&frame, case.raw_bytes as u64).map_err(|e| e.to_string())?;
        Ok(Vector { case, raw_fnv, decoded_fnv: fnv(&decoded), frame })
    }

    /// Writes the frame; refuses when one is there.
    pub fn write(&self) -> Result<(), String> {
        let bin = self.case.path("bin");
        if bin.exists() {
            return Err(format!("{} is there and is never rewritten; a new case needs a new name", bin.display()));
        }
        std::fs::create_dir_all(bin.parent().expect("a folder")).map_err(|e| e.to_string())?;
        std::fs::write(&bin, &self.frame).map_err(|e| format!("{}: {e}", bin.display()))?;
        self.write_raw()
    }

    /// The vector's row of vectors.toml.
    fn row(&self) -> String {
        let c = &self.case;
        let dims: Vec<String> = c.dims.iter().map(u64::to_string).collect();
        let mut pairs = vec![
            format!("generator = {:?}", c.generator),
            format!("seed = {}", c.seed),
            format!("dtype = {:?}", c.dtype),
            format!("dims = [{}]", dims.join(", ")),
            format!("raw_bytes = {}", c.raw_bytes),
            format!("ask = {:?}", c.request),
        ];
        pairs.extend(c.fill.map(|fill| format!("fill_bits = {fill:#x}")));
        pairs.extend(self.raw_fnv.map(|raw_fnv| format!("raw_fnv = \"{raw_fnv:016x}\"")));
        pairs.push(format!("decoded_fnv = \"{:016x}\"", self.decoded_fnv));
        pairs.push(format!("frame_bytes = {}", self.frame.len()));
        pairs.push(format!("frame_fnv = \"{:016x}\"", fnv(&self.frame)));
        format!("{:?} = {{ {} }}\n", c.name, pairs.join(", "))
    }

    /// Writes the decoded bytes where they are to be shown and are not there.
    pub fn write_raw(&self) -> Result<(), String> {
        let (c, path) = (&self.case, self.case.path("raw"));
        if !c.shows_raw() || path.exists() {
            return Ok(());
        }
        let raw = Engine::with_threads(1).decode(&self.frame, c.raw_bytes as u64).map_err(|e| e.to_string())?;
        std::fs::write(&path, raw).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Reads a row of `<folder>/vectors.toml`, and the `.bin` and `.raw` of its name.
    fn read(folder: &Path, row: &str) -> Result<Vector, String> {
        let (name, pairs) = pairs(row).ok_or_else(|| format!("{row:?} is no row of vectors.toml"))?;
        let at = |why: String| format!("{}/{name}: {why}", folder.display());
        let value = |key: &str| pairs.get(key).copied().ok_or_else(|| at(format!("no {key}")));
        let text_of = |key: &str| value(key).map(|v| v.trim_matches('"').to_string());
        let number = |key: &str| value(key)?.parse::<u64>().map_err(|e| at(format!("{key}: {e}")));
        let hex = |v: &str| {
            u64::from_str_radix(v.trim_matches('"').trim_start_matches("0x"), 16).map_err(|e| at(e.to_string()))
        };
        let dims = value("dims")?.trim_matches(['[', ']']).split(',').map(str::trim).filter(|d| !d.is_empty());
        let case = Case {
            codec: folder.file_name().expect("a codec").to_string_lossy().into_owned(),
            name: name.into(),
            generator: text_of("generator")?,
            seed: number("seed")?,
            dtype: text_of("dtype")?,
            dims: dims.map(|d| d.parse().map_err(|e| at(format!("dims: {e}")))).collect::<Result<_, _>>()?,
            raw_bytes: number("raw_bytes")? as usize,
            request: text_of("ask")?,
            fill: pairs.get("fill_bits").map(|v| hex(v)).transpose()?,
        };
        let bin = folder.join(format!("{name}.bin"));
        let frame = std::fs::read(&bin).map_err(|e| format!("{}: {e}", bin.display()))?;
        if (frame.len() as u64, fnv(&frame)) != (number("frame_bytes")?, hex(value("frame_fnv")?)?) {
            return Err(at(format!("{} is not the file that was written: restore it", bin.display())));
        }
        let raw_fnv = pairs.get("raw_fnv").map(|v| hex(v)).transpose()?;
        let decoded_fnv = hex(value("decoded_fnv")?)?;
        let raw = std::fs::read(bin.with_extension("raw"));
        if raw.is_ok_and(|raw| fnv(&raw) != decoded_fnv) {
            return Err(at("its .raw holds other bytes than decoded_fnv says: restore it".into()));
        }
        Ok(Vector { case, raw_fnv, decoded_fnv, frame })
    }

    /// Reads every vector there is, sorted by codec and name.
    pub fn all() -> Result<Vec<Vector>, String> {
        Self::all_in(&folder())
    }

    /// Reads every vector in a folder of codecs. Every file there belongs to one.
    pub fn all_in(folder: &Path) -> Result<Vec<Vector>, String> {
        let mut all = Vec::new();
        // `refused` holds frames that are no vectors: refused.rs.
        for codec in list(folder)?.into_iter().filter(|p| !p.ends_with("refused")) {
            let table = codec.join("vectors.toml");
            let text = std::fs::read_to_string(&table).map_err(|e| format!("{}: {e}", table.display()))?;
            let rows = text.lines().filter(|l| !l.starts_with('#'));
            let vectors = rows.map(|row| Vector::read(&codec, row)).collect::<Result<Vec<_>, _>>()?;
            for file in list(&codec)?.into_iter().filter(|p| *p != table) {
                let stem = file.file_stem().expect("a name").to_string_lossy();
                let ending = file.extension().and_then(|e| e.to_str());
                if !matches!(ending, Some("bin" | "raw")) || !vectors.iter().any(|v| v.case.name == stem) {
                    return Err(format!("{} belongs to no vector", file.display()));
                }
            }
            all.extend(vectors);
        }
        Ok(all)
    }

    /// The state of the format that vectors have: the sum of their frames (codecs/src/FORMAT.md §1).
    pub fn state(all: &[Vector]) -> u32 {
        let frames: Vec<u8> = all.iter().flat_map(|v| &v.frame).copied().collect();
        (fnv(&frames) as u32).max(1)
    }

    /// Encodes and decodes on every backend and compares: bytes out, values back.
    pub fn check(&self) -> Result<(), String> {
        let c = &self.case;
        let at = |who: &str, why: String| format!("{}/{} on {who}: {why}", c.codec, c.name);
        let backends = backends();
        if c.by_hand() {
            return backends
                .iter()
                .try_for_each(|(who, engine)| self.decodes(&self.frame, engine).map_err(|e| at(who, e)));
        }
        let raw = c.input();
        if Some(fnv(&raw)) != self.raw_fnv {
            return Err(at("any", format!("the generator {} gives another input than it did", c.generator)));
        }
        let params = c.params();
        for (writer, engine) in &backends {
            // A batch of two, so that no vector passes alone by luck.
            let job = EncodeJob { params: &params, raw: &raw };
            let mut frames = vec![Vec::new(); 2];
            engine.encode_batch(&[job, job], &mut frames);
            for frame in frames.iter().map(|frame| released(frame)) {
                match c.size_limit(&self.frame) {
                    Some(limit) if frame.len() > limit => {
                        return Err(at(writer, format!("{} bytes, limit {limit}", frame.len())));
                    }
                    None if frame != self.frame => return Err(at(writer, difference(&frame, &self.frame))),
                    _ => {}
                }
            }
            for (reader, other) in &backends {
                self.decodes(&frames[0], other).map_err(|e| at(&format!("{writer} encodes, {reader} decodes"), e))?;
            }
            self.decodes(&self.frame, engine).map_err(|e| at(writer, e))?;
        }
        Ok(())
    }

    fn decodes(&self, frame: &[u8], engine: &Engine) -> Result<(), String> {
        let mut out = vec![0x5A; self.case.raw_bytes];
        let mut jobs = [DecodeJob { frame, out: &mut out }];
        engine.decode_batch(&mut jobs).remove(0).map_err(|e| e.to_string())?;
        match fnv(&out) {
            sum if sum == self.decoded_fnv => Ok(()),
            sum => Err(format!("decodes to other values: {sum:016x} against {:016x}", self.decoded_fnv)),
        }
    }
}
