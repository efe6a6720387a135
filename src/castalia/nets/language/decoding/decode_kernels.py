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
def publish(at, y, tag, mask, DTYPE: tl.constexpr):
    """Write numbers, each in one word with its tag; numbers of half precision in half a word."""
    if DTYPE == tl.float32:  # noqa: SIM300
        bits = y.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
        word = (tag.to(tl.int64) << 32) | bits
    else:
        bits = y.to(DTYPE).to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
        word = (tag << 16) | bits
    tl.store(at, word, mask=mask)


@triton.jit
def tag_of(word, DTYPE: tl.constexpr):
    """Return the tags of words."""
    if DTYPE == tl.float32:  # noqa: SIM300
        tag = (word >> 32).to(tl.int32)
    else:
        tag = (word >> 16) & 0xFFFF
    return tag


@triton.jit
def number_of(word, DTYPE: tl.constexpr):
    """Return the numbers of words."""
    if DTYPE == tl.float32:  # noqa: SIM300
        number = word.to(tl.int32).to(tl.float32, bitcast=True)
    else:
        number = word.to(tl.int16).to(DTYPE, bitcast=True).to(tl.float32)
    return number


@triton.jit
def least_and_sums(low_1, total_1, square_1, low_2, total_2, square_2):
    """Combine two parts of a vector."""
    return tl.minimum(low_1, low_2), total_1 + total_2, square_1 + square_2


@triton.jit
def look_at(words, k, tag, real, DTYPE: tl.constexpr):
    """Return the numbers k as they are now, their smallest tag, their sum and sum of squares."""
    word = tl.load(words + k, mask=real, other=0, volatile=True)
    y = number_of(word, DTYPE)
    marks = tl.where(real, tag_of(word, DTYPE), tag)
    low, total, square = tl.reduce((marks, y, y * y), 0, least_and_sums)
    return y, low, total, square


@triton.jit
def receive_sums(words, k, tag, real, DTYPE: tl.constexpr):
    """Return the published numbers k once all have their tag, their sum and sum of squares."""
    y, low, total, square = look_at(words, k, tag, real, DTYPE)
    while low < tag:
        y, low, total, square = look_at(words, k, tag, real, DTYPE)
    return y, total, square


@triton.jit
def receive(words, k, tag, real, DTYPE: tl.constexpr):
    """Return the published numbers k as soon as all of them have their tag."""
    word = tl.load(words + k, mask=real, other=0, volatile=True)
    while tl.min(tl.where(real, tag_of(word, DTYPE), tag)) < tag:
        word = tl.load(words + k, mask=real, other=0, volatile=True)
    if k.numel < ALONE:  # several threads hold each number, and only one of them was checked
        word = tl.load(words + k, mask=real, other=0, volatile=True)
    return number_of(word, DTYPE)


@triton.jit
def fetch(start, size, LINES: tl.constexpr):
    """Have numbers from ``start`` on brought near; nothing waits for them."""
    line = tl.arange(0, LINES) * (128 // (start.dtype.element_ty.primitive_bitwidth // 8))
    at = (start + tl.minimum(line, size - 1)).to(tl.int64)
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [at], tl.int32, False, 1
    )


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
    weight, bias, residual, tag, n, N: tl.constexpr,
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
        added += receive(residual, n, tag, n < N, tl.float32)
    return w, added


@triton.jit
def finish(
    h, w, added, out, out_tag, n, N: tl.constexpr, KIND: tl.constexpr, TO: tl.constexpr
):  # fmt: skip
    """Publish the outputs n."""
    y = tl.sum(w.to(tl.float32) * h[None, :], 1) + added
    if KIND == "gelu":  # y (1 + tanh z) / 2 = y sigmoid(2 z), z = sqrt(2 / pi) (y + …)
        y = y * tl.sigmoid(1.5957691216057308 * (y + 0.044715 * y * y * y))
    if KIND == "logits":
        tl.store(out + n, y, mask=n < N)
    else:
        publish(out + n, y, out_tag, n < N, TO)


@triton.jit
def layer(
    inputs, tag, gain, shift, weight, bias, residual, out, out_tag, next_weight, next_bias, eps,
    N: tl.constexpr, KIND: tl.constexpr, NORMED: tl.constexpr, SHIFTED: tl.constexpr,
    BIAS: tl.constexpr, FROM: tl.constexpr, TO: tl.constexpr, TILE: tl.constexpr,
    K: tl.constexpr, WIDE: tl.constexpr, AHEAD: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Receive a vector and publish products of it, or of its norm, with rows of a weight.

    The rows that the program needs in the next block are asked for on the way.
    """
    ADDED: tl.constexpr = KIND == "residual"
    first, k = tl.program_id(0), tl.arange(0, WIDE)
    n = first * TILE + tl.arange(0, TILE)
    if first * TILE < N:
        w, added = columns_of(weight, bias, residual, tag, n, N, K, WIDE, BIAS, ADDED)
        g, s = optional(gain + k, k < K, NORMED), optional(shift + k, k < K, SHIFTED)
        if AHEAD:
            rows = tl.minimum(TILE, N - first * TILE)
            fetch(next_weight + first * TILE * K, rows * K, TILE * WIDE // 64)
            if BIAS:
                fetch(next_bias + first * TILE, rows, 2)
        if NORMED:
            h, total, square = receive_sums(inputs, k, tag, k < K, FROM)
            mean = total / K
            scale = tl.rsqrt(tl.maximum(square / K - mean * mean, 0.0) + eps)
            h = tl.where(k < K, (h - mean) * scale * g + s, 0.0)
        else:
            h = receive(inputs, k, tag, k < K, FROM)
        h = h.to(w.dtype).to(tl.float32)
        if N <= TILE * PROGRAMS:  # a program has one tile at most
            finish(h, w, added, out, out_tag, n, N, KIND, TO)
        else:
            for _tile in range(first, tl.cdiv(N, TILE), PROGRAMS):
                then = n + PROGRAMS * TILE
                more, later = columns_of(weight, bias, residual, tag, then, N, K, WIDE, BIAS, ADDED)
                finish(h, w, added, out, out_tag, n, N, KIND, TO)
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
    at, real = part * DIM + head * D + d[None, :], (part < 3) & (d < D)[None, :]
    three = receive(qkv, at, tag, real, DTYPE)
    q = tl.sum(tl.where(part == 0, three, 0.0), 0) * scale
    own_k = tl.sum(tl.where(part == 1, three, 0.0), 0).to(DTYPE)
    own_v = tl.sum(tl.where(part == 2, three, 0.0), 0).to(DTYPE)
    tl.store(keys + position * D + d, own_k)
    tl.store(values + position * D + d, own_v)
    found = look(
        q, own_k.to(tl.float32), own_v.to(tl.float32), k, v, seen, keys, values, keys, position,
        False, False, BLOCK, D,
    )  # fmt: skip
    publish(out + head * D + d, found, tag, d < D, DTYPE)


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
    AHEAD: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Write the logits of the token after ``ids`` and keep its keys and values."""
    D: tl.constexpr = DIM // H
    SUM: tl.constexpr = tl.float32  # what is added up over blocks is published in full
    first = tl.program_id(0)
    position = tl.load(at).to(tl.int32)
    tag = tl.load(epoch).to(tl.int32) * (DEPTH + 1) + 1
    if first == 0:
        k = tl.arange(0, WIDE)
        vector = tl.load(tokens + tl.load(ids) * DIM + k, mask=k < DIM, other=0.0).to(tl.float32)
        vector += tl.load(places + position * DIM + k, mask=k < DIM, other=0.0).to(tl.float32)
        publish(x + k, vector, tag, k < DIM, SUM)
    for number in range(DEPTH):
        of = table + number * PARTS
        then = table + tl.minimum(number + 1, DEPTH - 1) * PARTS
        gain_1, shift_1 = part(of, 0, DTYPE), part(of, 1, DTYPE)
        gain_2, shift_2 = part(of, 6, DTYPE), part(of, 7, DTYPE)
        keys, values = part(of, 12, DTYPE), part(of, 13, DTYPE)
        if AHEAD:
            start = tl.minimum(first * 64, DIM - 1)
            for vector_of in tl.static_range(4):
                near = part(then, 6 * (vector_of // 2) + vector_of % 2, DTYPE)
                if BIAS or vector_of % 2 == 0:
                    fetch(near + start, 1, 1)
        layer(
            x, tag, gain_1, shift_1, part(of, 2, DTYPE), part(of, 3, DTYPE), x, qkv, tag,
            part(then, 2, DTYPE), part(then, 3, DTYPE), eps, 3 * DIM, "plain", True, BIAS, BIAS,
            SUM, DTYPE, TILE_QKV, DIM, WIDE, AHEAD, PROGRAMS,
        )  # fmt: skip
        for head in range(PROGRAMS - 1 - first, H, PROGRAMS):  # the last had the least to do
            head_of(
                qkv, tag, mixed, keys + head * T * D, values + head * T * D, head, position, scale,
                DTYPE, DIM, D, BLOCK,
            )  # fmt: skip
        layer(
            mixed, tag, gain, shift, part(of, 4, DTYPE), part(of, 5, DTYPE), x, middle, tag,
            part(then, 4, DTYPE), part(then, 5, DTYPE), eps, DIM, "residual", False, False, BIAS,
            DTYPE, SUM, TILE_OUT, DIM, WIDE, AHEAD, PROGRAMS,
        )  # fmt: skip
        layer(
            middle, tag, gain_2, shift_2, part(of, 8, DTYPE), part(of, 9, DTYPE), x, hidden, tag,
            part(then, 8, DTYPE), part(then, 9, DTYPE), eps, HIDDEN, "gelu", True, BIAS, BIAS,
            SUM, DTYPE, TILE_UP, DIM, WIDE, AHEAD, PROGRAMS,
        )  # fmt: skip
        layer(
            hidden, tag, gain, shift, part(of, 10, DTYPE), part(of, 11, DTYPE), middle, x, tag + 1,
            part(then, 10, DTYPE), part(then, 11, DTYPE), eps, DIM, "residual", False, False, BIAS,
            DTYPE, SUM, TILE_DOWN, HIDDEN, HIDDEN_WIDE, AHEAD, PROGRAMS,
        )  # fmt: skip
        tag += 1
    layer(
        x, tag, gain, shift, output, output, x, logits, tag, output, output, eps, VOCABULARY,
        "logits", True, BIAS, False, SUM, SUM, TILE_HEAD, DIM, WIDE, False, PROGRAMS,
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
