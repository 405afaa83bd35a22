"""generate_oracle.py PROGRAM: what Sluice's language models say next is what Hugging Face's transformers say.

Tiny models with random weights: the likeliest 64 tokens behind prompts of different lengths, with and without an end
token, on LibTorch's CPU and on the xla device; the likelihoods of passages; and which tokens may be drawn, beside the
logits processors of transformers.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print(f"skipped: {error}; scripts/setup installs transformers for the tests")
    sys.exit(77)

TOKENS = 64
POSITIONS = 128
LLAMA = {"vocab_size": 101, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48,
         "max_position_embeddings": POSITIONS, "initializer_range": 0.2}
GPT2 = {"vocab_size": 101, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": POSITIONS, "initializer_range": 0.2}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16, "rope_theta": 10000.0}
CASES = {
    "gpt2": GPT2,
    "gpt2_scales": GPT2 | {"scale_attn_by_inverse_layer_idx": True, "tie_word_embeddings": False, "n_inner": 40},
    "llama": LLAMA,
    "llama_groups": LLAMA | {"num_key_value_heads": 2, "rope_parameters": LLAMA3},
    "llama_one_group": LLAMA | {"num_key_value_heads": 1, "head_dim": 12, "tie_word_embeddings": True, "attention_bias": True},
    "llama_yarn": LLAMA | {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 100.0,
                                               "original_max_position_embeddings": 32}},
    # Half of the steps are within the first limit, half beyond it.
    "llama_longrope": LLAMA | {"rope_parameters": {"rope_type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3],
                                                   "long_factor": [1.5, 3.0, 6.0, 12.0], "rope_theta": 100.0,
                                                   "original_max_position_embeddings": 33}},
    "llama_linear": LLAMA | {"rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 1000.0}},
}
SAMPLING = {
    "plain": {"temperature": 0.7},
    "top_k": {"top_k": 10},
    "top_p": {"top_p": 0.8},
    "both": {"temperature": 1.5, "top_k": 40, "top_p": 0.9},
    "small_p": {"top_p": 1e-6},
    "penalty": {"repetition_penalty": 1.3, "temperature": 0.9, "top_p": 0.95},
}


def make(name, settings):
    """A model whose biases and norms are random too."""
    kind = name.split("_")[0]
    config = {"llama": transformers.LlamaConfig, "gpt2": transformers.GPT2Config}[kind](**settings)
    model = {"llama": transformers.LlamaForCausalLM, "gpt2": transformers.GPT2LMHeadModel}[kind](config).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.normal_(1.0 if key.endswith("weight") else 0.0, 0.2)
        model.tie_weights()
    return model


def said(model, prompts, end):
    """What transformers say behind the prompts, filled up in front."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    result = model.generate(input_ids=ids, attention_mask=mask, do_sample=False, max_new_tokens=TOKENS,
                            pad_token_id=0, eos_token_id=end, use_cache=True)
    rows = result[:, longest:].tolist()
    return [row[:row.index(end) + 1] if end is not None and end in row else row for row in rows]


def likelihood(model, passage):
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([passage])).logits[0].double().log_softmax(-1)
    return sum(logits[place, token].item() for place, token in enumerate(passage[1:]))


def limited(logits, seen, options):
    """The logits behind transformers' processors, in the order of its generate()."""
    processors = []
    if "repetition_penalty" in options:
        processors.append(transformers.RepetitionPenaltyLogitsProcessor(options["repetition_penalty"]))
    if "temperature" in options:
        processors.append(transformers.TemperatureLogitsWarper(options["temperature"]))
    if "top_k" in options:
        processors.append(transformers.TopKLogitsWarper(options["top_k"]))
    if "top_p" in options:
        processors.append(transformers.TopPLogitsWarper(options["top_p"]))
    rows = []
    for row in range(logits.shape[0]):
        ids = seen[row].nonzero().T
        scores = logits[row:row + 1].clone()
        for processor in processors:
            scores = processor(ids, scores)
        rows.append(scores)
    return torch.cat(rows)


def check(name, device, folder, model, request, files):
    answer = json.loads((folder / f"answer-{device}.json").read_text())
    failures = []
    for key, end in (("said", None), ("until_end", request["end"][0])):
        wanted = said(model, request["prompts"], end)
        if answer[key] != wanted:
            failures.append(f"{name} on {device}: {key}: {answer[key]} instead of {wanted}")
    for passage, found in zip(request["passages"], answer["likelihoods"]):
        wanted = likelihood(model, passage)
        if not abs(found - wanted) <= 1e-5 * abs(wanted):
            failures.append(f"{name} on {device}: a passage of {len(passage)} tokens has {found} nats instead of {wanted}")
    # None where another model of this shape has had them.
    if device == "xla" and (answer["programs"] not in (0, 2) or answer["fallbacks"] != 0):
        failures.append(f"{name}: {answer['programs']} programs instead of 2, {answer['fallbacks']} fallbacks")
    output = load_file(folder / f"limited-{device}.safetensors")
    for key, options in SAMPLING.items():
        wanted = limited(files["logits"], files["seen"], options)
        if not torch.equal(output[key].isfinite(), wanted.isfinite()):
            failures.append(f"{name} on {device}: {key}: other tokens may be drawn")
        elif not torch.allclose(output[key].nan_to_num(), wanted.nan_to_num(), rtol=1e-5, atol=1e-6):
            failures.append(f"{name} on {device}: {key}: other logits")
    return failures


def main(program):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    failures = []
    with tempfile.TemporaryDirectory() as parent:
        made = {}
        for seed, (name, settings) in enumerate(CASES.items()):
            torch.manual_seed(seed)
            model, folder = make(name, settings), Path(parent, name)
            model.save_pretrained(folder)
            prompts = [torch.randint(1, 101, (length,)).tolist() for length in (5, 1, 23, 12)]
            passages = [torch.randint(1, 101, (length,)).tolist() for length in (40, 2, 17, 12, POSITIONS + 1, 33)]
            if name.startswith("gpt2"):
                passages[4].pop()  # transformers read the last token too
            end = said(model, prompts[:1], None)[0][9]
            request = {"prompts": prompts, "tokens": TOKENS, "end": [end], "passages": passages, "sampling": SAMPLING}
            (folder / "request.json").write_text(json.dumps(request))
            files = {"logits": torch.randn(24, 1000) * 3, "seen": torch.rand(24, 1000) < 0.1}
            # Penalties are for what a row has: at least one token.
            files["seen"][:, 0] = True
            save_file(files, folder / "logits.safetensors")
            made[name] = folder, model, request, files
        for device in ("cpu", "xla"):
            subprocess.run([program, device, *(str(folder) for folder, *_ in made.values())], check=True)
            for name, case in made.items():
                failures += check(name, device, *case)
    for failure in failures:
        print(failure)
    print(f"{len(made)} models on two devices, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
