// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.netcdf;

import java.io.IOException;
import java.util.Map;
import org.h5zgpu.Frame;
import org.h5zgpu.Refused;
import org.h5zgpu.StoredWords;
import ucar.nc2.filter.Filter;

/**
 * netCDF-Java's view of the filter: a chunk's frame in, its raw bytes out. It reads and does not write.
 *
 * <p>Where the file's words tell the chunk's length, a frame of another length is refused, as the plugin does: but for
 * bytes of unknown shape, which a mandatory filter writes where words were copied from another dataset.
 */
public final class H5zGpuFilter extends Filter {
    static final String NAME = "h5z-gpu";
    static final int ID = 443;
    // Keys of netCDF-Java's properties.
    private static final String WORDS = "data";
    private static final String OPTIONAL = "optional";
    private static final int BYTES_OF_UNKNOWN_SHAPE = 15;

    private final long chunkLength;
    private final boolean optional;

    H5zGpuFilter(Map<String, Object> properties) {
        Object words = properties.get(WORDS);
        chunkLength = words instanceof int[] ? StoredWords.chunkLength((int[]) words) : Frame.ANY_LENGTH;
        optional = Boolean.TRUE.equals(properties.get(OPTIONAL));
    }

    @Override
    public String getName() {
        return NAME;
    }

    @Override
    public int getId() {
        return ID;
    }

    @Override
    public byte[] encode(byte[] raw) throws IOException {
        throw new IOException("h5z-gpu: this filter reads only. The plugin libh5zgpu.so writes");
    }

    @Override
    public byte[] decode(byte[] frame) throws IOException {
        try {
            return held(frame);
        } catch (Refused e) {
            throw new IOException("h5z-gpu: a chunk cannot be read. " + e.getMessage(), e);
        }
    }

    private byte[] held(byte[] frame) throws Refused {
        try {
            return Frame.decode(frame, chunkLength);
        } catch (Refused e) {
            if (optional || !e.rule.equals("F15") || Frame.type(frame) != BYTES_OF_UNKNOWN_SHAPE) {
                throw e;
            }
            return Frame.decode(frame, Frame.ANY_LENGTH);
        }
    }
}
