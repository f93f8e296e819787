// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a library can be loaded here, and, of ELF files, the symbol table of programs that carry libhdf5 inside and
//! export none of it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// HDF5's symbols of one file, as they stand in it.
#[derive(Default)]
pub struct Symbols {
    names: Vec<u8>,
    /// Where each one's name begins, and its value.
    values: Vec<(usize, u64)>,
    /// Address that the file's first segment asks for: the loader's base minus this is what to add to a value.
    first: u64,
}

const SHT_SYMTAB: u32 = 2;
const PT_LOAD: u32 = 1;
/// This machine's byte order, as ELF numbers them.
const ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };
/// Sizes of the 64-bit records.
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// No table that is worth reading is larger.
const TABLE_LIMIT: u64 = 1 << 30;
/// ELF's numbers of processors, and their names as Rust has them.
const PROCESSORS: [(u64, &str); 9] = [
    (3, "x86"),
    (20, "powerpc"),
    (21, "powerpc64"),
    (22, "s390x"),
    (40, "arm"),
    (62, "x86_64"),
    (183, "aarch64"),
    (243, "riscv64"),
    (258, "loongarch64"),
];
const HERE: &str = std::env::consts::ARCH;

/// How libraries begin: on Windows PE, on macOS Mach-O of one processor or of several, elsewhere ELF.
const BEGINS: &[&[u8]] = match () {
    _ if cfg!(windows) => &[b"MZ"],
    _ if cfg!(target_vendor = "apple") => &[b"\xCF\xFA\xED\xFE", b"\xCA\xFE\xBA\xBE"],
    _ => &[b"\x7fELF"],
};
const IS_ELF: bool = !cfg!(any(windows, target_vendor = "apple"));

/// Why a file cannot be loaded as a library of this machine; `None` where nothing speaks against it.
///
/// The loader maps an ELF file that was cut short without a word, and the program dies at the first page that is
/// missing. Those of Windows and macOS refuse one, and say what is wrong with it.
pub fn fault(path: &Path) -> Option<String> {
    let header = File::open(path).and_then(|file| Ok((file.metadata()?.len(), read(&file, 0, HEADER as u64), file)));
    let (len, header, file) = match header {
        Ok(h) => h,
        Err(why) => return Some(format!("cannot be read ({why})")),
    };
    let Some(header) = header.filter(|h| BEGINS.iter().any(|begin| h.starts_with(begin))) else {
        return Some(format!("is no library ({len} bytes)"));
    };
    if !IS_ELF {
        return None;
    }
    if header[4..6] != [2, ORDER] {
        return Some("is for another kind of processor (not of 64 bits, or of another byte order)".into());
    }
    let built_for = number::<2>(&header, 18)?;
    let name = |n| PROCESSORS.iter().find(|p| p.0 == n).map_or_else(|| format!("processor {n}"), |p| p.1.into());
    if PROCESSORS.iter().any(|p| p.1 == HERE) && name(built_for) != HERE {
        return Some(format!("is built for {}, this machine is {HERE}", name(built_for)));
    }
    let stated = stated_len(&header, &file)?;
    (stated > len).then(|| format!("is cut short ({len} of {stated} bytes), and ends the program that opens it"))
}

/// The length that the tables of a file speak of. Segments are what is mapped; the table of sections stands behind
/// them, and is what a copy that was cut short lacks first.
fn stated_len(header: &[u8], file: &File) -> Option<u64> {
    let table =
        |at, each| Some((number::<8>(header, at)?, number::<2>(header, each)? * number::<2>(header, each + 2)?));
    let (segments, sections) = (table(32, 54)?, table(40, 58)?);
    let end = segments.0.saturating_add(segments.1).max(sections.0.saturating_add(sections.1));
    // A table of segments that is itself missing is counted above.
    let records = read(file, segments.0, segments.1).unwrap_or_default();
    let ends = records.chunks_exact(SEGMENT).filter_map(|s| number::<8>(s, 8)?.checked_add(number::<8>(s, 32)?));
    Some(ends.fold(end, u64::max))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let field: [u8; N] = bytes.get(at..at + N)?.try_into().ok()?;
    let mut wide = [0; 8];
    if cfg!(target_endian = "little") {
        wide[..N].copy_from_slice(&field);
    } else {
        wide[8 - N..].copy_from_slice(&field);
    }
    Some(u64::from_ne_bytes(wide))
}

fn read(file: &File, at: u64, len: u64) -> Option<Vec<u8>> {
    let len = usize::try_from(len).ok().filter(|_| len <= TABLE_LIMIT)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).ok()?;
    bytes.resize(len, 0);
    let mut file = file;
    file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes)).ok()?;
    Some(bytes)
}

impl Symbols {
    /// `None` when the file cannot be read, is no 64-bit ELF of this machine's byte order, or was stripped.
    pub fn read(path: &Path) -> Option<Symbols> {
        let file = File::open(path).ok()?;
        let header = read(&file, 0, HEADER as u64)?;
        if header[..4] != *b"\x7fELF" || header[4..6] != [2, ORDER] {
            return None;
        }
        let records = |offset_at, size_at, size: usize| {
            let (at, each, count) =
                (number::<8>(&header, offset_at)?, number::<2>(&header, size_at)?, number::<2>(&header, size_at + 2)?);
            (each == size as u64).then(|| read(&file, at, each * count)).flatten()
        };
        let segments = records(32, 54, SEGMENT)?;
        let sections = records(40, 58, SECTION)?;
        let first = segments
            .chunks_exact(SEGMENT)
            .filter(|s| number::<4>(s, 0) == Some(PT_LOAD.into()))
            .filter_map(|s| number::<8>(s, 16))
            .min()?;
        let section = |k: usize| sections.get(k * SECTION..(k + 1) * SECTION);
        let contents = |s: &[u8]| read(&file, number::<8>(s, 24)?, number::<8>(s, 32)?);
        let table = sections.chunks_exact(SECTION).find(|s| number::<4>(s, 4) == Some(SHT_SYMTAB.into()))?;
        let names = contents(section(number::<4>(table, 40)? as usize)?)?;
        let mut values = Vec::new();
        for symbol in contents(table)?.chunks_exact(SYMBOL) {
            let at = number::<4>(symbol, 0)? as usize;
            let name = names.get(at..)?;
            let name = &name[..name.iter().position(|&b| b == 0)?];
            let defined = number::<2>(symbol, 6)? != 0;
            if defined && name.windows(2).any(|w| w == b"H5") {
                values.try_reserve(1).ok()?;
                values.push((at, number::<8>(symbol, 8)?));
            }
        }
        Some(Symbols { names, values, first: first & !0xFFF })
    }

    /// Where a symbol of the file is when the file's first segment begins at `base`.
    pub fn address(&self, name: &[u8], base: usize) -> Option<usize> {
        let same = |at: usize| self.names[at..].strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0));
        let (_, value) = self.values.iter().rev().find(|v| same(v.0))?;
        let value = value.checked_sub(self.first)?;
        base.checked_add(usize::try_from(value).ok()?)
    }
}
