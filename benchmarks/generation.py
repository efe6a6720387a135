"""Tokens a second of `generate` against transformers' own, GPT-2 124M, greedy, bf16 on CUDA.

    python -m benchmarks.generation [--small] [--tokens 256] [--batches 1,64] [--skip-peer]

Both write the same number of tokens after the same prompts with the same random weights, in one
process; the better of `--repeats` runs counts, after one run that is not timed.
"""

import argparse
import tempfile
import time

import torch

from castalia.nets.language import GPT, generate, save_pretrained

PROMPT = 16


def clock(write, repeats):
    best = float("inf")
    for timed in [False] + [True] * repeats:
        start = time.perf_counter()
        found = write()
        if found.is_cuda:
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start) if timed else best
    return best, found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a tiny network, to try the script")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skip-peer", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(0)
    net = GPT(97, context=512, dim=32, depth=2, heads=2) if args.small else GPT(50257)
    net = net.eval()
    model = None
    if not args.skip_peer:
        from transformers import GPT2LMHeadModel

        with tempfile.TemporaryDirectory() as folder:
            save_pretrained(net, folder)
            model = GPT2LMHeadModel.from_pretrained(folder).to(device, dtype).eval()
    net = net.to(device, dtype)
    for batch in map(int, args.batches.split(",")):
        compare(net, model, batch, args)


def compare(net, model, batch, args):
    ids = torch.randint(net.vocabulary, (batch, PROMPT), device=next(net.parameters()).device)
    seconds, ours = clock(lambda: generate(net, ids, tokens=args.tokens), args.repeats)
    rate = batch * args.tokens / seconds
    line = f"batch {batch}: castalia {rate:,.0f} tokens/s"
    if model is not None:
        settings = {"max_new_tokens": args.tokens, "min_new_tokens": args.tokens}
        settings |= {"attention_mask": torch.ones_like(ids), "do_sample": False, "pad_token_id": 0}
        seconds, theirs = clock(lambda: model.generate(ids, **settings), args.repeats)
        other = batch * args.tokens / seconds
        same = (theirs[:, PROMPT:] == ours).float().mean().item()
        line += f", transformers {other:,.0f}, ratio {rate / other:.1f}, same tokens {same:.3f}"
    print(line, flush=True)


if __name__ == "__main__":
    main()
