// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.io.IOException;

/**
 * A frame that a reader must not read: it is damaged, of a newer version, or says what the format does not allow.
 *
 * <p>The message begins with the rule that is broken, F1 to F18 or a codec's, as section 7 of the FORMAT.md files
 * numbers them. It is an IOException because that is what netCDF-Java expects of a filter.
 */
public final class Refused extends IOException {
    private static final long serialVersionUID = 1L;

    /** The rule that is broken, such as F5. */
    public final String rule;

    public Refused(String rule, String why) {
        super(rule + ": " + why);
        this.rule = rule;
    }

    /** Raises where the rule is broken. Not for inner loops: the arguments are boxed. */
    static void when(boolean broken, String rule, String why, Object... numbers) throws Refused {
        if (broken) {
            throw new Refused(rule, String.format(why, numbers));
        }
    }
}
