"""Triton kernels of a GPT's decode step and of the greedy choice after it.

A token's work is small: launched as a few hundred kernels, most of its time is waiting between
them. For a single row ``row_step`` is the whole step: as many programs as the device holds at once
walk through the network together, each computing its own columns of every layer. They need no
barrier. A number is published together with the tag of its layer, in one word, and whoever needs a
vector reads it until all its tags are there; the weights are on their way meanwhile. For several
rows torch's products of matrices are as fast as can be, and ``embed_norm``, ``look_back`` and
``add_norm`` do what is between them. ``best_of_parts`` and ``write_best`` choose the next tokens.

Shapes: K inputs and N outputs of a layer, H heads, D width of a head, T slots of the cache.
Reference: 2018, Milakov, Gimelshein, Online normalizer calculation for softmax, arXiv 1805.02867.
"""

from __future__ import annotations

from castalia.utils.triton_language import tl, triton

__all__ = ["add_norm", "best_of_parts", "embed_norm", "look_back", "row_step", "write_best"]

ALONE = tl.constexpr(512)  # of so many words a thread of eight warps holds its own


@triton.jit
def publish(at, y, tag, mask):
    """Write numbers, each in one word with its tag."""
    word = (tag.to(tl.int64) << 32) | (y.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF)
    tl.store(at, word, mask=mask)


@triton.jit
def receive(words, k, tag, real):
    """Return the published numbers k as soon as all of them have their tag."""
    word = tl.load(words + k, mask=real, other=0, volatile=True)
    while tl.min(tl.where(real, (word >> 32).to(tl.int32), tag)) < tag:
        word = tl.load(words + k, mask=real, other=0, volatile=True)
    if k.numel < ALONE:  # several threads hold each number, and only one of them was checked
        word = tl.load(words + k, mask=real, other=0, volatile=True)
    return word.to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def norm(h, gain, shift, real, eps, K: tl.constexpr):
    """Return the layer norm of a vector, of which K numbers are real and the others 0."""
    mean = tl.sum(h, 0) / K
    away = tl.where(real, h - mean, 0.0)
    return away * tl.rsqrt(tl.sum(away * away, 0) / K + eps) * gain + shift


@triton.jit
def optional(at, mask, THERE: tl.constexpr):
    """Return a part of a vector, or zeros where there is none."""
    if THERE:
        found = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    else:
        found = tl.where(mask, 0.0, 0.0)
    return found


@triton.jit
def columns_of(
    weight, bias, residual, tag, n, N,
    K: tl.constexpr, WIDE: tl.constexpr, BIAS: tl.constexpr, ADDED: tl.constexpr,
):  # fmt: skip
    """Return what the outputs n need besides the input: weights, (TILE, WIDE), and what is added.

    Loads are only waited for when their numbers are used, so all of it may be asked for early.
    """
    k = tl.arange(0, WIDE)
    at = tl.multiple_of(weight + n[:, None] * K + k[None, :], [16, 16])
    w = tl.load(at, mask=(n < N)[:, None] & (k < K)[None, :], other=0.0)
    added = optional(bias + n, n < N, BIAS)
    if ADDED:
        added += receive(residual, n, tag, n < N)
    return w, added


@triton.jit
def layer(
    inputs, tag, gain, shift, weight, bias, residual, out, out_tag, N, eps,
    KIND: tl.constexpr, NORMED: tl.constexpr, SHIFTED: tl.constexpr, BIAS: tl.constexpr,
    TILE: tl.constexpr, K: tl.constexpr, WIDE: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Receive a vector and publish products of it, or of its norm, with rows of a weight."""
    ADDED: tl.constexpr = KIND == "residual"
    first, k = tl.program_id(0), tl.arange(0, WIDE)
    n = first * TILE + tl.arange(0, TILE)
    if first * TILE < N:
        w, added = columns_of(weight, bias, residual, tag, n, N, K, WIDE, BIAS, ADDED)
        g, s = optional(gain + k, k < K, NORMED), optional(shift + k, k < K, SHIFTED)
        h = receive(inputs, k, tag, k < K)
        if NORMED:
            h = norm(h, g, s, k < K, eps, K)
        h = h.to(w.dtype).to(tl.float32)
        for _tile in range(first, tl.cdiv(N, TILE), PROGRAMS):
            then = n + PROGRAMS * TILE
            more, later = columns_of(weight, bias, residual, tag, then, N, K, WIDE, BIAS, ADDED)
            y = tl.sum(w.to(tl.float32) * h[None, :], 1) + added
            if KIND == "gelu":  # y (1 + tanh z) / 2 = y sigmoid(2 z), z = sqrt(2 / pi) (y + …)
                y = y * tl.sigmoid(1.5957691216057308 * (y + 0.044715 * y * y * y))
            if KIND == "logits":
                tl.store(out + n, y, mask=n < N)
            else:
                publish(out + n, y, out_tag, n < N)
            n, w, added = then, more, later


@triton.jit
def block_of(
    keys, values, real, start, position,
    PADDED: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Return keys and values of a block of slots, (BLOCK, D), and which of them are seen."""
    slot, d = start + tl.arange(0, BLOCK), tl.arange(0, D)
    seen = slot < position
    if PADDED:
        seen = seen & (tl.load(real + slot, mask=seen, other=0) != 0)
    at = slot[:, None] * D + d[None, :]
    k = tl.load(tl.multiple_of(keys + at, [16, 16]), mask=seen[:, None], other=0.0)
    v = tl.load(tl.multiple_of(values + at, [16, 16]), mask=seen[:, None], other=0.0)
    return k, v, seen


@triton.jit
def look(
    q, own_k, own_v, k, v, seen, keys, values, real, position,
    PADDED: tl.constexpr, AHEAD: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Return what a query gathers from itself and from the slots before it, (D,).

    The first block of these is given; with ``AHEAD`` each next one is asked for before the one at
    hand is used.
    """
    top, total, found = tl.sum(q * own_k, 0), tl.full((), 1.0, tl.float32), own_v
    for start in range(0, position, BLOCK):
        then = start + BLOCK
        if AHEAD:
            next_k, next_v, sees = block_of(keys, values, real, then, position, PADDED, BLOCK, D)
        score = tl.where(seen, tl.sum(q[None, :] * k.to(tl.float32), 1), -1e30)
        higher = tl.maximum(top, tl.max(score, 0))
        fade = tl.exp(top - higher)
        share = tl.where(seen, tl.exp(score - higher), 0.0)
        total = total * fade + tl.sum(share, 0)
        found = found * fade + tl.sum(share[:, None] * v.to(tl.float32), 0)
        if not AHEAD:
            next_k, next_v, sees = block_of(keys, values, real, then, position, PADDED, BLOCK, D)
        top, k, v, seen = higher, next_k, next_v, sees
    return found / total


@triton.jit
def head_of(
    qkv, tag, out, keys, values, head, position, scale,
    DTYPE: tl.constexpr, DIM: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Receive query, key and value of a head, keep the latter two, and publish what it gathers."""
    part, d = tl.arange(0, 8)[:, None], tl.arange(0, D)  # three parts are real; 8: see ALONE
    k, v, seen = block_of(keys, values, keys, 0, position, False, BLOCK, D)
    three = receive(qkv, part * DIM + head * D + d[None, :], tag, (part < 3) & (d < D)[None, :])
    q = tl.sum(tl.where(part == 0, three, 0.0), 0) * scale
    own_k = tl.sum(tl.where(part == 1, three, 0.0), 0).to(DTYPE)
    own_v = tl.sum(tl.where(part == 2, three, 0.0), 0).to(DTYPE)
    tl.store(keys + position * D + d, own_k)
    tl.store(values + position * D + d, own_v)
    found = look(
        q, own_k.to(tl.float32), own_v.to(tl.float32), k, v, seen, keys, values, keys, position,
        False, False, BLOCK, D,
    )  # fmt: skip
    publish(out + head * D + d, found, tag, d < D)


@triton.jit
def part(table, number, DTYPE: tl.constexpr):
    """Return the pointer at a place of a table."""
    return tl.multiple_of(tl.load(table + number), 16).to(tl.pointer_type(DTYPE))


@triton.jit
def row_step(
    ids, tokens, places, table, gain, shift, output, at, epoch, x, qkv, mixed, middle, hidden,
    logits, T, scale, eps,
    DEPTH: tl.constexpr, PARTS: tl.constexpr, DTYPE: tl.constexpr, BIAS: tl.constexpr,
    DIM: tl.constexpr, HIDDEN: tl.constexpr, VOCABULARY: tl.constexpr, H: tl.constexpr,
    WIDE: tl.constexpr, HIDDEN_WIDE: tl.constexpr, TILE_QKV: tl.constexpr, TILE_OUT: tl.constexpr,
    TILE_UP: tl.constexpr, TILE_DOWN: tl.constexpr, TILE_HEAD: tl.constexpr, BLOCK: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Write the logits of the token after ``ids`` and keep its keys and values."""
    D: tl.constexpr = DIM // H
    first = tl.program_id(0)
    position = tl.load(at).to(tl.int32)
    tag = tl.load(epoch).to(tl.int32) * (DEPTH + 1) + 1
    if first == 0:
        k = tl.arange(0, WIDE)
        vector = tl.load(tokens + tl.load(ids) * DIM + k, mask=k < DIM, other=0.0).to(tl.float32)
        vector += tl.load(places + position * DIM + k, mask=k < DIM, other=0.0).to(tl.float32)
        publish(x + k, vector, tag, k < DIM)
    for number in range(DEPTH):
        of = table + number * PARTS
        gain_1, shift_1 = part(of, 0, DTYPE), part(of, 1, DTYPE)
        w_qkv, b_qkv = part(of, 2, DTYPE), part(of, 3, DTYPE)
        w_out, b_out = part(of, 4, DTYPE), part(of, 5, DTYPE)
        gain_2, shift_2 = part(of, 6, DTYPE), part(of, 7, DTYPE)
        w_up, b_up = part(of, 8, DTYPE), part(of, 9, DTYPE)
        w_down, b_down = part(of, 10, DTYPE), part(of, 11, DTYPE)
        keys, values = part(of, 12, DTYPE), part(of, 13, DTYPE)
        layer(
            x, tag, gain_1, shift_1, w_qkv, b_qkv, x, qkv, tag, 3 * DIM, eps,
            "plain", True, BIAS, BIAS, TILE_QKV, DIM, WIDE, PROGRAMS,
        )  # fmt: skip
        for head in range(first, H, PROGRAMS):
            head_of(
                qkv, tag, mixed, keys + head * T * D, values + head * T * D, head, position, scale,
                DTYPE, DIM, D, BLOCK,
            )  # fmt: skip
        layer(
            mixed, tag, gain, shift, w_out, b_out, x, middle, tag, DIM, eps,
            "residual", False, False, BIAS, TILE_OUT, DIM, WIDE, PROGRAMS,
        )  # fmt: skip
        layer(
            middle, tag, gain_2, shift_2, w_up, b_up, x, hidden, tag, HIDDEN, eps,
            "gelu", True, BIAS, BIAS, TILE_UP, DIM, WIDE, PROGRAMS,
        )  # fmt: skip
        layer(
            hidden, tag, gain, shift, w_down, b_down, middle, x, tag + 1, DIM, eps,
            "residual", False, False, BIAS, TILE_DOWN, HIDDEN, HIDDEN_WIDE, PROGRAMS,
        )  # fmt: skip
        tag += 1
    layer(
        x, tag, gain, shift, output, output, x, logits, tag, VOCABULARY, eps, "logits", True, BIAS,
        False, TILE_HEAD, DIM, WIDE, PROGRAMS,
    )  # fmt: skip


@triton.jit
def look_back(
    qkv, keys, values, keep, at, out, T, scale,
    PADDED: tl.constexpr, BLOCK: tl.constexpr, H: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Keep keys and values of new tokens and let their queries look; a program is a head."""
    pair, d = tl.program_id(0), tl.arange(0, D)
    row, head = pair // H, pair % H
    position = tl.load(at).to(tl.int32)
    mine, real = qkv + row * 3 * H * D + head * D + d, keep + row * T
    q, own_k, own_v = tl.load(mine), tl.load(mine + H * D), tl.load(mine + 2 * H * D)
    keys += pair.to(tl.int64) * T * D
    values += pair.to(tl.int64) * T * D
    k, v, seen = block_of(keys, values, real, 0, position, PADDED, BLOCK, D)
    tl.store(keys + position * D + d, own_k)
    tl.store(values + position * D + d, own_v)
    found = look(
        q.to(tl.float32) * scale, own_k.to(tl.float32), own_v.to(tl.float32), k, v, seen,
        keys, values, real, position, PADDED, True, BLOCK, D,
    )  # fmt: skip
    tl.store(out + pair * D + d, found)


@triton.jit
def embed_norm(
    ids, tokens, places, at, skipped, gain, shift, x, out, eps,
    K: tl.constexpr, WIDE: tl.constexpr, SHIFTED: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Write the vector of a row's token at its place, and the norm of it."""
    row, k = tl.program_id(0), tl.arange(0, WIDE)
    here, real = row * K + k, k < K
    place = tl.load(at)
    if PADDED:
        place -= tl.load(skipped + row)
    g, s = optional(gain + k, real, True), optional(shift + k, real, SHIFTED)
    h = optional(tokens + tl.load(ids + row) * K + k, real, True)
    h += optional(places + place * K + k, real, True)
    tl.store(x + here, h, mask=real)
    tl.store(out + here, norm(h, g, s, real, eps, K), mask=real)


@triton.jit
def add_norm(
    x, more, gain, shift, out, eps, K: tl.constexpr, WIDE: tl.constexpr, SHIFTED: tl.constexpr
):
    """Add more to x and write its norm; a program is a row."""
    k = tl.arange(0, WIDE)
    here, real = tl.program_id(0) * K + k, k < K
    g, s = optional(gain + k, real, True), optional(shift + k, real, SHIFTED)
    h = optional(x + here, real, True) + optional(more + here, real, True)
    tl.store(x + here, h, mask=real)
    tl.store(out + here, norm(h, g, s, real, eps, K), mask=real)


@triton.jit
def best_of_parts(
    logits, scores, tokens, rows, V, row_step, token_step, SPAN,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the greatest score of each row in a part of the vocabulary, and its token."""
    b, part = tl.arange(0, ROWS), tl.program_id(0)
    end = tl.minimum((part + 1) * SPAN, V)
    best = tl.full([ROWS], float("-inf"), tl.float32)
    chosen = tl.full([ROWS], 0, tl.int32)
    for start in range(part * SPAN, end, BLOCK):
        v = start + tl.arange(0, BLOCK)
        at = logits + b[:, None] * row_step + v[None, :] * token_step
        real = (b < rows)[:, None] & (v < end)[None, :]
        z = tl.load(at, mask=real, other=float("-inf")).to(tl.float32)
        z = tl.where(z == z, z, float("inf"))  # NaN must not be passed over
        top, place = tl.max(z, 1, return_indices=True)
        chosen = tl.where(top > best, start + place, chosen)
        best = tl.maximum(best, top)
    tl.store(scores + part * rows + b, best, mask=b < rows)
    tl.store(tokens + part * rows + b, chosen, mask=b < rows)


@triton.jit
def write_best(
    scores, tokens, sound, written, cursor, last, rows, PARTS: tl.constexpr, ROWS: tl.constexpr
):
    """Write the token of the best part of each row, and note whether its score is a number."""
    b, part = tl.arange(0, ROWS), tl.arange(0, PARTS)
    real = (b < rows)[None, :]
    at = part[:, None] * rows + b[None, :]
    best, place = tl.max(
        tl.load(scores + at, mask=real, other=float("-inf")), 0, return_indices=True
    )
    chosen = tl.load(tokens + place * rows + b, mask=b < rows, other=0).to(tl.int64)
    count = tl.load(cursor)
    so_far = tl.load(sound + b, mask=b < rows, other=0.0)
    tl.store(sound + b, so_far + 0.0 * best, mask=b < rows)
    tl.store(written + count * rows + b, chosen, mask=b < rows)
    tl.store(last + b, chosen, mask=b < rows)
    tl.store(cursor, count + 1)
