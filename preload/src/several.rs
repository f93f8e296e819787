// SPDX-License-Identifier: MIT OR Apache-2.0
//! One call for several datasets: each goes its own way, and what is left goes to HDF5 in one call.

use crate::door::{self, Outcome};
use crate::hdf5::Hid;
use crate::host::Host;
use libc::c_int;

/// The arguments of such a call: arrays of one length. `V` points to values.
pub(crate) struct Several<'a, V: Copy> {
    datasets: &'a [Hid],
    /// Types in memory, spaces of the memory, spaces of the datasets.
    spaces: [&'a [Hid]; 3],
    values: &'a [V],
}

/// The arguments for one of the datasets.
pub(crate) struct One<V> {
    pub dataset: Hid,
    pub memory: Hid,
    pub here: Hid,
    pub there: Hid,
    pub values: V,
}

impl<V: Copy> Several<'_, V> {
    /// `None`: HDF5 is to say what is wrong with them.
    ///
    /// # Safety
    /// Each array has `count` elements, or is null.
    pub(crate) unsafe fn new(count: usize, datasets: *mut Hid, spaces: [*mut Hid; 3], values: *mut V) -> Option<Self> {
        if count == 0 || datasets.is_null() || spaces.iter().any(|ids| ids.is_null()) || values.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe {
            Some(Several {
                datasets: std::slice::from_raw_parts(datasets, count),
                spaces: spaces.map(|ids| std::slice::from_raw_parts(ids, count)),
                values: std::slice::from_raw_parts(values, count),
            })
        }
    }

    /// Hands each dataset to `short`, and those that are left to `native`, with their number. Answers what HDF5
    /// answers.
    pub(crate) fn go(
        &self,
        host: &Host,
        short: impl Fn(One<V>) -> Outcome,
        native: impl FnOnce(usize, *mut Hid, [*mut Hid; 3], *mut V) -> c_int,
    ) -> c_int {
        let mut left = Vec::new();
        for k in 0..self.datasets.len() {
            let [memory, here, there] = self.spaces.map(|ids| ids[k]);
            match short(One { dataset: self.datasets[k], memory, here, there, values: self.values[k] }) {
                Outcome::Done(_) => {}
                Outcome::Failed(why) => return door::fail(host, &why),
                Outcome::Native(_) => left.push(k),
            }
        }
        if left.is_empty() {
            return 0;
        }
        if left.len() == self.datasets.len() {
            // The arrays as they came, which HDF5 only reads.
            let spaces = self.spaces.map(|ids| ids.as_ptr().cast_mut());
            return native(left.len(), self.datasets.as_ptr().cast_mut(), spaces, self.values.as_ptr().cast_mut());
        }
        let (mut datasets, mut values) = (only(&left, self.datasets), only(&left, self.values));
        let mut spaces = self.spaces.map(|ids| only(&left, ids));
        native(left.len(), datasets.as_mut_ptr(), spaces.each_mut().map(Vec::as_mut_ptr), values.as_mut_ptr())
    }
}

/// Those elements of an array that are left.
fn only<T: Copy>(left: &[usize], array: &[T]) -> Vec<T> {
    left.iter().map(|&k| array[k]).collect()
}
