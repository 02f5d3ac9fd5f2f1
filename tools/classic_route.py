"""The usual way from a checkpoint to Core ML: torch.jit.trace, then coremltools. Says what each stage takes.

Needs coremltools==9.0, torch==2.7.0 (the last it was tested with), transformers==5.24.0 and numpy==2.3.5
(with 2.4.6 its torch front end ends in a TypeError); for palettes also scikit-learn==1.5.2. On stdout, a JSON object: for
each stage the seconds, the processor seconds, and the most memory so far that was resident at once, in GB.

One program is made: transformers' own model on one token. Keys, values and convolution windows are inputs; what
the token adds to them are outputs. Masks come from the caller, as the position does.
"""

import argparse
import json
import resource
import time

import coremltools as ct
import numpy as np
import torch
import transformers
from coremltools.optimize.coreml import OpPalettizerConfig, OptimizationConfig, palettize_weights


class Caches:
    """As much of transformers' Cache as the layers of LFM2 and LFM3 ask for: what is past, then what is new."""

    def __init__(self, past):
        self.past = past
        self.new = {}

    def update(self, keys, values, layer, **_):
        self.new[layer] = [keys, values]
        past_keys, past_values = self.past[layer]
        return torch.cat([past_keys, keys], 2), torch.cat([past_values, values], 2)

    def is_recording_past(self, _layer):
        return False  # the other answer leads to a padding that tracing turns into a tensor

    def get_conv_state(self, layer, **_):
        window = self.past[layer][0].clone()  # the layer writes the new window over it
        self.new[layer] = [window]
        return window[:, :, :]  # coremltools takes such writes to slices only


class DecodeStep(torch.nn.Module):
    """(token, position, one mask for each kind of attention, caches...) -> (logits, what is new of each cache...)"""

    def __init__(self, model, ctx):
        super().__init__()
        self.model = model
        config = model.config
        self.kinds = config.layer_types
        rows = {"full_attention": ctx, "sliding_attention": getattr(config, "sliding_window", None)}
        self.rows = {kind: rows[kind] for kind in rows if kind in self.kinds}
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.shapes = [
            [(1, config.hidden_size, config.conv_L_cache - 1)]
            if kind == "conv"
            else [(1, config.num_key_value_heads, rows[kind], head_dim)] * 2
            for kind in self.kinds
        ]

    def examples(self):
        """An example of each input by its name, in order."""
        examples = {"token": torch.zeros(1, 1, dtype=torch.int32), "position": torch.zeros(1, 1, dtype=torch.int32)}
        examples |= {f"mask_{kind}": torch.zeros(1, 1, 1, rows + 1) for kind, rows in self.rows.items()}
        for layer, shapes in enumerate(self.shapes):
            examples |= {f"past_{layer}_{i}": torch.zeros(shape) for i, shape in enumerate(shapes)}
        return {
            name: value.to(self.model.dtype) if value.is_floating_point() else value
            for name, value in examples.items()
        }

    def outputs(self):
        return ["logits"] + [f"new_{layer}_{i}" for layer, shapes in enumerate(self.shapes) for i in range(len(shapes))]

    def forward(self, token, position, *tensors):
        tensors = iter(tensors)
        masks = {"conv": None} | {kind: next(tensors) for kind in self.rows}
        caches = Caches([[next(tensors) for _ in shapes] for shapes in self.shapes])
        logits = self.model(input_ids=token, position_ids=position, attention_mask=masks, cache=caches).logits
        return logits, *(tensor for layer in range(len(self.kinds)) for tensor in caches.new[layer])


class Stages:
    """What each stage took since the one before."""

    def __init__(self):
        self.report = {}
        self.start = time.perf_counter(), time.process_time()

    def end(self, name):
        now = time.perf_counter(), time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9  # Linux counts in KB
        seconds, processor = (round(b - a, 2) for a, b in zip(self.start, now))
        self.report[name] = {"seconds": seconds, "processor": processor, "peak_gb": round(peak, 2)}
        self.start = now


def palettized(program, bits):
    """As `lone convert --precision lutN --group 16`: a table for every 16 rows of a matrix."""
    config = OpPalettizerConfig(mode="kmeans", nbits=bits, granularity="per_grouped_channel", group_size=16)
    return palettize_weights(program, OptimizationConfig(global_config=config))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", metavar="CHECKPOINT")
    parser.add_argument("out", metavar="OUT.mlpackage")
    parser.add_argument("--ctx", metavar="TOKENS", type=int, default=2048)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16"])
    parser.add_argument("--palettes", metavar="BITS", type=int)
    return parser.parse_args()


def main():
    args = arguments()
    stages = Stages()
    load = transformers.AutoModelForCausalLM.from_pretrained
    model = load(args.checkpoint, dtype=args.dtype, attn_implementation="eager").eval()
    stages.end("load")

    step = DecodeStep(model, args.ctx)
    examples = step.examples()
    with torch.inference_mode():
        traced = torch.jit.trace(step, tuple(examples.values()), check_trace=False)
    stages.end("trace")

    dtypes = {name: np.float16 if value.is_floating_point() else np.int32 for name, value in examples.items()}
    program = ct.convert(
        traced,
        inputs=[ct.TensorType(name, value.shape, dtype=dtypes[name]) for name, value in examples.items()],
        outputs=[ct.TensorType(name, dtype=np.float16) for name in step.outputs()],
        minimum_deployment_target=ct.target.iOS18,
        compute_precision=ct.precision.FLOAT16,
        skip_model_load=True,
    )
    stages.end("convert")

    if args.palettes:
        program = palettized(program, args.palettes)
        stages.end("palettes")

    program.save(args.out)
    stages.end("save")
    print(json.dumps(stages.report))


if __name__ == "__main__":
    main()
