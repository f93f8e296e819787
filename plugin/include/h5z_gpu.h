/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The codecs of libh5zgpu.so without HDF5, for C and for ctypes.
 *
 * Words are HDF5's cd_values: none is lossless, one is the packed decimal [C]MDDEE (11003 is absolute 1e-3, 90000 is
 * lossless, 0 is refused), three are CM and a double, four these and what is kept beside the bound (the sum of
 * H5Z_GPU_KEEP_SIGN, H5Z_GPU_KEEP_ZERO and H5Z_GPU_KEEP_RANGE), 12 to 20 are the stored list, whose last word is
 * 90000. A frame is one encoded chunk; it describes itself.
 *
 * Lengths are bytes. Functions that answer int64_t answer a number of enum h5z_gpu_failure on failure, all of which are
 * less than 0; h5z_gpu_last_error() says why. They may be called from several threads at once, and hold what they were
 * given until they return, no longer; h5z_gpu_encode_array and those that begin a transfer begin work that goes on.
 * Where a function takes a description of chunks, it is
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

/* What may be kept beside an absolute or a relative bound or a PSNR, the fourth word of four. */
#define H5Z_GPU_KEEP_SIGN 1u  /* positive values stay positive, negative ones negative; 0 and -0 stay one of the two */
#define H5Z_GPU_KEEP_ZERO 2u  /* 0 and -0 come back bit for bit */
#define H5Z_GPU_KEEP_RANGE 4u /* no value leaves the chunk's range, whose ends and zeros come back bit for bit */

/* "0.1.0"; "0.1.0+unreleased" of a build whose codecs or kernels are no release's */
const char *h5z_gpu_version(void);

/* The filter's number in HDF5. */
int h5z_gpu_filter_id(void);

/* Why the last call of this thread failed, "" when none did. Stays until the thread's next failure. Of several frames:
   the first that failed for another reason than damage, else the last damaged one. */
const char *h5z_gpu_last_error(void);

/* What kind of failure it was: what a function answers, and the status of a frame. */
enum h5z_gpu_failure {
    H5Z_GPU_FAILED = -1,   /* arguments that contradict themselves, or a device that fails */
    H5Z_GPU_DAMAGED = -2,  /* a frame is not what was written, ends early, or needs a newer version */
    H5Z_GPU_IO = -3,       /* a file could not be read or written, h5z_gpu_last_errno() says why: try again */
    H5Z_GPU_NO_MEMORY = -4, /* too little memory of the host or the device: fewer chunks at a time, or fewer threads */
    H5Z_GPU_OTHER_WAY = -5 /* nothing is wrong: HDF5's own way is to be taken */
};

/* The system's error number (errno) of that failure; 0 where it has none, or HDF5 does not tell it. */
int h5z_gpu_last_errno(void);

/* The shortest words for "11003" or "mode=abs,bound=1e-3,codec=szx,keep=sign+range". Answers how many; 0 is
   lossless. */
int64_t h5z_gpu_words(const char *text, uint32_t words[H5Z_GPU_WORDS_MAX]);

/* The text of words, at most size - 1 bytes and a NUL. Answers the length of the whole text. */
int64_t h5z_gpu_text(const uint32_t *words, size_t count, char *text, size_t size);

/* What words mean in plain words, and every tool's line for them, as JSON: at most size - 1 bytes and a NUL. Answers
   the length of the whole text. */
int64_t h5z_gpu_tools(const uint32_t *words, size_t count, char *text, size_t size);

/* What a request may say, as JSON: "modes", each with its names, its promise and the codecs that take it; "codecs", as
   they are requested; "keeps", what may be kept beside a bound; "frame_codecs", the names of codecs in frames by
   number. At most size - 1 bytes and a NUL. Answers the length of the whole text. */
int64_t h5z_gpu_choices(char *text, size_t size);

/* The stored list, complete: what a program needs whose HDF5 cannot be asked. Answers how many words. */
int64_t h5z_gpu_stored_words(const uint32_t *words, size_t count, const char *type, size_t rank, const uint64_t *dims,
                             const void *fill, uint32_t stored[H5Z_GPU_WORDS_MAX]);

/* The longest frame of a chunk of `raw_len` bytes. */
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

/* Decodes n frames, each into a buffer of exactly its raw length; status takes 0 or a failure for each. Answers how
   many were decoded. A damaged frame leaves the others alone. */
int64_t h5z_gpu_decode_batch(size_t n, const void *const *frames, const size_t *lens, void *const *raw,
                             const size_t *sizes, int *status);

/* Whole arrays. A chunk is the box of `chunk` elements at an origin, both one number an axis, slowest first. The box
   may reach beyond the array. Threads work on several chunks at a time, and a GPU where there is one; the frames are
   those of the filter. An array in a device's memory is read and written there by that device, so that only frames
   cross the bus; it may have eight axes that do not lie together. */

/* An array in memory, as DLPack and __cuda_array_interface__ describe one. */
typedef struct h5z_gpu_array {
    void *data;             /* first element */
    int32_t device;         /* -1: host memory; 0 and more: the CUDA device */
    uint32_t flags;         /* H5Z_GPU_READ_ONLY, H5Z_GPU_EVERY_DEVICE */
    const char *type;       /* "<f4" */
    size_t rank;            /* 1 or more */
    const uint64_t *shape;  /* elements */
    const int64_t *strides; /* bytes, of any sign; NULL: dense, slowest axis first */
    /* a device's array is ready when what this CUstream was given so far is done; NULL or 1: the legacy default stream;
       2: the thread's; -1: it is ready. Calls return when the array is written */
    void *stream;
} h5z_gpu_array;

/* CUDA's number of the device whose memory an address is in, as the driver knows: for an array whose library does not
   say it. */
int64_t h5z_gpu_device_of(const void *address);

/* Makes a device current in the calling thread. Ask another library for its array's stream, or for DLPack's capsule,
   between this and h5z_gpu_leave_device: most of them order the work of the device that is current. Answers 0. */
int64_t h5z_gpu_enter_device(int device);

/* Makes current in the calling thread what was before the last h5z_gpu_enter_device that answered 0. */
void h5z_gpu_leave_device(void);

#define H5Z_GPU_READ_ONLY 1u
/* of an array in host memory that is read: all GPUs that the process sees share the work, not its own alone */
#define H5Z_GPU_EVERY_DEVICE 2u

/* Frames of an array on their way. One thread at a time uses it.

   Threads of the library, or a device, read the array from h5z_gpu_encode_array until h5z_gpu_end. So keep one thing
   that owns the work and holds the array, made before the work begins, and let it end the work before it lets the array
   go, however it is left:

     h5z_gpu_work *work = NULL;
     if (h5z_gpu_encode_array(..., &work) >= 0)
         while (h5z_gpu_next(work, &frames, &lens) > 0) ...
     h5z_gpu_end(&work);

   Where a signal or an exception may come between any two steps (Ctrl-C in Python), that is a finaliser's task: work is
   NULL until there is any, and h5z_gpu_end sets it to NULL, so it may be called whenever and twice. */
typedef struct h5z_gpu_work h5z_gpu_work;

/* Begins to encode n chunks of an array, which must not change before the last frame is there. `origins` has n * rank
   numbers; `fill`, one element or NULL for zeros, stands in a chunk beyond the array. Give the stored list of a dataset
   as words: then the frames are those that the filter writes there. Without one `fill` is the fill value too. threads:
   0 for as many as the process may use. Answers n, and the work in *work, which stays as it is on failure. */
int64_t h5z_gpu_encode_array(const uint32_t *words, size_t count, const h5z_gpu_array *from, const uint64_t *chunk,
                             const void *fill, size_t n, const int64_t *origins, int threads, h5z_gpu_work **work);

/* The next frames, in order, in memory of ours until the next call. Answers how many; 0: all were given. Do not call it
   in a process forked after the work began. */
int64_t h5z_gpu_next(h5z_gpu_work *work, const void *const **frames, const size_t **lens);

/* Ends the work, whether all frames were given or not, waits for its threads, and sets *work to NULL; nothing where it
   is NULL. NULL is allowed. */
void h5z_gpu_end(h5z_gpu_work **work);

/* Smallest and largest finite value of an array of "<f4", "<f8", ">f4" or ">f8", of n boxes that should cover it, but
   for those with the bits of `fill`, one element or NULL. Answers 1, or 0 where there is no such value. */
int64_t h5z_gpu_range(const h5z_gpu_array *of, const uint64_t *chunk, const void *fill, size_t n,
                      const int64_t *origins, int threads, double range[2]);

/* Boxes of a dataset, read or written chunk by chunk beside HDF5's pipeline: many at a time, and the file is the same.
   `hdf5` is any function of the HDF5 library that the dataset belongs to: the others are looked up there. `type` is
   HDF5's type of the array's elements in memory. The caller holds whatever lock that library needs, from the first call
   to h5z_gpu_end_transfer; no thread of ours enters it.

   A transfer goes on by steps, between which a program may look for a signal or show its progress:

     h5z_gpu_transfer *transfer = NULL;
     int64_t n = h5z_gpu_read_dataset((h5z_gpu_hdf5)H5Dread, dataset, H5T_NATIVE_FLOAT, start, &to, 0, 0, &transfer);
     if (n == H5Z_GPU_OTHER_WAY) ... H5Dread
     else if (n >= 0)
         while ((n = h5z_gpu_step(transfer)) > 0) ...
     h5z_gpu_end_transfer(&transfer);

   The array is kept until then, as with h5z_gpu_work. Nothing is held back: chunks of a step that has returned are in
   HDF5's hands. */
typedef struct h5z_gpu_transfer h5z_gpu_transfer;
typedef void (*h5z_gpu_hdf5)(void);

/* Begins to read the box from `start` on, of the array's extents. fill_damaged: not 0 puts the dataset's fill value
   where a chunk is damaged; else that is a failure. Answers the bytes of the array, and the transfer in *transfer,
   which stays as it is on failure. H5Z_GPU_OTHER_WAY: H5Dread is to do it, and h5z_gpu_last_error says why.
   H5Z_GPU_DAMAGED: the file's list of the chunks is. */
int64_t h5z_gpu_read_dataset(h5z_gpu_hdf5 hdf5, int64_t dataset, int64_t type, const uint64_t *start,
                             const h5z_gpu_array *to,
                             int fill_damaged, int threads, h5z_gpu_transfer **transfer);

/* Begins to write it, as above. What of chunks the box cuts goes through H5Dwrite. */
int64_t h5z_gpu_write_dataset(h5z_gpu_hdf5 hdf5, int64_t dataset, int64_t type, const uint64_t *start,
                              const h5z_gpu_array *from,
                              int threads, h5z_gpu_transfer **transfer);

/* Goes on for some tenths of a second: bytes of the array that are done; 0: all are. Failures say which chunk; those
   before it are read or written. */
int64_t h5z_gpu_step(h5z_gpu_transfer *transfer);

/* Chunks that a user is told of: read, those that are damaged and hold the fill value; written, those that the box
   cuts. Their first elements, rank numbers each, in memory of the transfer until its next step. Answers how many. */
int64_t h5z_gpu_special_chunks(const h5z_gpu_transfer *transfer, size_t rank, const uint64_t **origins);

/* Ends the transfer, finished or not, and sets *transfer to NULL; nothing where it is NULL. NULL is allowed. */
void h5z_gpu_end_transfer(h5z_gpu_transfer **transfer);

/* The chunks of a dataset that are stored, in the order in which HDF5 lists them. */
typedef struct h5z_gpu_chunks {
    size_t count;
    const uint64_t *origins; /* first elements, count * rank numbers */
    const uint64_t *at;      /* where each begins in the file */
    const uint64_t *lens;    /* its bytes there */
    const uint32_t *masks;   /* filters that it does without, a bit each */
    const char *wrong;       /* why the list cannot be believed, "" where it can. What cannot be chunks is not in it */
    size_t twice_count;
    const uint64_t *twice; /* places listed more than once, rank numbers each: none of their chunks is in the list */
} h5z_gpu_chunks;

/* Reads n bytes at a place of the file into `to`: 1, or 0 where they are not there. */
typedef int (*h5z_gpu_fetch)(void *data, uint64_t at, void *to, size_t n);

/* Every chunk of a chunked dataset, whatever its filters, where it really is: versions of HDF5 list some indexes
   wrongly, and count addresses differently where there is a user block, so bytes are compared. H5Dflush comes first.
   `file` is a descriptor of the file, here and below (on Windows its handle, which _get_osfhandle tells); `fetch`, if
   not NULL, is asked instead. Answers how many, and the list in *chunks, which h5z_gpu_end_chunks takes back. */
int64_t h5z_gpu_list_chunks(h5z_gpu_hdf5 hdf5, int64_t dataset, int file, h5z_gpu_fetch fetch, void *data,
                            h5z_gpu_chunks **chunks);
void h5z_gpu_end_chunks(h5z_gpu_chunks **chunks);

/* Asks for n chunks by their places. 0: HDF5 finds as many bytes as `lens` says, 0 for none. H5Z_GPU_DAMAGED: not for
   all. */
int64_t h5z_gpu_find_chunks(h5z_gpu_hdf5 hdf5, int64_t dataset, size_t rank, size_t n, const uint64_t *origins,
                            const uint64_t *lens);

/* Whether a chunk may be values, of `stored` bytes at `at`, which an index says is stored without filters: 0, or
   H5Z_GPU_DAMAGED. */
int64_t h5z_gpu_raw_chunk(int file, uint64_t at, uint64_t stored, uint64_t raw_len);

/* Decodes n frames of a file that is open for reading, each lens[k] bytes from at[k] on, into an array; the file's
   position stays. What of a chunk lies in the array is written, and nothing else; an origin may be negative: so an
   array may be a selection of a dataset, and only what it needs of a chunk is decoded. Chunks must not meet. status
   takes 0 or a failure for each. Answers how many were decoded. A frame that fails leaves the others alone. Where a
   device has no memory to work in, the host decodes. */
int64_t h5z_gpu_decode_file(int file, size_t n, const uint64_t *at, const uint64_t *lens, const h5z_gpu_array *to,
                            const uint64_t *chunk, const int64_t *origins, int threads, int *status);

/* The same, of frames in memory. */
int64_t h5z_gpu_decode_memory(size_t n, const void *const *frames, const size_t *lens, const h5z_gpu_array *to,
                              const uint64_t *chunk, const int64_t *origins, int threads, int *status);

/* Copies an array to one of the same shape and type, in host memory, between it and a device, or on one device. Steps
   (strides) of 0 repeat an element. Answers 0. */
int64_t h5z_gpu_copy(const h5z_gpu_array *from, const h5z_gpu_array *to);

/* What a frame says of itself. */
typedef struct h5z_gpu_frame {
    int32_t status;  /* 0, or a failure, H5Z_GPU_DAMAGED for example: the rest is 0 */
    uint8_t version; /* of the format */
    uint8_t codec;   /* 0 stored, 1 szx, 2 lorenzo, 3 ndzip, 4 bytes, 5 planes, 6 scaled,
                        7 dense */
    uint8_t mode;    /* 1 absolute, 2 relative, 3 point-wise relative, 4 PSNR, 9 lossless */
    uint8_t element; /* bytes of one */
    uint32_t draft;  /* 0; else an unreleased build wrote it, in this state of the format */
    uint64_t raw_len;
    double bound;    /* the absolute one that was used; the relative one in mode 3; 0 in mode 9 */
} h5z_gpu_frame;

/* What n frames of a file that is open for reading say, each lens[k] bytes from at[k] on, of chunks of raw_len bytes.
   Nothing is decoded: `whole` asks for all bytes to be compared with the checksum, else the first ones are read alone.
   Answers how many are well. */
int64_t h5z_gpu_frames(int file, size_t n, const uint64_t *at, const uint64_t *lens, uint64_t raw_len, int whole,
                       int threads, h5z_gpu_frame *frames);

/* What a comparison of values with their originals found. Special values have to keep their bits: NaN, infinities, the
   fill value. */
typedef struct h5z_gpu_verdict {
    uint64_t judged;         /* values compared with the bound: all but the special ones */
    uint64_t nan;            /* special values: originals that are NaN, */
    uint64_t infinite;       /* infinite, */
    uint64_t fill;           /* or have the bits of the fill value */
    uint64_t special_broken; /* of them, those that came back with other bits */
    uint64_t broken;         /* values whose promise is broken, special ones included */
    uint64_t kept_broken[3]; /* of them, those that broke what is kept: sign, zero, range */
    int64_t first;           /* index of the first of them, or -1 */
    uint64_t into_fill;      /* ordinary values that came back with the bits of the fill value */
    int noisy;               /* mode 4: the PSNR is below the bound */
    int has_range;           /* whether there is a value that stretches the range */
    double limit;            /* largest difference allowed, rounded down; mode 3: as a part of the value */
    double worst;            /* largest difference; mode 3: as a part of the value */
    double psnr;             /* in decibels */
    double range[2];         /* smallest and largest value that stretches the range */
} h5z_gpu_verdict;

#define H5Z_GPU_SPECIAL 1u
#define H5Z_GPU_BROKEN 2u

/* Compares n values of "<f4", "<f8", ">f4" or ">f8" with their originals, in exact arithmetic. mode: that of
   h5z_gpu_frame; keep: the sum of what is kept beside the bound, or 0. In modes 2 and 4, and where the range is kept,
   the values are one chunk. `fill`: one element, or NULL. `error` and `marks` take what
   is told of each value, or are both NULL: the difference as a double, 0 for special values, and H5Z_GPU_SPECIAL,
   H5Z_GPU_BROKEN, both or 0. threads: 0 for as many as the process may use. Answers 1 where every promise is kept, else
   0. */
int64_t h5z_gpu_judge(int mode, double bound, uint32_t keep, const char *type, const void *fill, size_t n,
                      const void *original, const void *reconstructed, int threads, double *error, uint8_t *marks,
                      h5z_gpu_verdict *verdict);

/* Where HDF5 looks for plugins when HDF5_PLUGIN_PATH is not set, whether the folders exist or not, with colons between
   (semicolons on Windows): at most size - 1 bytes and a NUL. Answers the length of the whole text. */
int64_t h5z_gpu_hdf5_folders(char *text, size_t size);

/* Version, threads, the GPU or why there is none, settings from the environment, as JSON: at most size - 1 bytes and a
   NUL. Answers the length of the whole text. Starts the GPU. */
int64_t h5z_gpu_status(char *text, size_t size);

/* Chunks that the GPU has encoded (0) or decoded (1) for this process so far. Starts nothing. */
int64_t h5z_gpu_device_chunks(int decoded);

/* Gives GPU memory back that is kept for the next work and not in use now, page-locked memory and up to 192 MiB of the
   host's; that work takes it again. Answers the bytes of GPU memory. Starts nothing. */
int64_t h5z_gpu_release_memory(void);

#ifdef __cplusplus
}
#endif

#endif
