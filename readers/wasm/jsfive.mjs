// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints a hash of each dataset's values, as 64-bit floats, as jsfive reads them.
//
//     node jsfive.mjs FILE      beside h5z_gpu.wasm, h5z_gpu.mjs and node_modules/jsfive
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Dataset, File, Filters } from "jsfive";
import { decoder } from "./h5z_gpu.mjs";

const decode = await decoder(readFileSync("h5z_gpu.wasm"));
Filters.set(443, (chunk) => decode(chunk).buffer);

function print(group, before) {
  for (const key of group.keys) {
    const item = group.get(key);
    if (!(item instanceof Dataset)) {
      print(item, `${before + key}/`);
      continue;
    }
    const values = Float64Array.from(item.value, Number);
    console.log(before + key, createHash("sha256").update(new Uint8Array(values.buffer)).digest("hex"));
  }
}
const bytes = readFileSync(process.argv[2]);
print(new File(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength), "file.h5"), "");
