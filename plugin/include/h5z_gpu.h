/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The codecs of libh5zgpu.so without HDF5, for C and for ctypes.
 *
 * Words are HDF5's cd_values: none is lossless, one is the packed decimal [C]MDDEE (11003 is absolute 1e-3, 90000 is
 * lossless, 0 is refused), three are CM and a double, 12 to 20 are the stored list, whose last word is 90000. A frame is
 * one encoded chunk; it describes itself.
 *
 * Lengths are bytes. Functions that answer int64_t answer -1 on failure; h5z_gpu_last_error() says why. They may be
 * called from several threads at once. Where a function takes a description of chunks, it is
 *
 *   words, count    what is asked, in any form; NULL and 0 for lossless
 *   type            NumPy's array.dtype.str: "<f4", ">f8", "<i4", "|u1"; anything else, such as "|V12", is bytes
 *   rank, dims      extents of one chunk, slowest first
 *   fill            one element that comes back bit for bit and stretches no range, or NULL
 */
#ifndef H5Z_GPU_H
#define H5Z_GPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most words that any form has. */
#define H5Z_GPU_WORDS_MAX 20

/* "0.1.0" */
const char *h5z_gpu_version(void);

/* The filter's number in HDF5. */
int h5z_gpu_filter_id(void);

/* Why the last call of this thread failed, "" when none did. Stays until the thread's next failure. */
const char *h5z_gpu_last_error(void);

/* The shortest words for "11003" or "mode=abs,bound=1e-3,codec=szx". Answers how many; 0 is lossless. */
int64_t h5z_gpu_words(const char *text, uint32_t words[H5Z_GPU_WORDS_MAX]);

/* The text of words, at most size - 1 bytes and a NUL. Answers the length of the whole text. */
int64_t h5z_gpu_text(const uint32_t *words, size_t count, char *text, size_t size);

/* The stored list, complete: what a program needs whose HDF5 cannot be asked. Answers how many words. */
int64_t h5z_gpu_stored_words(const uint32_t *words, size_t count, const char *type, size_t rank, const uint64_t *dims,
                             const void *fill, uint32_t stored[H5Z_GPU_WORDS_MAX]);

/* No frame of so many raw bytes is longer than this. */
size_t h5z_gpu_max_encoded(size_t raw_len);

/* Encodes one chunk. Answers the frame's length. What cannot be made smaller is stored, and what there is too little
   memory for: there is no other failure than contradictory arguments, too small a buffer, and no memory for as many
   bytes again. */
int64_t h5z_gpu_encode(const uint32_t *words, size_t count, const char *type, size_t rank, const uint64_t *dims,
                       const void *fill, const void *raw, size_t raw_len, void *frame, size_t size);

/* Encodes n chunks of one description and length, each into a buffer of size bytes; lens takes each frame's length,
   -1 where the buffer was too small or there was no memory. Answers how many were encoded. */
int64_t h5z_gpu_encode_batch(const uint32_t *words, size_t count, const char *type, size_t rank, const uint64_t *dims,
                             const void *fill, size_t n, const void *const *raw, size_t raw_len, void *const *frames,
                             size_t size, int64_t *lens);

/* Length of the chunk that a frame holds, as its header says. */
int64_t h5z_gpu_raw_len(const void *frame, size_t len);

/* Decodes one frame. Answers the chunk's length; a damaged frame fails. */
int64_t h5z_gpu_decode(const void *frame, size_t len, void *raw, size_t size);

/* Decodes n frames, each into a buffer of exactly its raw length; status takes 0 or -1 for each. Answers how many were
   decoded. A damaged frame leaves the others alone. */
int64_t h5z_gpu_decode_batch(size_t n, const void *const *frames, const size_t *lens, void *const *raw,
                             const size_t *sizes, int *status);

/* Chunks that the GPU has encoded (0) or decoded (1) for this process so far. Starts nothing. */
int64_t h5z_gpu_device_chunks(int decoded);

#ifdef __cplusplus
}
#endif

#endif
