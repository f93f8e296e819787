// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands for `device/` in a build without the feature `cuda`: arrays on a device are refused.

use super::boxes::Array;
use super::frames::Frames;
use super::range::ArrayBoxes;
use codecs::error::{Error, Result};
use codecs::params::Params;

fn refused<T>() -> Result<T> {
    Err(Error::params("an array on a device", "this build has no GPU code (feature `cuda`): copy it to host memory"))
}

#[derive(Debug)]
pub(super) enum DeviceEncoding {}

impl DeviceEncoding {
    pub(super) fn new(
        _: Array,
        _: Params,
        _: Vec<u64>,
        _: usize,
        _: Vec<i64>,
        _: Vec<u8>,
        _: usize,
    ) -> Result<DeviceEncoding> {
        refused()
    }

    pub(super) fn next(&mut self) -> Result<Vec<&[u8]>> {
        match *self {}
    }
}

pub(super) fn decode(_: Frames<'_>, _: &Array, _: &[u64], _: &[i64], _: usize, _: usize) -> Result<Vec<Result<()>>> {
    refused()
}

pub(super) fn range(_: &ArrayBoxes<'_>) -> Result<Option<(f64, f64)>> {
    refused()
}

pub(super) fn copy(_: &Array, _: &mut Array) -> Result<()> {
    refused()
}

pub(super) fn device_of(_: u64) -> Result<i32> {
    refused()
}

pub(super) fn enter(_: i32) -> Result<()> {
    refused()
}

pub(super) fn leave() {}
