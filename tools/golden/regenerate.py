"""Regenerates the reference values beside a checkpoint, in f32 over the stored weights, with Hugging Face transformers.

    python -m venv .venv && .venv/bin/pip install -r tools/golden/requirements.txt
    .venv/bin/python tools/golden/regenerate.py --check models/tiny-lfm3     # compares, writes nothing
    .venv/bin/python tools/golden/regenerate.py models/tiny-lfm3             # writes

golden.safetensors keeps its `tokens` and `positions`, greedy.json its `prompt_ids`; a checkpoint that has no
golden.safetensors yet gets random tokens. greedy.json is regenerated only where it exists.
"""

import argparse
import json
import pathlib
import sys

import numpy
import torch
import transformers
from safetensors.numpy import load_file, save_file

NEW_TOKENS = 48
GREEDY_LIMIT = 256
TOLERANCE = 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="+", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="compare with what is stored instead of writing it")
    arguments = parser.parse_args()
    agree = [regenerate(checkpoint, arguments.check) for checkpoint in arguments.checkpoints]
    sys.exit(not all(agree))


def regenerate(checkpoint, check):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        checkpoint, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    agree = regenerate_golden(model, checkpoint / "golden.safetensors", check)
    greedy = checkpoint / "greedy.json"
    if greedy.exists():
        agree &= regenerate_greedy(model, greedy, check)
    return agree


@torch.no_grad()
def regenerate_golden(model, path, check):
    stored = load_file(path) if path.exists() else {"tokens": random_tokens(model.config.vocab_size)}
    tokens = stored["tokens"].astype(numpy.int32)
    output = model(torch.from_numpy(tokens).long()[None], output_hidden_states=True, use_cache=False)
    states = {f"hidden.{stage}": state[0] for stage, state in enumerate(output.hidden_states)}
    states["logits"] = output.logits[0]
    golden = {"tokens": tokens}
    rows = slice(None)
    if "positions" in stored:
        golden["positions"] = rows = stored["positions"].astype(numpy.int32)
    for name, state in states.items():
        golden[name] = numpy.ascontiguousarray(state.numpy()[rows])
    if not check:
        save_file(golden, path)
        print(f"{path}: written")
        return True
    return report(path, {name: difference(golden[name], stored.get(name)) for name in states})


def random_tokens(vocab_size):
    return numpy.random.default_rng(0).integers(0, vocab_size, NEW_TOKENS, dtype=numpy.int32)


def difference(found, stored):
    """Largest difference, relative to the largest magnitude where that is above 1."""
    if stored is None or stored.shape != found.shape:
        return float("inf")
    return float(numpy.abs(found - stored).max() / max(1.0, numpy.abs(stored).max()))


def report(path, differences):
    worst = max(differences, key=differences.get)
    agree = differences[worst] <= TOLERANCE
    verdict = "agrees" if agree else "DIFFERS"
    print(f"{path}: {verdict}, at most {differences[worst]:.2g} in `{worst}`")
    return agree


def regenerate_greedy(model, path, check):
    stored = json.loads(path.read_text())
    cases = [{**case, "continuation_ids": continuation(model, case["prompt_ids"])} for case in stored]
    if check:
        same = sum(case == old for case, old in zip(cases, stored))
        print(f"{path}: {same} of {len(stored)} continuations are the same")
        return same == len(stored)
    path.write_text(json.dumps(cases))
    print(f"{path}: written")
    return True


@torch.no_grad()
def continuation(model, prompt_ids):
    prompt = torch.tensor([prompt_ids])
    output = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=GREEDY_LIMIT
    )
    return output[0, len(prompt_ids) :].tolist()


if __name__ == "__main__":
    main()
