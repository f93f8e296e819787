// SPDX-License-Identifier: MIT OR Apache-2.0
// Holds the module to the golden vectors: every frame bit for bit, every refused frame refused with a sentence, and
// damaged frames without a trap. Says how fast it decodes.
//
//     node wasm/check.mjs h5z_gpu.wasm          in the root of the project
import { readFileSync, readdirSync } from "node:fs";
import { decoder } from "./h5z_gpu.mjs";

const V1 = "tests/vectors/v1";
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
for (const codec of readdirSync(V1).filter((name) => name !== "refused")) {
  for (const file of readdirSync(`${V1}/${codec}`).filter((name) => name.endsWith(".toml"))) {
    const text = readFileSync(`${V1}/${codec}/${file}`, "utf8");
    const want = /^decoded_fnv = "?(?:0x)?([0-9a-f]+)"?/m.exec(text)[1].padStart(16, "0");
    const frame = readFileSync(`${V1}/${codec}/${file.replace(".toml", ".bin")}`);
    frames.push(frame);
    const got = await tried(frame);
    check(`${codec}/${file}`, got instanceof Uint8Array ? fnv(got) === want || "other bytes" : `refused: ${got}`);
  }
}
const decoded = passed;
for (const line of readFileSync(`${V1}/refused/index.toml`, "utf8").split("\n")) {
  const found = /^"(.+?)" = .*raw_bytes = (\d+)/.exec(line);
  if (!found) continue;
  const got = await tried(readFileSync(`${V1}/refused/${found[1]}.bin`));
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
console.log(`${decoded} frames decoded, ${refused} refused, ${passed - decoded - refused} damaged ones noticed`);
for (const [name, path] of process.argv.slice(3).map((text) => text.split("="))) {
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
