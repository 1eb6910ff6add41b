/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/recipher.h"

/* In runs of pieces that are not zero: what is a hole shall stay one. */

#include "base/bytes.h"

static bool piece_is_zero(const unsigned char *piece)
{
    return bytes_are_zero(piece, SECTOR_PIECE);
}

static size_t same_kind(const unsigned char *p, size_t len, bool zero)
{
    size_t n = SECTOR_PIECE;

    while (n < len && piece_is_zero(p + n) == zero)
        n += SECTOR_PIECE;
    return n;
}

int sector_recipher(struct sector_engine *from, struct sector_engine *to, unsigned char *bytes,
                    size_t len, uint64_t off)
{
    int r = 0;

    while (r == 0 && len > 0) {
        bool zero = piece_is_zero(bytes);
        size_t n = same_kind(bytes, len, zero);

        if (!zero)
            r = sector_decrypt(from, bytes, bytes, n, off);
        if (!zero && r == 0)
            r = sector_encrypt(to, bytes, bytes, n, off);
        bytes += n;
        off += n;
        len -= n;
    }
    return r;
}
