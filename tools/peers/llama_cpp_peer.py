"""llama.cpp on an LFM2 checkpoint, for `xtask bench-peers`. Needs gguf, safetensors and llama-cpp-python.

usage: llama_cpp_peer.py write CHECKPOINT OUT.gguf TYPE               TYPE is f16, q8_0, q6_k or q4_0
       llama_cpp_peer.py measure GGUF THREADS PROMPT GENERATED CHECKED  a JSON object on stdout

`write` makes all types of the file whose name says f16, which it writes first and leaves. Weights are random, so there is no
vocabulary.
"""

import ctypes
import json
import pathlib
import sys
import time

TENSORS = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.embedding_norm.weight": "token_embd_norm.weight",
    "lm_head.weight": "output.weight",
}
IN_LAYERS = {
    "operator_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.out_proj": "attn_output",
    "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm",
    "conv.conv": "shortconv.conv",
    "conv.in_proj": "shortconv.in_proj",
    "conv.out_proj": "shortconv.out_proj",
    "feed_forward.w1": "ffn_gate",
    "feed_forward.w2": "ffn_down",
    "feed_forward.w3": "ffn_up",
}


def gguf_name(name):
    if name in TENSORS:
        return TENSORS[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{IN_LAYERS[rest.removesuffix('.weight')]}.weight"


def tensors(checkpoint):
    """Name and values in f32 of each tensor; bf16 is read by its bits, which numpy has no type for."""
    import numpy as np

    kinds = {"BF16": np.uint16, "F16": np.float16, "F32": np.float32}
    for path in sorted(checkpoint.glob("*.safetensors")):
        data = np.memmap(path, np.uint8, "r")
        size = int(data[:8].view(np.uint64)[0])
        for name, entry in json.loads(bytes(data[8 : 8 + size])).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            values = data[begin:end].view(kinds[entry["dtype"]])
            if entry["dtype"] == "BF16":
                values = (values.astype(np.uint32) << 16).view(np.float32)
            yield name, values.astype(np.float32).reshape(entry["shape"])


def write_f16(checkpoint, out):
    import gguf
    import numpy as np

    config = json.loads((checkpoint / "config.json").read_text())
    layers = config["layer_types"]
    writer = gguf.GGUFWriter(str(out), "lfm2")
    writer.add_block_count(len(layers))
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv([config["num_key_value_heads"] * (layer == "full_attention") for layer in layers])
    writer.add_layer_norm_rms_eps(config["norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_shortconv_l_cache(config["conv_L_cache"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for name, values in tensors(checkpoint):
        name = gguf_name(name)
        is_matrix = values.ndim == 2
        values = values.squeeze()
        writer.add_tensor(name, values.astype(np.float16) if is_matrix else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write(checkpoint, out, kind):
    import llama_cpp

    f16 = out.with_name(out.name.replace(kind, "f16"))
    if not f16.exists():
        write_f16(checkpoint, f16)
    if kind == "f16":
        return
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = {"q8_0": 7, "q6_k": 18, "q4_0": 2}[kind]
    params.pure = True
    params.nthread = 2
    if llama_cpp.llama_model_quantize(str(f16).encode(), str(out).encode(), ctypes.byref(params)) != 0:
        sys.exit(f"llama.cpp cannot make {kind} of {f16}")


class Model:
    def __init__(self, path, threads, tokens):
        import llama_cpp

        self.library = llama_cpp
        silent = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(silent, None)
        self.silent = silent
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            sys.exit(f"llama.cpp cannot load {path}")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = tokens
        params.n_threads = params.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.batch = llama_cpp.llama_batch_init(tokens, 0, 1)

    def clear(self):
        self.library.llama_memory_clear(self.library.llama_get_memory(self.context), True)

    def run(self, first, count, all_logits=False):
        """Seconds that a batch of `count` tokens from position `first` on takes."""
        batch = self.batch
        batch.n_tokens = count
        for i in range(count):
            batch.token[i] = ((first + i) * 7919 + 13) % 60000
            batch.pos[i] = first + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = all_logits or i == count - 1
        start = time.perf_counter()
        if self.library.llama_decode(self.context, batch) != 0:
            sys.exit("llama.cpp cannot run a batch")
        self.library.llama_get_logits(self.context)[0]
        return time.perf_counter() - start


def measure(path, threads, prompt, generated, checked):
    model = Model(path, threads, prompt + generated + checked)
    model.run(0, 16)
    model.run(16, 1)
    model.clear()
    prefill = model.run(0, prompt)
    decode = sum(model.run(prompt + i, 1) for i in range(generated)) / generated
    verify = model.run(prompt + generated, checked, all_logits=True)
    print(json.dumps({"prefill": prompt / prefill, "decode": 1 / decode, "verify": verify}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", checkpoint, out, kind]:
            write(pathlib.Path(checkpoint), pathlib.Path(out), kind)
        case ["measure", path, *numbers] if len(numbers) == 4:
            measure(path, *map(int, numbers))
        case _:
            sys.exit(__doc__)
