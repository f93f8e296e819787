// SPDX-License-Identifier: MIT OR Apache-2.0
//! The symbol table of an ELF file, for programs that carry libhdf5 inside and export none of it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// HDF5's symbols of one file, as they stand in it.
#[derive(Default)]
pub(crate) struct Symbols {
    names: Vec<u8>,
    /// Where each one's name begins, and its value.
    values: Vec<(usize, u64)>,
    /// Address that the file's first segment asks for: the loader's base minus this is what to add to a value.
    first: u64,
}

const SHT_SYMTAB: u32 = 2;
const PT_LOAD: u32 = 1;
/// Sizes of the 64-bit records.
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// No table that is worth reading is larger.
const MOST: u64 = 1 << 30;

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
    let len = usize::try_from(len).ok().filter(|_| len <= MOST)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).ok()?;
    bytes.resize(len, 0);
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

impl Symbols {
    /// `None` when the file cannot be read, is no 64-bit ELF of this machine's byte order, or was stripped.
    pub(crate) fn of(path: &Path) -> Option<Symbols> {
        let file = File::open(path).ok()?;
        let header = read(&file, 0, HEADER as u64)?;
        let order = if cfg!(target_endian = "little") { 1 } else { 2 };
        if header[..4] != *b"\x7fELF" || header[4] != 2 || header[5] != order {
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
    pub(crate) fn address(&self, name: &[u8], base: usize) -> Option<usize> {
        let same = |at: usize| self.names[at..].strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0));
        let (_, value) = self.values.iter().rev().find(|v| same(v.0))?;
        let value = value.checked_sub(self.first)?;
        base.checked_add(usize::try_from(value).ok()?)
    }
}
