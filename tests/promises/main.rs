// SPDX-License-Identifier: MIT OR Apache-2.0
//! Promises about bytes and values. One program: what its tests share is compiled and linked once, and long ones run
//! beside each other. Tests that need a program to themselves are files beside this folder.

#[path = "../tools/decode_by_the_book.rs"]
mod book;
#[path = "../common/mod.rs"]
mod common;

mod bound;
mod by_the_book;
mod conformance;
mod never_larger;
mod planes;
mod refused;
mod rewrite;
mod rules;
