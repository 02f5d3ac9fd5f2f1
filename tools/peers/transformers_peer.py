"""transformers on a checkpoint, in bf16, for `xtask bench-peers`. Needs torch and transformers.

usage: transformers_peer.py CHECKPOINT THREADS PROMPT GENERATED CHECKED  a JSON object on stdout
"""

import json
import sys
import time

import torch
import transformers


class Model:
    def __init__(self, checkpoint, threads):
        torch.set_num_threads(threads)
        transformers.logging.set_verbosity_error()
        load = transformers.AutoModelForCausalLM.from_pretrained
        self.model = load(checkpoint, dtype=torch.bfloat16).eval()
        self.cache = None
        self.held = 0

    def clear(self):
        self.cache = None
        self.held = 0

    @torch.inference_mode()
    def run(self, count, logits):
        """Seconds that `count` tokens more take, with the logits of the last `logits` of them."""
        tokens = [[((self.held + i) * 7919 + 13) % 60000 for i in range(count)]]
        start = time.perf_counter()
        output = self.model(
            input_ids=torch.tensor(tokens), past_key_values=self.cache, use_cache=True, logits_to_keep=logits
        )
        seconds = time.perf_counter() - start
        self.cache = output.past_key_values
        self.held += count
        return seconds


def measure(checkpoint, threads, prompt, generated, checked):
    model = Model(checkpoint, threads)
    model.run(16, 1)
    model.run(1, 1)
    model.clear()
    prefill = model.run(prompt, 1)
    decode = sum(model.run(1, 1) for _ in range(generated)) / generated
    verify = model.run(checked, checked)
    print(json.dumps({"prefill": prompt / prefill, "decode": 1 / decode, "verify": verify}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [checkpoint, *numbers] if len(numbers) == 4:
            measure(checkpoint, *map(int, numbers))
        case _:
            sys.exit(__doc__)
