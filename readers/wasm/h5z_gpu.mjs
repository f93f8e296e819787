// SPDX-License-Identifier: MIT OR Apache-2.0
// Decodes chunks of the HDF5 filter 443 in a browser or in Node.js.
//
//     import { decoder } from "./h5z_gpu.mjs";
//     const decode = await decoder(await (await fetch("h5z_gpu.wasm")).arrayBuffer());
//     decode(chunk)      // an ArrayBuffer or its view, as it lies in the file; gives the values' bytes, a Uint8Array
//
// jsfive:   Filters.set(443, (chunk) => decode(chunk).buffer)
// zarrita:  for (const name of ["h5z_gpu", "h5z-gpu", "numcodecs.h5z-gpu"]) registry.set(name, () => codec(decode))

/** Makes a decoder of the module's bytes, or of a compiled WebAssembly.Module. */
export async function decoder(module) {
  const made = await WebAssembly.instantiate(module);
  const w = (made.instance ?? made).exports;
  return function decode(chunk) {
    const frame = ArrayBuffer.isView(chunk)
      ? new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      : new Uint8Array(chunk);
    const room = w.h5z_gpu_room(frame.length);
    if (room === 0) throw new Error(`h5z-gpu: no memory for a chunk of ${frame.length} bytes`);
    new Uint8Array(w.memory.buffer, room, frame.length).set(frame);
    const failed = w.h5z_gpu_decode(frame.length);
    const answer = new Uint8Array(w.memory.buffer, w.h5z_gpu_answer(), w.h5z_gpu_answer_len()).slice();
    if (failed) throw new Error(new TextDecoder().decode(answer));
    return answer;
  };
}

/** The codec of zarrita and of numcodecs.js that decodes by such a function. */
export function codec(decode) {
  return class {
    static codecId = "h5z-gpu";
    kind = "bytes_to_bytes";

    static fromConfig() {
      return new this();
    }

    decode(chunk, out) {
      const values = decode(chunk);
      out?.set(values);
      return out ?? values;
    }

    encode() {
      throw new Error("h5z-gpu: there is no encoder in a browser");
    }
  };
}
