// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.zstd;

/** Bytes that are no Zstandard frame, or not the one that was expected. */
public final class Damaged extends Exception {
    private static final long serialVersionUID = 1L;

    /** Whether the frame is right but for the length of its content. */
    public final boolean length;

    Damaged(String why, boolean length) {
        super(why);
        this.length = length;
    }

    Damaged(String why) {
        this(why, false);
    }
}
