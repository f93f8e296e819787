// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints a hash of the values of each Zarr array, as 64-bit floats, as zarrita reads them.
//
//     node zarrita.mjs STORE...      beside h5z_gpu.wasm, h5z_gpu.mjs and node_modules/zarrita, @zarrita/storage
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { FileSystemStore } from "@zarrita/storage";
import { get, open, registry } from "zarrita";
import { codec, decoder } from "./h5z_gpu.mjs";

const decode = await decoder(readFileSync("h5z_gpu.wasm"));
for (const name of ["h5z_gpu", "h5z-gpu", "numcodecs.h5z-gpu"]) registry.set(name, () => codec(decode));

for (const path of process.argv.slice(2)) {
  try {
    const array = await open(new FileSystemStore(path), { kind: "array" });
    const { data, shape } = await get(array);
    const values = Float64Array.from(data, Number);
    const hash = createHash("sha256").update(new Uint8Array(values.buffer)).digest("hex");
    console.log(shape.join("x"), hash);
  } catch (e) {
    console.log("refused", e.cause?.message ?? e.message);
  }
}
