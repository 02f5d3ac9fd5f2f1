"""Writes down what transformers makes of some tokens, in f32.

Without arguments: ends with 3, and the names of what is not installed on stdout, where something is missing.
With the argument `record`: reads {"model": directory, "tokens": [...], "out": file} from stdin and makes the file.
"""

import importlib.util
import json
import sys

if sys.argv[1:] != ["record"]:
    names = ("torch", "transformers", "safetensors")
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    print(" ".join(missing))
    sys.exit(3 if missing else 0)

import safetensors.torch
import torch
import transformers

request = json.load(sys.stdin)
transformers.logging.set_verbosity_error()
model = transformers.AutoModelForCausalLM.from_pretrained(
    request["model"], dtype=torch.float32, attn_implementation="eager", local_files_only=True
).eval()
tokens = torch.tensor(request["tokens"])
with torch.no_grad():
    output = model(tokens[None], output_hidden_states=True, use_cache=False)
record = {f"hidden.{i}": state[0].contiguous() for i, state in enumerate(output.hidden_states)}
record |= {"tokens": tokens.to(torch.int32), "logits": output.logits[0].contiguous()}
safetensors.torch.save_file(record, request["out"])
