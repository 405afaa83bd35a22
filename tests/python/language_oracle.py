"""language_oracle.py PROGRAM: the logits of Sluice's language models are those of Hugging Face's transformers.

Tiny models with random weights, sequences filled up at their ends and at their beginnings; and the same logits from
what Sluice writes, loaded by transformers.
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

TOLERANCE = 1e-4
LENGTH = 24
SIZES = {"vocab_size": 101, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "initializer_range": 0.2}
LLAMA = SIZES | {"intermediate_size": 48, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2}
GPT2 = {"vocab_size": 101, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": LENGTH, "initializer_range": 0.2,
        "bos_token_id": 0, "eos_token_id": 0}
ROBERTA = SIZES | {"intermediate_size": 48, "max_position_embeddings": LENGTH + 2, "type_vocab_size": 1}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16, "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 100.0}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [1.5, 2.0, 3.0, 4.0],
            "original_max_position_embeddings": 16, "rope_theta": 1000.0}

CASES = {
    "llama": LLAMA,
    "llama_groups": LLAMA | {"num_key_value_heads": 2},
    "llama_one_group_tied": LLAMA | {"num_key_value_heads": 1, "tie_word_embeddings": True},
    "llama_head_dim": LLAMA | {"num_key_value_heads": 2, "head_dim": 12},
    "llama_biases": LLAMA | {"attention_bias": True, "mlp_bias": True, "hidden_act": "gelu_pytorch_tanh", "pad_token_id": 0},
    "llama_theta": LLAMA | {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}, "rms_norm_eps": 1e-3},
    "llama_linear": LLAMA | {"rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 1000.0}},
    "llama_llama3": LLAMA | {"rope_parameters": LLAMA3, "num_key_value_heads": 2},
    "llama_dynamic": LLAMA | {"max_position_embeddings": 16,
                              "rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}},
    "llama_yarn": LLAMA | {"rope_parameters": YARN},
    "llama_yarn_scales": LLAMA | {"rope_parameters": YARN | {"mscale": 1.5, "mscale_all_dim": 0.7, "beta_fast": 4, "beta_slow": 2,
                                                             "truncate": False}},
    "llama_yarn_factor": LLAMA | {"rope_parameters": YARN | {"attention_factor": 1.3}, "head_dim": 12},
    "llama_yarn_null": LLAMA | {"rope_parameters": YARN | {"factor": None}},
    "llama_yarn_two_limits": LLAMA | {"original_max_position_embeddings": 32, "rope_parameters": YARN},
    "llama_llama3_no_limit": LLAMA | {"rope_parameters": {key: value for key, value in LLAMA3.items() if "original" not in key}},
    "llama_longrope": LLAMA | {"rope_parameters": LONGROPE},
    "llama_longrope_short": LLAMA | {"rope_parameters": LONGROPE | {"original_max_position_embeddings": 32, "factor": 3.0}},
    "gpt2": GPT2,
    "gpt2_untied": GPT2 | {"tie_word_embeddings": False, "n_inner": 40, "activation_function": "gelu"},
    "gpt2_scales": GPT2 | {"scale_attn_by_inverse_layer_idx": True, "activation_function": "quick_gelu"},
    "gpt2_unscaled": GPT2 | {"scale_attn_weights": False, "initializer_range": 0.15, "activation_function": "relu"},
    "roberta": ROBERTA,
    "roberta_padding": ROBERTA | {"pad_token_id": 3, "max_position_embeddings": LENGTH + 4, "layer_norm_eps": 1e-5},
    "roberta_untied": ROBERTA | {"tie_word_embeddings": False, "type_vocab_size": 2, "hidden_act": "gelu_new"},
}
# Three labels, two without names in the file, and names of one's own.
CLASSIFIERS = {
    "llama_classes": LLAMA | {"num_labels": 3, "pad_token_id": 0, "num_key_value_heads": 2},
    "gpt2_classes": GPT2 | {"num_labels": 2, "pad_token_id": 1},
    "roberta_classes": ROBERTA | {"id2label": {0: "no", 1: "yes", 2: "maybe", 3: "both"}, "classifier_dropout": 0.3},
}
CLASSES = {"llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, transformers.LlamaForSequenceClassification),
           "gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel, transformers.GPT2ForSequenceClassification),
           "roberta": (transformers.RobertaConfig, transformers.RobertaForMaskedLM, transformers.RobertaForSequenceClassification)}


def make(name, settings):
    """A model whose biases and norms are random too."""
    config_class, *model_classes = CLASSES[name.split("_")[0]]
    model = model_classes[name in CLASSIFIERS](config_class(**settings)).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.normal_(1.0 if "norm" in key.lower() and key.endswith("weight") else 0.0, 0.2)
        model.tie_weights()
    return model


def inputs(config):
    """Ids and masks of sequences of several lengths, filled up behind or in front."""
    padding = config.pad_token_id if config.pad_token_id is not None else 0
    ids = torch.randint(4, config.vocab_size, (6, LENGTH))
    mask = torch.ones(6, LENGTH, dtype=torch.bool)
    for row, length in enumerate((LENGTH, 17, 5, 1)):
        mask[row, length:] = False
    mask[4, :9] = False
    mask[5, :LENGTH - 1] = False
    ids[~mask] = padding
    return ids, mask


def logits(model, ids, mask):
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask.long() if mask is not None else None).logits


def change_files(name, folder):
    """Some folders as they are on the hub: GPT-2's names without a prefix, files of transformers 4, cut weights, and
    pytorch_model.bin, of today, of before PyTorch 1.6, and cut in two."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    if name in ("gpt2_scales", "roberta_padding", "llama_biases"):
        tensors = load_file(weights)
        weights.unlink()
        if name == "llama_biases":
            map_of_files = {}
            for number, part in enumerate((list(tensors)[::2], list(tensors)[1::2]), 1):
                torch.save({key: tensors[key] for key in part}, folder / f"pytorch_model-{number:05}-of-00002.bin")
                map_of_files |= dict.fromkeys(part, f"pytorch_model-{number:05}-of-00002.bin")
            (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": map_of_files}))
        else:
            torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=name == "gpt2_scales")
    if name == "gpt2":
        tensors = {key.removeprefix("transformer."): value for key, value in load_file(weights).items()}
        tensors["h.0.attn.bias"] = torch.ones(1, 1, LENGTH, LENGTH).tril()
        save_file(tensors, weights, {"format": "pt"})
    if name in ("llama_linear", "llama_llama3"):
        settings = json.loads(config.read_text())
        rope = settings.pop("rope_parameters")
        settings["rope_theta"] = rope.pop("rope_theta")
        settings["rope_scaling"] = rope
        config.write_text(json.dumps(settings))


def largest(found, wanted, where):
    return (found - wanted)[where].abs().max().item()


def reported(name, report):
    return [f"{name}: from_pretrained of Sluice's folder reports {key}: {report[key]}"
            for key in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs") if report.get(key)]


def check_fresh(name, folder, model):
    """What is wrong with the classifier on the model's body."""
    classifier, report = CLASSES[name.split("_")[0]][2].from_pretrained(folder / "fresh", output_loading_info=True)
    failures = reported(f"{name}, fresh", report)
    body, wanted = classifier.base_model.state_dict(), model.base_model.state_dict()
    if body.keys() != wanted.keys() or not all(torch.equal(body[key], wanted[key]) for key in body):
        failures.append(f"{name}: the fresh classifier has another body")
    if classifier.config.num_labels != 5:
        failures.append(f"{name}: the fresh classifier has {classifier.config.num_labels} labels")
    return failures


def check_case(name, folder, model, ids, mask):
    """What is wrong, and the largest difference."""
    output = load_file(folder / "output.safetensors")
    wanted = logits(model, ids, mask)
    where, everywhere = mask, torch.ones_like(mask)
    if name in CLASSIFIERS:
        where = everywhere = everywhere[:, 0]
    elif name.startswith("roberta"):
        where = everywhere  # also of what is filled up: the classifier looks at the first place, whatever is there
    differences = {"with padding": largest(output["logits"], wanted, where),
                   "without a mask": largest(output["unmasked"], logits(model, ids, None), everywhere)}
    again, report = type(model).from_pretrained(folder / "again", output_loading_info=True)
    differences["loaded again"] = largest(logits(again.eval(), ids, mask), wanted, where)
    failures = [f"{name}: {what}, the logits differ by {value}" for what, value in differences.items() if not value <= TOLERANCE]
    failures += reported(name, report)
    if name in CLASSIFIERS and again.config.id2label != model.config.id2label:
        failures.append(f"{name}: the labels became {again.config.id2label}")
    failures += check_fresh(name, folder, model)
    if wanted.abs().max() < 0.5:
        failures.append(f"{name}: logits up to {wanted.abs().max()} show little")
    return failures, max(differences.values())


def check_errors(program, folder):
    """What is wrong with what the program says of folders that do not fit."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    tensors, settings = load_file(weights), json.loads(config.read_text())
    name, failures = "model.layers.1.mlp.up_proj.weight", []

    def expect(part, changed_tensors=tensors, changed_settings=settings):
        save_file(changed_tensors, weights, {"format": "pt"})
        config.write_text(json.dumps(changed_settings))
        said = subprocess.run([program, folder], stderr=subprocess.PIPE, text=True, check=False).stderr
        if part not in said:
            failures.append(f"expected an error with {part!r}, found {said!r}")

    without = {key: value for key, value in tensors.items() if key != name}
    expect(f"the tensor {name} is missing in it\n", without)
    expect(f"the tensor {name} is missing in it; the nearest name is {name}s", without | {name + "s": tensors[name]})
    expect("it has no tensor called model.other", tensors | {"model.other": torch.ones(1)})
    expect("has shape [48, 31] there, [48, 32] in the model", without | {name: torch.ones(48, 31)})
    expect('the rope_type "spiral" is not known; known are default', tensors,
           settings | {"rope_parameters": {"rope_type": "spiral", "factor": 2.0}})
    expect('the key "factor" is missing', tensors,
           settings | {"rope_parameters": {"rope_type": "yarn", "original_max_position_embeddings": 16}})
    expect("expected vocab_size from 1 to 16777216, found 1000000000000", tensors,
           settings | {"vocab_size": 10**12})
    expect('the model_type "qwen9" is not known; known are gpt2, llama, roberta', tensors, settings | {"model_type": "qwen9"})
    return failures


def check_heads(program, parent):
    """What is wrong with what the program makes of models with other heads, and with none."""
    failures = []
    for head, said in (("ForQuestionAnswering", "another head (qa_outputs.bias …), which is not known"),
                       ("ForTokenClassification", "another head (classifier.bias …), which is not known"),
                       ("Model", "only the body")):
        folder = parent / f"roberta_{head}"
        without_pooler = {"add_pooling_layer": False} if head == "Model" else {}  # no classifier has one
        model = getattr(transformers, f"Roberta{head}")(transformers.RobertaConfig(**ROBERTA), **without_pooler).eval()
        model.save_pretrained(folder)
        error = subprocess.run([program, folder], stderr=subprocess.PIPE, text=True, check=False).stderr
        if f"has no head of words (lm_head.bias …), but {said}" not in error:
            failures.append(f"{head}: expected an error with {said!r}, found {error!r}")
        subprocess.run([program, "--fresh", folder], check=True)
        failures += check_fresh(f"roberta_{head}", folder, model)
    return failures


def main(program):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as parent:
        made = {}
        for seed, (name, settings) in enumerate((CASES | CLASSIFIERS).items()):
            torch.manual_seed(seed)
            model, folder = make(name, settings), Path(parent, name)
            # Cut into files with an index where the limit is small.
            model.save_pretrained(folder, max_shard_size="20KB" if name.endswith("groups") else "1GB")
            if name.endswith("groups") and not (folder / "model.safetensors.index.json").exists():
                sys.exit(f"{name}: expected several files of weights")
            change_files(name, folder)
            ids, mask = inputs(model.config)
            save_file({"ids": ids, "mask": mask}, folder / "input.safetensors")
            made[name] = folder, model, ids, mask
        subprocess.run([program, *(str(folder) for folder, *_ in made.values())], check=True)
        failures, differences = [], []
        for name, case in made.items():
            wrong, difference = check_case(name, *case)
            failures += wrong
            differences.append(difference)
        failures += check_errors(program, Path(parent, "llama"))
        failures += check_heads(program, Path(parent))
    for failure in failures:
        print(failure)
    print(f"{len(made)} models, largest difference of a logit {max(differences):.2g}, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
