// SPDX-License-Identifier: MIT OR Apache-2.0
// Reads files by h5wasm with the plugin. Prints of each dataset its name and a hash of its values, as 64-bit floats, or
// why it cannot be read.
//
//     node check.mjs PLUGIN FILE...      beside node_modules/h5wasm
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Dataset, File, ready } from "h5wasm/node";

const { FS, get_plugin_search_paths, activate_throwing_error_handler } = await ready;
// Without it h5wasm hands on whatever lies in memory where a chunk cannot be read.
activate_throwing_error_handler();
const folder = get_plugin_search_paths().at(-1);
FS.mkdirTree(folder);
FS.writeFile(`${folder}/libH5Zh5zgpu.so`, readFileSync(process.argv[2]));

for (const path of process.argv.slice(3)) {
  const file = new File(path, "r");
  for (const name of file.paths()) {
    const item = file.get(name);
    if (!(item instanceof Dataset)) continue;
    try {
      const values = Float64Array.from(item.value, Number);
      console.log(name, createHash("sha256").update(new Uint8Array(values.buffer)).digest("hex"));
    } catch (e) {
      console.log(name, e instanceof WebAssembly.RuntimeError ? "TRAP" : "refused", e.message.split("\n")[0]);
    }
  }
  file.close();
}
