// SPDX-License-Identifier: MIT OR Apache-2.0
// Holds the module to the golden vectors: every frame bit for bit, every refused frame refused with a sentence, and
// damaged frames without a trap. Says how fast it decodes.
//
//     node readers/wasm/check.mjs h5z_gpu.wasm [NAME=FRAME...] [ANSWERS...]          in the root of the project
//
// ANSWERS are files of frames with the library's answers, which `make hostile LEAVE=...` writes.
import { readFileSync, readdirSync } from "node:fs";
import { decoder } from "./h5z_gpu.mjs";

const V2 = "tests/vectors/v2";
const module = await WebAssembly.compile(readFileSync(process.argv[2]));
let decode = await decoder(module);
let passed = 0;
const failed = [];

/** FNV-1a of 64 bits, in two halves: tests/vectors/README.md. */
function fnv(bytes) {
  let low = 0x84222325, high = 0xcbf29ce4;
  for (const byte of bytes) {
    low = (low ^ byte) >>> 0;
    // h * 0x100000001b3 = h * 0x1b3 + (h << 40)
    const product = low * 0x1b3;
    high = (Math.imul(high, 0x1b3) + Math.floor(product / 2 ** 32) + (low << 8)) >>> 0;
    low = product >>> 0;
  }
  return high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0");
}

function check(name, is) {
  if (is === true) passed += 1;
  else failed.push(`${name}: ${is}`);
}

/** The answer, or the sentence of a refusal; a trap is a fault of ours. */
async function tried(frame) {
  try {
    return decode(frame);
  } catch (e) {
    if (e instanceof WebAssembly.RuntimeError) {
      decode = await decoder(module);
      return null;
    }
    return e.message;
  }
}

const frames = [];
for (const codec of readdirSync(V2).filter((name) => name !== "refused")) {
  for (const row of readFileSync(`${V2}/${codec}/vectors.toml`, "utf8").split("\n")) {
    const found = /^"(.+?)" = .*decoded_fnv = "([0-9a-f]+)"/.exec(row);
    if (!found) continue;
    const frame = readFileSync(`${V2}/${codec}/${found[1]}.bin`);
    frames.push(frame);
    const got = await tried(frame);
    const same = got instanceof Uint8Array ? fnv(got) === found[2] || "other bytes" : `refused: ${got}`;
    check(`${codec}/${found[1]}`, same);
  }
}
const decoded = passed;
for (const line of readFileSync(`${V2}/refused/index.toml`, "utf8").split("\n")) {
  const found = /^"(.+?)" = .*raw_bytes = (\d+)/.exec(line);
  if (!found) continue;
  const got = await tried(readFileSync(`${V2}/refused/${found[1]}.bin`));
  // Some are whole frames of another chunk's length, which is the caller's to see.
  const other = got instanceof Uint8Array && got.length !== Number(found[2]);
  check(found[1], other || (typeof got === "string" && got.startsWith("h5z-gpu: ")) || `not refused: ${got}`);
}
const refused = passed - decoded;
let state = 1;
const random = (n) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % n;
for (let k = 0; k < 4000; k++) {
  const frame = Uint8Array.from(frames[random(frames.length)]);
  frame[random(frame.length)] ^= 1 << random(8);
  const got = await tried(frame);
  check(`damage ${k}`, typeof got === "string" || `${got === null ? "a trap" : "nothing noticed"}`);
}
const noticed = passed - decoded - refused;

/** Puts a frame's checksum right: codecs/src/FORMAT.md §4.2. */
function seal(frame) {
  const view = new DataView(frame.buffer);
  const words = Math.ceil(frame.length / 4);
  const word = (i) => {
    if (4 * i + 4 <= frame.length) return BigInt(view.getUint32(4 * i, true));
    let w = 0n;
    for (let k = frame.length - 1; k >= 4 * i; k--) w = (w << 8n) | BigInt(frame[k]);
    return w;
  };
  let sum = 0n;
  for (let i = 0; i < words; i++) {
    if (i === 10 || i === 11) continue;
    const t = BigInt.asUintN(64, BigInt(2 * i + 1) * 0x9e3779b97f4a7c15n);
    const p = BigInt.asUintN(64, word(i) * BigInt.asUintN(64, t ^ (t << 32n)));
    sum = BigInt.asUintN(64, sum + (p ^ (p >> 32n)));
  }
  view.setBigUint64(40, sum, true);
}

// Behind a checksum that is right, every check of a decoder is on its own.
const small = frames.filter((frame) => frame.length >= 64 && frame.length < 6000);
for (const frame of small.slice(0, 20)) {
  const again = Uint8Array.from(frame);
  seal(again);
  check("the checksum", again.every((byte, k) => byte === frame[k]) || "another one than the library's");
}
for (let k = 0; k < 8000; k++) {
  let frame = Uint8Array.from(small[random(small.length)]);
  if (random(4) === 0) {
    frame = frame.slice(0, 56 + random(frame.length - 56));
    new DataView(frame.buffer).setBigUint64(24, BigInt(frame.length), true);
  }
  for (let n = random(4); n >= 0; n--) {
    // The head more often than the rest, which is longer.
    const at = random(2) ? 9 + random(frame.length - 9) : 9 + random(Math.min(frame.length, 200) - 9);
    frame[at] = random(2) ? random(256) : frame[at] ^ (1 << random(8));
  }
  seal(frame);
  const got = await tried(frame);
  const answered = got instanceof Uint8Array || (typeof got === "string" && got.startsWith("h5z-gpu: "));
  check(`sealed damage ${k}`, answered || `${got ?? "a trap"}`);
}
/** Whether a frame is answered as the library does: with a hash, 0 where it refuses it, or expects another length. */
async function agrees(frame, length, want) {
  // The module takes the header's length: to compare it is the caller's duty.
  if (frame.readBigUInt64LE(16) !== BigInt(length)) return want === 0n;
  const got = await tried(frame);
  if (got instanceof Uint8Array) return fnv(got) === want.toString(16).padStart(16, "0");
  // What zstd of 32 bits refuses and that of 64 bits may read: codecs/src/codec/bytes/FORMAT.md §3.3.
  return got !== null && (want === 0n || got.includes("zstd: "));
}

for (const name of process.argv.slice(3).filter((text) => !text.includes("="))) {
  const file = readFileSync(name);
  for (let at = 0; at < file.length; ) {
    const [size, length, want] = [file.readUInt32LE(at), file.readUInt32LE(at + 4), file.readBigUInt64LE(at + 8)];
    at += 16 + size;
    const same = await agrees(file.subarray(at - size, at), length, want);
    check(`${name}, the frame that ends at ${at}`, same || "another answer than the library's");
  }
}
for (const frame of frames.slice(0, 50)) check("after damage", (await tried(frame)) instanceof Uint8Array || "refused");
const behind = passed - decoded - refused - noticed;
console.log(`${decoded} frames decoded, ${refused} refused, ${noticed} damaged ones noticed, ${behind} more answered`);
for (const [name, path] of process.argv.slice(3).filter((text) => text.includes("=")).map((text) => text.split("="))) {
  const frame = readFileSync(path);
  let best = Infinity, bytes = 0;
  for (let k = 0; k < 8; k++) {
    const start = performance.now();
    bytes = decode(frame).length;
    best = Math.min(best, performance.now() - start);
  }
  console.log(`${name}: ${(bytes / best / 1e3).toFixed(0)} MB/s of ${bytes} bytes`);
}
failed.slice(0, 20).forEach((line) => console.log(line));
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
