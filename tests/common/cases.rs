// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of vectors. Lines are only added; `cargo run -p h5z-gpu-tools --bin vectors` writes the files of new ones.

use super::vectors::Case;

/// codec | name | generator seed | type | extents, or a number of bytes of unknown shape | ask | fill value's bits
///
/// Frames of the generator `by-hand` are those of by_hand.rs, which no writer makes: they are read only.
const CASES: &str = "
stored | empty              | bits 1     | unknown | 0 bytes      | mode=lossless |
stored | one-byte           | bits 2     | bytes1  | 1            | mode=lossless |
stored | random-1000        | bits 3     | bytes1  | 1000         | mode=lossless |
stored | random-f64         | bits 4     | f64     | 5            | mode=lossless |
stored | shape-not-known    | bits 5     | unknown | 4099 bytes   | mode=abs,bound=1e-3 |
bytes  | text               | text 1     | bytes1  | 5000         | mode=lossless |
bytes  | i16-wave           | wave 2     | i16     | 40x60        | mode=lossless |
bytes  | i16be-wave         | wave 2     | i16be   | 40x60        | mode=lossless |
bytes  | compound-12        | ramp 3     | bytes12 | 700          | mode=lossless |
bytes  | stride-255         | constant 4 | bytes255 | 30          | mode=lossless |
bytes  | unknown-doubles    | text 5     | unknown | 7001 bytes   | mode=lossless |
bytes  | bound-on-no-number | wave 6     | i16     | 3000         | mode=rel,bound=1e-3 |
bytes  | worked-example     | text 3     | i16     | 64           | mode=lossless |
szx    | f32-abs                | wave 1     | f32   | 10x20x30    | mode=abs,bound=1e-3,codec=szx    |
szx    | f64-abs                | wave 1     | f64   | 10x20x30    | mode=abs,bound=1e-3,codec=szx    |
szx    | f32be-abs              | wave 1     | f32be | 10x20x30    | mode=abs,bound=1e-3,codec=szx    |
szx    | f64be-abs              | wave 1     | f64be | 10x20x30    | mode=abs,bound=1e-3,codec=szx    |
szx    | f32-abs-by-name        | wave 2     | f32   | 5000        | mode=abs,bound=2.5e-2,codec=szx  |
szx    | f32-rel                | wave 3     | f32   | 60x90       | mode=rel,bound=1e-4,codec=szx    |
szx    | f32-rel-fine           | wave 4     | f32   | 40x100      | mode=rel,bound=1e-6,codec=szx    |
szx    | f32-pw-rel             | ramp 5     | f32   | 4500        | mode=pw_rel,bound=1e-2,codec=szx |
szx    | f32-pw-rel-fine        | wave 6     | f32   | 30x150      | mode=pw_rel,bound=1e-4,codec=szx |
szx    | f32-psnr               | wave 7     | f32   | 8x8x80      | mode=psnr,bound=60,codec=szx     |
szx    | f32-psnr-tenths        | wave 8     | f32   | 4000        | mode=psnr,bound=84.9,codec=szx   |
szx    | f32-hostile-rel        | hostile 21 | f32   | 4300        | mode=rel,bound=1e-3,codec=szx    |
szx    | f32-hostile-pw         | hostile 22 | f32   | 4300        | mode=pw_rel,bound=1e-2,codec=szx |
szx    | f32-masked-abs         | masked 30  | f32   | 50x100      | mode=abs,bound=1e-3,codec=szx    | 0x60ad78ec
szx    | f32-masked-rel         | masked 31  | f32   | 50x100      | mode=rel,bound=1e-3,codec=szx    | 0x60ad78ec
szx    | f32-masked-pw-rel      | masked 32  | f32   | 50x100      | mode=pw_rel,bound=1e-3,codec=szx | 0x60ad78ec
szx    | f32-masked-no-fill     | masked 33  | f32   | 50x100      | mode=abs,bound=1e-3,codec=szx    |
szx    | f32-constant           | constant 40 | f32   | 9000        | mode=abs,bound=1e-3,codec=szx    |
szx    | f32-constant-rel       | constant 41 | f32   | 9000        | mode=rel,bound=0.5,codec=szx     |
szx    | f32-all-zero-blocks    | wave 42    | f32   | 70x70       | mode=abs,bound=1e3,codec=szx     |
szx    | f32-steps              | steps 43   | f32   | 6000        | mode=abs,bound=0.5,codec=szx     |
szx    | f32-noise              | noise 44   | f32   | 3000        | mode=abs,bound=1e-2,codec=szx    |
szx    | f32-tiny-bound         | steps 45   | f32   | 5000        | mode=abs,bound=5e-324,codec=szx  |
szx    | f32-of-127             | wave 127   | f32   | 127         | mode=abs,bound=0.1,codec=szx     |
szx    | f32-of-128             | wave 128   | f32   | 128         | mode=abs,bound=0.1,codec=szx     |
szx    | f32-of-129             | wave 129   | f32   | 129         | mode=abs,bound=0.1,codec=szx     |
szx    | f32-of-4095            | wave 4095  | f32   | 4095        | mode=abs,bound=0.1,codec=szx     |
szx    | f32-of-4096            | wave 4096  | f32   | 4096        | mode=abs,bound=0.1,codec=szx     |
szx    | f32-of-4097            | wave 4097  | f32   | 4097        | mode=abs,bound=0.1,codec=szx     |
szx    | f32-of-8193            | wave 8193  | f32   | 8193        | mode=abs,bound=0.1,codec=szx     |
szx    | f64-abs-by-name        | wave 2     | f64   | 5000        | mode=abs,bound=2.5e-2,codec=szx  |
szx    | f64-rel                | wave 3     | f64   | 60x90       | mode=rel,bound=1e-4,codec=szx    |
szx    | f64-rel-fine           | wave 4     | f64   | 40x100      | mode=rel,bound=1e-6,codec=szx    |
szx    | f64-pw-rel             | ramp 5     | f64   | 4500        | mode=pw_rel,bound=1e-2,codec=szx |
szx    | f64-pw-rel-fine        | wave 6     | f64   | 30x150      | mode=pw_rel,bound=1e-4,codec=szx |
szx    | f64-psnr               | wave 7     | f64   | 8x8x80      | mode=psnr,bound=60,codec=szx     |
szx    | f64-psnr-tenths        | wave 8     | f64   | 4000        | mode=psnr,bound=84.9,codec=szx   |
szx    | f64-hostile-rel        | hostile 21 | f64   | 4300        | mode=rel,bound=1e-3,codec=szx    |
szx    | f64-hostile-pw         | hostile 22 | f64   | 4300        | mode=pw_rel,bound=1e-2,codec=szx |
szx    | f64-masked-abs         | masked 30  | f64   | 50x100      | mode=abs,bound=1e-3,codec=szx  | 0x4415af1d78b58c40
szx    | f64-masked-rel         | masked 31  | f64   | 50x100      | mode=rel,bound=1e-3,codec=szx  | 0x4415af1d78b58c40
szx    | f64-masked-pw-rel      | masked 32  | f64   | 50x100    | mode=pw_rel,bound=1e-3,codec=szx | 0x4415af1d78b58c40
szx    | f64-masked-no-fill     | masked 33  | f64   | 50x100      | mode=abs,bound=1e-3,codec=szx    |
szx    | f64-constant           | constant 40 | f64   | 9000        | mode=abs,bound=1e-3,codec=szx    |
szx    | f64-constant-rel       | constant 41 | f64   | 9000        | mode=rel,bound=0.5,codec=szx     |
szx    | f64-all-zero-blocks    | wave 42    | f64   | 70x70       | mode=abs,bound=1e3,codec=szx     |
szx    | f64-steps              | steps 43   | f64   | 6000        | mode=abs,bound=0.5,codec=szx     |
szx    | f64-noise              | noise 44   | f64   | 3000        | mode=abs,bound=1e-2,codec=szx    |
szx    | f64-tiny-bound         | steps 45   | f64   | 5000        | mode=abs,bound=5e-324,codec=szx  |
szx    | f64-of-127             | wave 127   | f64   | 127         | mode=abs,bound=0.1,codec=szx     |
szx    | f64-of-128             | wave 128   | f64   | 128         | mode=abs,bound=0.1,codec=szx     |
szx    | f64-of-129             | wave 129   | f64   | 129         | mode=abs,bound=0.1,codec=szx     |
szx    | f64-of-4095            | wave 4095  | f64   | 4095        | mode=abs,bound=0.1,codec=szx     |
szx    | f64-of-4096            | wave 4096  | f64   | 4096        | mode=abs,bound=0.1,codec=szx     |
szx    | f64-of-4097            | wave 4097  | f64   | 4097        | mode=abs,bound=0.1,codec=szx     |
szx    | f64-of-8193            | wave 8193  | f64   | 8193        | mode=abs,bound=0.1,codec=szx     |
ndzip  | f32-3d                 | wave 1     | f32   | 16x17x33    | mode=lossless,codec=ndzip        |
ndzip  | f64-3d                 | wave 1     | f64   | 16x17x33    | mode=lossless,codec=ndzip        |
ndzip  | f32be-3d               | wave 1     | f32be | 16x17x33    | mode=lossless,codec=ndzip        |
ndzip  | f64be-3d               | wave 1     | f64be | 16x17x33    | mode=lossless,codec=ndzip        |
ndzip  | i32-3d                 | wave 1     | i32   | 16x17x33    | mode=lossless,codec=ndzip        |
ndzip  | u32-3d                 | wave 1     | u32   | 16x17x33    | mode=lossless,codec=ndzip        |
ndzip  | i64-3d                 | wave 1     | i64   | 16x17x33    | mode=lossless,codec=ndzip        |
ndzip  | f32-one-cube-1d        | wave 2     | f32   | 4096        | mode=lossless,codec=ndzip        |
ndzip  | f32-border-1d          | wave 3     | f32   | 4103        | mode=lossless,codec=ndzip        |
ndzip  | f32-one-cube-2d        | wave 4     | f32   | 64x64       | mode=lossless,codec=ndzip        |
ndzip  | f32-border-2d          | wave 5     | f32   | 66x131      | mode=lossless,codec=ndzip        |
ndzip  | f32-one-cube-3d        | wave 6     | f32   | 16x16x16    | mode=lossless,codec=ndzip        |
ndzip  | f32-flat-3d            | wave 7     | f32   | 3x40x50     | mode=lossless,codec=ndzip        |
ndzip  | f32-4d                 | wave 8     | f32   | 2x9x16x20   | mode=lossless,codec=ndzip        |
ndzip  | f32-constant           | constant 10 | f32   | 9000        | mode=lossless,codec=ndzip        |
ndzip  | f32-ramp               | ramp 11    | f32   | 5000        | mode=lossless,codec=ndzip        |
ndzip  | f32-masked             | masked 12  | f32   | 20x16x17    | mode=lossless,codec=ndzip        |
ndzip  | f64-one-cube-1d        | wave 2     | f64   | 4096        | mode=lossless,codec=ndzip        |
ndzip  | f64-border-1d          | wave 3     | f64   | 4103        | mode=lossless,codec=ndzip        |
ndzip  | f64-one-cube-2d        | wave 4     | f64   | 64x64       | mode=lossless,codec=ndzip        |
ndzip  | f64-border-2d          | wave 5     | f64   | 66x131      | mode=lossless,codec=ndzip        |
ndzip  | f64-one-cube-3d        | wave 6     | f64   | 16x16x16    | mode=lossless,codec=ndzip        |
ndzip  | f64-flat-3d            | wave 7     | f64   | 3x40x50     | mode=lossless,codec=ndzip        |
ndzip  | f64-4d                 | wave 8     | f64   | 2x9x16x20   | mode=lossless,codec=ndzip        |
ndzip  | f64-constant           | constant 10 | f64   | 9000        | mode=lossless,codec=ndzip        |
ndzip  | f64-ramp               | ramp 11    | f64   | 5000        | mode=lossless,codec=ndzip        |
ndzip  | f64-masked             | masked 12  | f64   | 20x16x17    | mode=lossless,codec=ndzip        |
ndzip  | i32-bound-on-integers  | wave 13    | i32   | 64x70       | mode=lossless,codec=ndzip        |
ndzip  | i64-steps              | steps 14   | i64   | 4500        | mode=lossless,codec=ndzip        |
szx    | f32-sparse-abs         | sparse 50  | f32   | 4300        | mode=abs,bound=1e-2,codec=szx    |
szx    | f32-sparse-pw-rel      | sparse 51  | f32   | 4300        | mode=pw_rel,bound=1e-2,codec=szx |
szx    | f32-sparse-huge        | sparse 52  | f32   | 4300        | mode=abs,bound=1e30,codec=szx    |
ndzip  | f32-sparse             | sparse 50  | f32   | 70x70       | mode=lossless,codec=ndzip        |
szx    | f64-sparse-abs         | sparse 50  | f64   | 4300        | mode=abs,bound=1e-2,codec=szx    |
szx    | f64-sparse-pw-rel      | sparse 51  | f64   | 4300        | mode=pw_rel,bound=1e-2,codec=szx |
szx    | f64-sparse-huge        | sparse 52  | f64   | 4300        | mode=abs,bound=1e30,codec=szx    |
ndzip  | f64-sparse             | sparse 50  | f64   | 70x70       | mode=lossless,codec=ndzip        |
szx    | f32be-sparse-abs       | sparse 50  | f32be | 4300        | mode=abs,bound=1e-2,codec=szx    |
szx    | f32-spots-abs          | spots 56   | f32   | 4800        | mode=abs,bound=1e-2,codec=szx    |
szx    | f32-spots-pw-rel       | spots 56   | f32   | 4800        | mode=pw_rel,bound=1e-2,codec=szx |
szx    | f32-noise-pw-rel       | noise 57   | f32   | 4096        | mode=pw_rel,bound=1e-4,codec=szx |
szx    | f64-spots-abs          | spots 56   | f64   | 4800        | mode=abs,bound=1e-2,codec=szx    |
szx    | f64-spots-pw-rel       | spots 56   | f64   | 4800        | mode=pw_rel,bound=1e-2,codec=szx |
szx    | f64-noise-pw-rel       | noise 57   | f64   | 4096        | mode=pw_rel,bound=1e-4,codec=szx |
lorenzo | f32-abs-3d            | wave 1     | f32   | 17x18x35    | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f64-abs-3d            | wave 1     | f64   | 17x18x35    | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f32be-abs-3d          | wave 1     | f32be | 17x18x35    | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f64be-abs-3d          | wave 1     | f64be | 17x18x35    | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f32-coarse-3d         | wave 2     | f32   | 18x35x70    | mode=abs,bound=3e-2,codec=lorenzo |
lorenzo | f64-coarse-3d         | wave 2     | f64   | 18x35x70    | mode=abs,bound=3e-2,codec=lorenzo |
lorenzo | f32-fine-3d           | wave 2     | f32   | 17x18x33    | mode=abs,bound=1e-5,codec=lorenzo |
lorenzo | f64-fine-3d           | wave 2     | f64   | 17x18x33    | mode=abs,bound=1e-7,codec=lorenzo |
lorenzo | f32-1d                | wave 3     | f32   | 9000        | mode=abs,bound=0.1,codec=lorenzo  |
lorenzo | f32-2d                | wave 4     | f32   | 130x140     | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f64-2d-coarse         | wave 4     | f64   | 130x140     | mode=abs,bound=3e-2,codec=lorenzo |
lorenzo | f32-5d                | wave 5     | f32   | 2x3x4x17x33 | mode=rel,bound=1e-3,codec=lorenzo |
lorenzo | f32-auto-3d           | wave 32    | f32   | 25x26x27    | mode=abs,bound=3e-2              |
lorenzo | f64be-masked-2d       | masked 33  | f64be | 130x140  | mode=rel,bound=1e-2,codec=lorenzo | 0x4415af1d78b58c40
lorenzo | f32-of-60             | wave 6     | f32   | 60          | mode=abs,bound=0.5,codec=lorenzo  |
lorenzo | f32-of-8191           | ramp 7     | f32   | 8191        | mode=abs,bound=0.1,codec=lorenzo  |
lorenzo | f32-of-8192           | ramp 7     | f32   | 8192        | mode=abs,bound=0.1,codec=lorenzo  |
lorenzo | f32-of-8193           | ramp 7     | f32   | 8193        | mode=abs,bound=0.1,codec=lorenzo  |
lorenzo | f32-molecules         | ramp 8     | f32   | 4x700x3     | mode=abs,bound=1e-2,codec=lorenzo |
lorenzo | f64-rel-2d            | wave 9     | f64   | 70x130      | mode=rel,bound=1e-4,codec=lorenzo |
lorenzo | f32-psnr              | wave 10    | f32   | 40x200      | mode=psnr,bound=60,codec=lorenzo  |
lorenzo | f64-psnr-tenths       | wave 11    | f64   | 16x16x40    | mode=psnr,bound=84.9,codec=lorenzo |
lorenzo | f32-pw-rel            | ramp 12    | f32   | 50x100      | mode=pw_rel,bound=1e-2,codec=lorenzo |
lorenzo | f64-pw-rel            | wave 13    | f64   | 9x20x30     | mode=pw_rel,bound=1e-3,codec=lorenzo |
lorenzo | f32be-pw-rel          | sparse 14  | f32be | 4000        | mode=pw_rel,bound=1e-2,codec=lorenzo |
lorenzo | f32-masked-abs        | masked 15  | f32   | 60x100      | mode=abs,bound=1e-2,codec=lorenzo | 0x60ad78ec
lorenzo | f32-masked-coarse     | masked 15  | f32   | 16x16x32    | mode=abs,bound=0.1,codec=lorenzo  | 0x60ad78ec
lorenzo | f64-masked-pw-rel     | masked 16  | f64  | 60x100 | mode=pw_rel,bound=1e-2,codec=lorenzo | 0x4415af1d78b58c40
lorenzo | f32-masked-no-fill    | masked 17  | f32   | 40x50       | mode=abs,bound=1e-2,codec=lorenzo |
lorenzo | f32-sparse            | sparse 18  | f32   | 20x20x40    | mode=abs,bound=1e-2,codec=lorenzo |
lorenzo | f64-hostile           | hostile 19 | f64   | 20x60       | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f32-hostile-huge      | hostile 20 | f32   | 1500        | mode=abs,bound=1e30,codec=lorenzo |
lorenzo | f32-constant          | constant 21 | f32  | 70x300      | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f64-constant-rel      | constant 22 | f64  | 9000        | mode=rel,bound=0.5,codec=lorenzo  |
lorenzo | f32-all-zero          | wave 23    | f32   | 20x30x40    | mode=abs,bound=1e3,codec=lorenzo  |
lorenzo | f32-steps             | steps 24   | f32   | 9000        | mode=abs,bound=0.5,codec=lorenzo  |
lorenzo | f32-stacked-2d        | stacked 25 | f32   | 40x150      | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f64-stacked-3d        | stacked 26 | f64   | 10x20x30    | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f32-noise             | noise 27   | f32   | 3000        | mode=abs,bound=0.00098,codec=lorenzo |
lorenzo | f32-patches           | patches 28 | f32   | 70x140      | mode=abs,bound=0.00098,codec=lorenzo |
lorenzo | f64be-patches         | patches 29 | f64be | 70x140      | mode=abs,bound=1e-4,codec=lorenzo |
lorenzo | f32-tiny-bound        | constant 30 | f32  | 300         | mode=abs,bound=5e-324,codec=lorenzo |
lorenzo | f32-huge-bound        | constant 31 | f32  | 300         | mode=abs,bound=1.7e308,codec=lorenzo |
lorenzo | f64-beside-3d         | beside 112 | f64   | 17x18x35    | mode=abs,bound=1e-3,codec=lorenzo |
lorenzo | f64be-beside-rel-2d   | beside 113 | f64be | 130x140     | mode=rel,bound=1e-4,codec=lorenzo |
lorenzo | f32-beside-1d         | beside 114 | f32   | 9000        | mode=abs,bound=1.1,codec=lorenzo  |
lorenzo | f32be-beside-3d       | beside 115 | f32be | 20x33x35    | mode=abs,bound=1.0,codec=lorenzo  |
lorenzo | f32-land-3d           | land 180   | f32   | 20x33x40    | mode=abs,bound=1e-2,codec=lorenzo | 0x60ad78ec
lorenzo | f64-land-coarse-3d  | land 181 | f64  | 18x35x70   | mode=abs,bound=0.3,codec=lorenzo | 0x4415af1d78b58c40
lorenzo | f64be-land-2d         | land 182   | f64be | 130x140     | mode=abs,bound=1e-2,codec=lorenzo |
lorenzo | f32be-land-pw-rel     | land 183   | f32be | 9000        | mode=pw_rel,bound=1e-2,codec=lorenzo |
lorenzo | f32-land-5d           | land 184   | f32   | 2x3x4x17x33 | mode=abs,bound=1e-2,codec=lorenzo | 0x60ad78ec
stored | worked-example        | bits 2     | bytes1 | 1          | mode=lossless                    |
szx    | worked-example        | szx-example 0 | f32 | 131        | mode=abs,bound=0.5,codec=szx     |
lorenzo | worked-example       | lorenzo-example 0 | f32 | 99     | mode=abs,bound=0.25,codec=lorenzo |
ndzip  | worked-example        | ndzip-example 0 | f32 | 4098     | mode=lossless,codec=ndzip        |
szx    | f32-padded-rel        | padded 60  | f32   | 30x150      | mode=rel,bound=1e-3,codec=szx    |
szx    | f64-padded-psnr       | padded 61  | f64   | 30x150      | mode=psnr,bound=60,codec=szx     |
szx    | f32-padded-fill-of-zero | padded 60 | f32  | 30x150      | mode=rel,bound=1e-3,codec=szx    | 0x0
szx    | f32-padded-other-fill | padded 60  | f32   | 30x150      | mode=rel,bound=1e-3,codec=szx    | 0x60ad78ec
lorenzo | f32-padded-rel       | padded 62  | f32   | 17x18x35    | mode=rel,bound=1e-3,codec=lorenzo |
lorenzo | f64be-padded-psnr    | padded 63  | f64be | 60x90       | mode=psnr,bound=60,codec=lorenzo |
ndzip  | f32-border-x          | wave 16    | f32   | 16x16x17    | mode=lossless,codec=ndzip        |
ndzip  | f32-border-y          | wave 17    | f32   | 16x17x16    | mode=lossless,codec=ndzip        |
ndzip  | f64-border-z          | wave 18    | f64   | 17x16x16    | mode=lossless,codec=ndzip        |
ndzip  | f32-border-3d         | steps 19   | f32   | 33x33x33    | mode=lossless,codec=ndzip        |
ndzip  | i64-border-3d         | steps 20   | i64   | 33x33x33    | mode=lossless,codec=ndzip        |
ndzip  | f32-nine-tenths       | wave 21    | f32   | 64x71       | mode=lossless,codec=ndzip        |
ndzip  | f32-below-nine-tenths | wave 21    | f32   | 64x72       | mode=lossless,codec=ndzip        |
bytes  | several-tiles         | by-hand 0  | i16   | 4301 bytes  | mode=lossless                    |
bytes  | zstd-without-size     | by-hand 0  | unknown | 500 bytes | mode=lossless                    |
szx    | f32-words-above-q     | by-hand 1  | f32   | 256         | mode=abs,bound=0.5,codec=szx     |
szx    | f64-words-above-q     | by-hand 2  | f64   | 256         | mode=abs,bound=0.5,codec=szx     |
szx    | f32be-pw-words-above-q | by-hand 3 | f32be | 200         | mode=pw_rel,bound=0.4,codec=szx  |
szx    | f32-not-fused         | by-hand 4  | f32   | 128         | mode=abs,bound=4.2535295865117308e37,codec=szx  |
szx    | f64-not-fused         | by-hand 5  | f64   | 128         | mode=abs,bound=2.2471164185778949e307,codec=szx  |
lorenzo | f32-interpolated-classes | by-hand 6 | f32 | 70x130     | mode=abs,bound=0.051             |
lorenzo | f64be-interpolated-classes | by-hand 7 | f64be | 70x130 | mode=rel,bound=1e-2              |
lorenzo | f32-based-classes    | by-hand 110 | f32 | 70x130     | mode=abs,bound=0.051             |
lorenzo | f64be-based-classes  | by-hand 111 | f64be | 70x130   | mode=rel,bound=1e-2              |
lorenzo | f32-masks            | by-hand 185 | f32 | 20x20x40   | mode=abs,bound=0.051             |
lorenzo | f64be-masks          | by-hand 186 | f64be | 70x130   | mode=abs,bound=0.051             |
lorenzo | worked-base          | by-hand 116 | f32 | 5           | mode=abs,bound=0.5               |
lorenzo | worked-mask          | by-hand 187 | f32 | 3x4         | mode=abs,bound=0.5               |
lorenzo | f32-pw-rel-wraps     | by-hand 8  | f32   | 300         | mode=pw_rel,bound=0.9            |
lorenzo | f64-pw-rel-wraps     | by-hand 9  | f64   | 300         | mode=pw_rel,bound=0.9            |
lorenzo | f32-only-raw-tiles   | by-hand 10 | f32   | 8200        | mode=abs,bound=1e-3              |
lorenzo | f64be-only-raw-tiles | by-hand 11 | f64be | 50x3x7      | mode=pw_rel,bound=1e-3           |
ndzip  | f32-no-cube           | by-hand 12 | f32   | 40          | mode=lossless,codec=ndzip        |
ndzip  | f64be-no-cube         | by-hand 13 | f64be | 7           | mode=lossless,codec=ndzip        |
ndzip  | i32-planes-of-zeros   | by-hand 14 | i32   | 4100        | mode=lossless,codec=ndzip        |
planes | worked-example         | planes-example 0 | f32   | 40          | mode=abs,bound=0.25,codec=planes         |
planes | worked-wide-quanta     | planes-example-wide 0 | f32 | 40 | mode=abs,bound=0.25,codec=planes      |
planes | worked-bits            | planes-example-bits 0 | f32 | 44 | mode=lossless,codec=planes            |
planes | f32-3d                 | wave 1      | f32   | 16x17x33    | mode=abs,bound=1e-3,codec=planes         |
planes | f64-3d                 | wave 1      | f64   | 16x32x33    | mode=abs,bound=1e-3,codec=planes         |
planes | f32be-3d               | wave 2      | f32be | 8x16x32     | mode=abs,bound=1e-3,codec=planes         |
planes | f64be-3d               | wave 2      | f64be | 13x16x40    | mode=abs,bound=1e-3,codec=planes         |
planes | f32-coarse-3d          | wave 3      | f32   | 18x35x70    | mode=abs,bound=3e-2,codec=planes         |
planes | f64-raw-patch          | patches 188 | f64   | 8x8x160     | mode=lossless,codec=planes           |
planes | f32-2d                 | wave 4      | f32   | 128x32      | mode=abs,bound=1e-2,codec=planes         |
planes | f32-2d-cut             | wave 4      | f32   | 129x33      | mode=abs,bound=1e-2,codec=planes         |
planes | f64-2d-cut             | wave 5      | f64   | 250x40      | mode=abs,bound=1e-2,codec=planes         |
planes | f32-5d                 | wave 6      | f32   | 2x3x4x17x33 | mode=rel,bound=1e-3,codec=planes         |
planes | f32-thin-3d            | wave 7      | f32   | 9x17x40     | mode=abs,bound=1e-2,codec=planes         |
planes | f32-of-8               | wave 1      | f32   | 8           | mode=abs,bound=1e3,codec=planes          |
planes | f32-of-31              | wave 31     | f32   | 31          | mode=abs,bound=5,codec=planes            |
planes | f64-of-32              | wave 32     | f64   | 32          | mode=abs,bound=0.1,codec=planes          |
planes | f32be-of-33            | wave 33     | f32be | 33          | mode=abs,bound=1,codec=planes            |
planes | f32-of-4095            | ramp 8      | f32   | 4095        | mode=abs,bound=0.1,codec=planes          |
planes | f64-of-4096            | ramp 8      | f64   | 4096        | mode=abs,bound=0.1,codec=planes          |
planes | f32-of-4097            | ramp 8      | f32   | 4097        | mode=abs,bound=0.1,codec=planes          |
planes | f32-rel                | wave 9      | f32   | 70x140      | mode=rel,bound=1e-4,codec=planes         |
planes | f64-rel                | wave 9      | f64   | 70x140      | mode=rel,bound=1e-4,codec=planes         |
planes | f32-psnr               | wave 10     | f32   | 40x200      | mode=psnr,bound=60,codec=planes          |
planes | f64-psnr-tenths        | wave 11     | f64   | 16x16x40    | mode=psnr,bound=84.9,codec=planes        |
planes | f32-fine               | wave 12     | f32   | 70x64       | mode=abs,bound=1e-6,codec=planes         |
planes | f64-fine               | wave 13     | f64   | 70x64       | mode=abs,bound=1e-9,codec=planes         |
planes | f64-finest             | wave 13     | f64   | 70x64       | mode=abs,bound=1e-14,codec=planes        |
planes | f32-bits-in-patches    | patches 14  | f32   | 64x256      | mode=abs,bound=1e-3,codec=planes         |
planes | f64-far-from-zero      | padded 15   | f64   | 30x150      | mode=abs,bound=1e-7,codec=planes         |
planes | f32-padded             | padded 15   | f32   | 30x150      | mode=rel,bound=1e-3,codec=planes         |
planes | f32-masked             | masked 16   | f32   | 50x100      | mode=abs,bound=1e-3,codec=planes      | 0x60ad78ec
planes | f64-masked-3d          | masked 17   | f64   | 16x16x40 | mode=rel,bound=1e-3,codec=planes | 0x4415af1d78b58c40
planes | f32-masked-with-nan    | masked 18   | f32   | 50x100      | mode=abs,bound=1e-3,codec=planes      | 0x7fc00000
planes | f64be-masked-with-nan  | masked 19   | f64be | 128x33   | mode=abs,bound=1e-3,codec=planes | 0x7ff8000000000001
planes | f32-masked-no-fill     | masked 20   | f32   | 50x100      | mode=abs,bound=1e-2,codec=planes         |
planes | f32-sparse             | sparse 21   | f32   | 20x20x40    | mode=abs,bound=1e-2,codec=planes         |
planes | f64be-spots            | spots 22    | f64be | 4800        | mode=abs,bound=1e-2,codec=planes         |
planes | f32-hostile            | hostile 23  | f32   | 700         | mode=abs,bound=1e-3,codec=planes         |
planes | f64-hostile            | hostile 24  | f64   | 20x60       | mode=abs,bound=1e-3,codec=planes         |
planes | f32-hostile-huge       | hostile 25  | f32   | 1500        | mode=abs,bound=1e29,codec=planes         |
planes | f32-constant           | constant 26 | f32   | 70x300      | mode=abs,bound=1e-3,codec=planes         |
planes | f64-constant           | constant 27 | f64   | 9000        | mode=abs,bound=1e-3,codec=planes         |
planes | f32-constant-rel       | constant 28 | f32   | 70x64       | mode=rel,bound=0.5,codec=planes          |
planes | f32-steps              | steps 29    | f32   | 9000        | mode=abs,bound=0.5,codec=planes          |
planes | f32-stacked-3d         | stacked 30  | f32   | 16x20x30    | mode=abs,bound=1e-2,codec=planes         |
planes | f64-stacked-3d         | stacked 30  | f64   | 16x20x30    | mode=abs,bound=1e-2,codec=planes         |
planes | f32-patches            | patches 31  | f32   | 70x140      | mode=abs,bound=1e-3,codec=planes         |
planes | f64be-patches          | patches 32  | f64be | 70x64       | mode=abs,bound=1e-4,codec=planes         |
planes | f32-noise              | noise 33    | f32   | 6000        | mode=abs,bound=1e-2,codec=planes         |
planes | f32-largest-bound      | wave 34     | f32   | 300         | mode=abs,bound=6.3e29,codec=planes       |
planes | f32-lossless           | wave 35     | f32   | 16x17x33    | mode=lossless,codec=planes               |
planes | f64be-lossless         | ramp 36     | f64be | 70x64       | mode=lossless,codec=planes               |
planes | f32-lossless-hostile   | sparse 37   | f32   | 70x70       | mode=lossless,codec=planes               |
planes | i32-lossless           | wave 38     | i32   | 16x32x33    | mode=lossless,codec=planes               |
planes | u32-lossless           | ramp 39     | u32   | 129x33      | mode=lossless,codec=planes               |
planes | i64-lossless           | wave 40     | i64   | 70x64       | mode=lossless,codec=planes               |
planes | i64be-lossless         | steps 41    | i64be | 4500        | mode=lossless,codec=planes               |
planes | i32-bits-and-steps     | patches 42  | i32   | 70x140      | mode=lossless,codec=planes               |
planes | f32-packed             | packed 43   | f32   | 16x32x33    | mode=lossless,codec=planes               |
planes | f64be-packed           | packed 44   | f64be | 70x64       | mode=lossless,codec=planes               |
planes | f32-bound-too-small    | packed 45   | f32   | 129x33      | mode=abs,bound=1e-32,codec=planes        |
planes | f64-bound-too-small    | packed 46   | f64   | 5000        | mode=abs,bound=1e-305,codec=planes       |
planes | f32be-wave-lossless    | wave 47     | f32be | 70x64       | mode=lossless,codec=planes               |
planes | f64-single             | single 48   | f64   | 16x16x40    | mode=lossless,codec=planes               |
planes | f64be-single           | single 49   | f64be | 4500        | mode=lossless,codec=planes               |
planes | f32-masked-lossless    | masked 50   | f32   | 50x100      | mode=lossless,codec=planes            | 0x60ad78ec
planes | f64be-masked-lossless  | masked 51   | f64be | 50x70       | mode=lossless,codec=planes    | 0x4415af1d78b58c40
planes | i32-masked-lossless    | masked 52   | i32   | 50x100      | mode=lossless,codec=planes            | 0xffff8001
planes | i64be-masked-lossless  | masked 53   | i64be | 50x100      | mode=lossless,codec=planes    | 0x8000000000000001
planes | f32-masked-lossless-no-fill | masked 54   | f32   | 50x100      | mode=lossless,codec=planes               |
planes | f32-holes              | holes 55    | f32   | 70x64       | mode=lossless,codec=planes               |
planes | f64be-holes            | holes 56    | f64be | 70x64       | mode=lossless,codec=planes               |
planes | f32-holes-abs          | holes 57    | f32   | 129x33      | mode=abs,bound=1e-5,codec=planes         |
planes | f64-sparse-lossless    | sparse 59   | f64   | 50x70       | mode=lossless,codec=planes               |
planes | f32-spikes             | spikes 60   | f32   | 5000        | mode=lossless,codec=planes               |
planes | f64-spikes-abs         | spikes 61   | f64   | 5000        | mode=abs,bound=1e-3,codec=planes         |
planes | f32be-uniform          | uniform 62  | f32be | 5000        | mode=lossless,codec=planes               |
planes | i32be-uniform          | uniform 63  | i32be | 5000        | mode=lossless,codec=planes               |
planes | f64-coarse             | coarse 64   | f64   | 5000        | mode=abs,bound=0.5,codec=planes          |
planes | f32-coarse-quanta      | coarse 65   | f32   | 5000        | mode=abs,bound=0.5,codec=planes          |
planes | f32be-fine-noise       | noise 66    | f32be | 5000        | mode=abs,bound=1e-5,codec=planes         |
planes | f32-components         | wave 67     | f32   | 1500x3      | mode=abs,bound=1e-3,codec=planes         |
planes | f32be-components-3d    | wave 68     | f32be | 8x16x32x2   | mode=abs,bound=1e-2,codec=planes         |
planes | f64-components-2d      | packed 69   | f64   | 40x50x3     | mode=lossless,codec=planes               |
planes | f32-components-of-rows | wave 86     | f32   | 64x64x3     | mode=abs,bound=1e-3,codec=planes         |
planes | i32-components-of-5    | wave 70     | i32   | 10x16x20x5  | mode=lossless,codec=planes               |
planes | f64be-components-of-15 | wave 71     | f64be | 310x15      | mode=abs,bound=1e-6,codec=planes         |
planes | f32-no-components-of-16 | wave 72     | f32   | 300x16      | mode=abs,bound=1e-3,codec=planes         |
planes | f32-components-of-two-lines | wave 73     | f32   | 4x2         | mode=abs,bound=1e3,codec=planes          |
planes | f32-tiles-of-three-times-2d | wave 74     | f32   | 43x32       | mode=abs,bound=1e-3,codec=planes         |
planes | f32-tiles-of-more-2d   | wave 74     | f32   | 42x32       | mode=abs,bound=1e-3,codec=planes         |
planes | f64-tiles-of-three-times-3d | wave 75     | f64   | 8x10x20     | mode=abs,bound=1e-3,codec=planes         |
planes | i64-tiles-of-three-times | wave 76     | i64   | 166x33      | mode=lossless,codec=planes               |
planes | f32-fill-of-zero       | wave 77     | f32   | 50x100      | mode=abs,bound=0.05,codec=planes         | 0x0
planes | f32-fill-of-a-step     | wave 78     | f32   | 50x100      | mode=abs,bound=0.25,codec=planes      | 0x3eff0000
planes | f64be-fill-of-a-step   | wave 79     | f64be | 50x100   | mode=abs,bound=0.25,codec=planes | 0x3fdfe00000000000
planes | i32-steps              | steps 80    | i32   | 4500        | mode=lossless,codec=planes               |
planes | f32-short              | short 81    | f32   | 70x64       | mode=lossless,codec=planes               |
planes | f64be-short            | short 82    | f64be | 70x64       | mode=lossless,codec=planes               |
planes | f64-bits-in-patches    | patches 83  | f64   | 64x160      | mode=abs,bound=1e-3,codec=planes         |
planes | f32-noise-beyond-a-power | noise 84    | f32   | 4000        | mode=abs,bound=7.29e-6,codec=planes      |
planes | i64-masked-no-fill     | masked 85   | i64   | 50x100      | mode=lossless,codec=planes               |
planes | f32-zeros-that-are-stored | by-hand 20  | f32   | 8x16x32     | mode=abs,bound=0.5                       |
planes | f32-quanta-from-end-to-end | by-hand 21  | f32   | 13x16x40    | mode=abs,bound=0.25                      |
planes | f64be-quanta-from-end-to-end | by-hand 22  | f64be | 300x32      | mode=rel,bound=1e-2                      |
planes | f64-sums-that-wrap    | by-hand 48  | f64   | 128x32      | mode=abs,bound=1e-3 |
planes | f32-heads-alone        | by-hand 23  | f32   | 16x40x60    | mode=abs,bound=0.1                       |
planes | f64-heads-alone        | by-hand 24  | f64   | 500x40      | mode=abs,bound=0.1                       |
planes | f32-wide-quanta-overflow | by-hand 25  | f32   | 128x32      | mode=abs,bound=6.3e29                    |
planes | f64-wide-quanta-overflow | by-hand 26  | f64   | 4096        | mode=psnr,bound=60                       |
planes | f32-smallest-step      | by-hand 27  | f32   | 31          | mode=abs,bound=3.9e-31                   |
planes | f64be-smallest-step    | by-hand 28  | f64be | 33          | mode=abs,bound=4.6e-302                  |
planes | f32-every-length        | by-hand 29  | f32   | 28672       | mode=abs,bound=0.125                     |
planes | f64be-every-length      | by-hand 30  | f64be | 25000       | mode=rel,bound=1e-2                      |
planes | i32-every-length        | by-hand 31  | i32   | 28000       | mode=lossless                            |
planes | u32be-every-length      | by-hand 32  | u32be | 25000       | mode=lossless                            |
planes | f64-bits-of-every-length | by-hand 39 | f64   | 28000       | mode=abs,bound=0.125                     |
planes | f32-lengths-below-l    | by-hand 40  | f32   | 20000       | mode=abs,bound=0.125                     |
planes | i64-numbers-without-lengths | by-hand 41 | i64 | 16384     | mode=lossless                            |
planes | f32-fields-of-zeros    | by-hand 49  | f32   | 16384       | mode=abs,bound=0.125                     |
planes | f32-zeros-below        | by-hand 50  | f32   | 16384       | mode=abs,bound=0.125                     |
planes | i64be-zeros-below      | by-hand 51  | i64be | 13000       | mode=lossless                            |
planes | f32-no-fields          | by-hand 33  | f32   | 13000       | mode=abs,bound=3                         |
planes | f32-powers             | by-hand 52  | f32   | 16384       | mode=lossless                            |
planes | f64be-powers           | by-hand 53  | f64be | 13000       | mode=abs,bound=1e-3                      |
planes | f32-bits-with-exceptions | by-hand 54 | f32  | 8000        | mode=lossless                            |
planes | f32be-exceptions-of-many-values | by-hand 34  | f32be | 8x16x32     | mode=abs,bound=1e-2                     |
planes | f64-exceptions-of-one-value | by-hand 35  | f64   | 5000        | mode=abs,bound=1e-2                      |
planes | f32-4096-exceptions    | by-hand 36  | f32   | 5           | mode=abs,bound=1                         |
planes | f64-exceptions-beyond-the-array | by-hand 37  | f64   | 3           | mode=abs,bound=1                        |
planes | i32be-every-mode       | by-hand 38  | i32be | 8x16x32     | mode=lossless                            |
planes | f32-every-class        | by-hand 42  | f32   | 13x16x40    | mode=rel,bound=1e-4                      |
planes | f64be-every-class      | by-hand 43  | f64be | 13x16x40    | mode=rel,bound=1e-4                      |
planes | f32-bound-of-0         | by-hand 44  | f32   | 4200        | mode=rel,bound=1e-4                      |
planes | f32-places-of-rank-1   | by-hand 45  | f32   | 4096        | mode=abs,bound=0.502                     |
planes | f32-places-of-rank-2   | by-hand 46  | f32   | 128x32      | mode=abs,bound=0.502                     |
planes | f32-places-of-rank-3   | by-hand 47  | f32   | 8x16x32     | mode=abs,bound=0.502                     |
planes | f32-places-of-components-on-a-line | by-hand 55 | f32 | 1365x3 | mode=abs,bound=0.502                     |
planes | f32-places-of-components | by-hand 56 | f32  | 4x16x32x2   | mode=abs,bound=0.502                     |
planes | f32-places-of-components-in-rows | by-hand 57 | f32 | 32x32x4  | mode=abs,bound=0.502                     |
planes | f32-auto-sampled       | noise 95    | f32   | 36000       | mode=abs,bound=1e-3                      |
planes | f64be-auto-packed      | packed 95   | f64be | 60x600      | mode=abs,bound=1e-4                      |
planes | f32-auto-packed        | packed 95   | f32   | 64x100      | mode=rel,bound=1e-5                      |
planes | f32-auto-lossless      | wave 91     | f32   | 16x17x33    | mode=lossless                            |
scaled | i32-auto-bound-on-integers | wave 13     | i32   | 64x70       | mode=abs,bound=1e-3                      |
lorenzo | f32-auto-masked-sampled | masked 95 | f32  | 128x300     | mode=abs,bound=1e-4              | 0x60ad78ec
lorenzo | f32-auto-pw-rel       | noise 92   | f32   | 4096        | mode=pw_rel,bound=1e-3           |
lorenzo | f32-auto-small        | wave 93    | f32   | 10x12x13    | mode=abs,bound=1e-3              |
lorenzo | f32-auto-sampled      | wave 94    | f32   | 40x41x42    | mode=abs,bound=3e-2              |
lorenzo | f32-64-tiles          | steps 96   | f32   | 17x17x512   | mode=abs,bound=0.5,codec=lorenzo  |
lorenzo | f32-68-tiles          | wave 97    | f32   | 17x17x513   | mode=abs,bound=0.1,codec=lorenzo  |
lorenzo | f64-128-tiles         | steps 98   | f64   | 17x17x1024  | mode=abs,bound=1.25,codec=lorenzo |
lorenzo | f32be-135-tiles       | rare 99    | f32be | 33x33x449   | mode=abs,bound=0.5,codec=lorenzo  |
lorenzo | f32-rare              | rare 100   | f32   | 200000      | mode=abs,bound=0.5,codec=lorenzo  |
lorenzo | f32-rare-joint        | rare 101   | f32   | 532480      | mode=abs,bound=0.5,codec=lorenzo  |
lorenzo | f32-striped           | striped 102 | f32  | 16x33x130   | mode=abs,bound=1e-2,codec=lorenzo |
lorenzo | f32-striped-coarse    | striped 103 | f32  | 16x33x130   | mode=abs,bound=0.1,codec=lorenzo  |
lorenzo | f64be-striped-holes   | striped-holes 104 | f64be | 17x32x128 | mode=abs,bound=1e-2,codec=lorenzo |
lorenzo | f64-striped-holes-coarse | striped-holes 105 | f64 | 16x32x127 | mode=abs,bound=0.1,codec=lorenzo |
lorenzo | f32-interpolated-every-way | by-hand 59 | f32 | 19x37x73    | mode=abs,bound=0.051             |
lorenzo | f64be-interpolated-every-way | by-hand 60 | f64be | 18x27x113 | mode=abs,bound=0.051          |
lorenzo | f32-interpolated-lines | by-hand 61 | f32  | 8211        | mode=abs,bound=0.051             |
lorenzo | f32-every-symbol      | by-hand 58 | f32   | 180284      | mode=abs,bound=0.5                |
planes | f32-step-that-rounds-down | by-hand 62 | f32 | 800         | mode=abs,bound=6.3e29             |
planes | f32-step-that-rounds-up | by-hand 63 | f32   | 800         | mode=abs,bound=3.9e-31            |
lorenzo | f64-pw-rel-lowest-quantum | by-hand 64 | f64 | 6          | mode=pw_rel,bound=0.3             |
lorenzo | f64-interpolated-subnormal-bound | by-hand 65 | f64 | 300 | mode=abs,bound=7.4e-322           |
lorenzo | f64-interpolated-infinite-step | by-hand 66 | f64 | 20    | mode=abs,bound=8.9e307            |
szx    | f32-fewest-and-most-bits | by-hand 67 | f32 | 256        | mode=abs,bound=5.9e-39            |
szx    | f64-fewest-and-most-bits | by-hand 68 | f64 | 256        | mode=abs,bound=2.3e-308           |
szx    | f32be-pw-fewest-and-most-bits | by-hand 69 | f32be | 256 | mode=pw_rel,bound=0.4             |
szx    | f64-pw-fewest-and-most-bits | by-hand 70 | f64 | 256     | mode=pw_rel,bound=0.4             |
lorenzo | worked-lattices       | by-hand 0  | f32   | 2x8         | mode=abs,bound=128.5              |
lorenzo | worked-mode-3         | by-hand 0  | f32   | 6           | mode=pw_rel,bound=0.25            |
lorenzo | f32-units-2-24        | single 106 | f32   | 60x70       | mode=abs,bound=1.2e-4,codec=lorenzo |
lorenzo | f32-units-2-26        | flecks 8   | f32   | 28x297     | mode=abs,bound=1.2254714965820313e-4,codec=lorenzo |
lorenzo | f32-units-2-27-3d     | flecks 9   | f32   | 18x20x40    | mode=abs,bound=7.965564727783204e-5,codec=lorenzo |
lorenzo | f32-units-2-28-1d     | flecks 9   | f32   | 5000        | mode=abs,bound=3.982782363891602e-5,codec=lorenzo |
lorenzo|f32be-units-2-28-fill|flecks 1|f32be|60x70|mode=abs,bound=3.063678741455078e-5,codec=lorenzo|0x7fc00000
lorenzo | f32-units-2-29        | flecks 2   | f32   | 60x70       | mode=abs,bound=1.531839370727539e-5,codec=lorenzo |
lorenzo | f32-units-2-30        | flecks 5   | f32   | 60x70       | mode=abs,bound=9.956955909729005e-6,codec=lorenzo |
lorenzo | f32-units-zigzag      | zigzag 1   | f32   | 24x3x46x3x2 | mode=abs,bound=536870912,codec=lorenzo |
lorenzo | f64-units-2-30        | single 107 | f64   | 60x70       | mode=abs,bound=2e-6,codec=lorenzo |
stored | f64-units-2-53         | single 108 | f64   | 20x30       | mode=abs,bound=2.2e-13,codec=lorenzo     |
stored | f32-planes-few         | ramp 109   | f32   | 7           | mode=abs,bound=0.1,codec=planes          |
stored | f32-planes             | decades 110 | f32  | 3000        | mode=abs,bound=4e-10,codec=planes        |
stored | f64be-planes           | decades 111 | f64be | 5           | mode=abs,bound=4e-10,codec=planes        |
stored | f32-planes-fill        | ramp 112   | f32   | 6           | mode=abs,bound=0.4,codec=planes        | 0x3f000000
stored | f32-planes-rel         | decades 110 | f32  | 3000        | mode=rel,bound=1e-19,codec=planes        |
lorenzo | f32-on-the-grid-no-way | coset 113  | f32   | 300         | mode=abs,bound=128.5,codec=lorenzo |
lorenzo | f64-on-the-grid-no-way | coset 114  | f64   | 300         | mode=abs,bound=128.5,codec=lorenzo |
szx    | f16-abs               | noise 120  | f16   | 10x20x30    | mode=abs,bound=1e-2,codec=szx    |
szx    | bfloat16be-pw-rel     | ramp 121   | bfloat16be | 40x60  | mode=pw_rel,bound=2e-2,codec=szx |
lorenzo | f16be-masked-rel     | masked 123 | f16be | 60x100      | mode=rel,bound=1e-2,codec=lorenzo | 0x7bff
lorenzo | bfloat16-abs-3d      | wave 124   | bfloat16 | 17x18x35 | mode=abs,bound=3e-2,codec=lorenzo |
planes | f16-abs               | wave 126   | f16   | 10x20x30    | mode=abs,bound=1e-2,codec=planes |
planes | bfloat16-sparse       | sparse 127 | bfloat16 | 60x100   | mode=abs,bound=0.5,codec=planes  |
planes | f16be-psnr            | wave 128   | f16be | 40x200      | mode=psnr,bound=50,codec=planes  |
bytes  | f16-fine              | wave 130   | f16   | 3000        | mode=abs,bound=1e-6              |
bytes  | bfloat16-of-one-value | constant 131 | bfloat16 | 3000   | mode=rel,bound=1e-3              |
planes | i16-lossless          | patches 139 | i16   | 40x60       | mode=lossless                    |
planes | i16be-wave            | wave 140    | i16be | 16x32x33    | mode=lossless,codec=planes       |
planes | u16-of-components     | ramp 141    | u16   | 60x70x3     | mode=lossless,codec=planes       |
planes | i8-steps              | steps 142   | i8    | 70x64       | mode=lossless,codec=planes       |
planes | u8be-patches          | patches 143 | u8be  | 4500        | mode=lossless,codec=planes       |
planes | i16-masked            | masked 144  | i16   | 50x100      | mode=abs,bound=1,codec=planes    | 0x8001
bytes  | u8-sparse             | sparse 145  | u8    | 70x70       | mode=lossless                    |
planes | f32-levels             | stacked 90 | f32   | 4x6x30x40   | mode=abs,bound=1e-2,codec=planes         |
planes | f64be-levels-rel       | stacked 91 | f64be | 5x2x3x24x50 | mode=rel,bound=1e-3,codec=planes         |
planes | i16-levels             | stacked 92 | i16   | 4x6x30x40   | mode=lossless,codec=planes               |
planes | f64-levels-lossless    | stacked 93 | f64   | 4x6x30x40   | mode=lossless,codec=planes               |
lorenzo | f32-steps-of-planes   | stacked 94 | f32   | 4x6x30x40   | mode=abs,bound=1e-2,codec=lorenzo        |
szx    | f32-words-above-q-swapped | by-hand 95 | f32  | 16x16       | mode=abs,bound=0.5,codec=szx     |
lorenzo | f32-interpolated-classes-swapped | by-hand 96 | f32 | 70x130 | mode=abs,bound=0.051             |
bytes  | u8-mask                | mask 146   | u8    | 90x101      | mode=lossless                            |
bytes  | u16-counts-odd-length  | counts 147 | u16   | 6003 bytes  | mode=lossless                            |
bytes  | u16be-counts           | counts 148 | u16be | 50x61       | mode=lossless                            |
bytes  | compound-4-of-counts   | counts 149 | bytes4 | 51x59      | mode=lossless                            |
bytes  | unknown-counts         | counts 150 | unknown | 5005 bytes | mode=lossless                           |
bytes  | several-tiles-of-bits  | by-hand 0  | u16   | 4301 bytes  | mode=lossless                            |
scaled | worked-example         | by-hand 150 | f32   | 8           | mode=lossless                            |
scaled | i64-clock              | clock 151   | i64   | 20000       | mode=lossless                            |
scaled | u32be-clock            | clock 152   | u32be | 3000        | mode=lossless                            |
scaled | i64be-identifiers      | identifiers 153 | i64be | 5000    | mode=lossless                            |
scaled | i64-jitter             | jitter 154  | i64   | 5000        | mode=lossless                            |
scaled | i32-tens               | tens 155    | i32   | 60x90       | mode=lossless                            |
scaled | f32-hundredths         | hundredths 156 | f32 | 60x90      | mode=lossless                            |
scaled | f64be-hundredths-3d    | hundredths 157 | f64be | 9x20x35  | mode=lossless                            |
scaled | f32-feet               | feet 159    | f32   | 60x90       | mode=lossless                            |
scaled | f32be-unpacked         | unpacked 160 | f32be | 60x90      | mode=lossless                            |
scaled | f64-unpacked           | unpacked 161 | f64  | 60x90       | mode=lossless                            |
scaled | f32-holed-hundredths   | holed-hundredths 162 | f32 | 60x90 | mode=lossless                           |
scaled | f64-holed-hundredths   | holed-hundredths 163 | f64 | 60x90 | mode=lossless                           |
scaled | i32-map-0-order-1      | by-hand 164 | i32   | 300         | mode=lossless                            |
scaled | i64be-map-0-order-2    | by-hand 165 | i64be | 300         | mode=lossless                            |
scaled | f32-map-1-order-2      | by-hand 166 | f32   | 300         | mode=lossless                            |
scaled | f64be-map-1-order-0    | by-hand 167 | f64be | 300         | mode=lossless                            |
scaled | f32be-map-2-order-0    | by-hand 168 | f32be | 17x20       | mode=lossless                            |
scaled | f64-map-2-order-1      | by-hand 169 | f64   | 300         | mode=lossless                            |
scaled | f32-map-3-order-0      | by-hand 170 | f32   | 17x20       | mode=lossless                            |
scaled | i32-map-0-order-3      | by-hand 172 | i32   | 6x5x13      | mode=lossless                            |
scaled | f64be-map-2-order-3    | by-hand 173 | f64be | 17x20       | mode=lossless                            |
scaled | f32-map-3-order-2-swapped | by-hand 171 | f32 | 17x20      | mode=lossless                            |
";

/// Every case of the list.
pub fn all() -> Vec<Case> {
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
