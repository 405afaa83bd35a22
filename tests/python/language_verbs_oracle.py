"""language_verbs_oracle.py SLUICE: `sluice text sample` and `sluice text score` say what Hugging Face's transformers say.

Random GPT-2 and Llama models with a byte-level tokenizer, written by transformers and tokenizers.
"""

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
except ImportError as error:
    print(f"skipped: {error}; scripts/setup installs transformers for the tests")
    sys.exit(77)

TEXT = ("In the beginning God created the heaven and the earth. And the earth was without form, and void; and darkness "
        "was upon the face of the deep. Und der Geist Gottes schwebte über dem Wasser – 神は言われた 😀.\n")
POSITIONS = 96


def check(condition, what):
    print(f"{'ok' if condition else 'DIFFERS'}: {what}")
    if not condition:
        check.failures += 1


check.failures = 0


def sluice(program, *arguments, status=0):
    done = subprocess.run([program, "text", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != status:
        sys.exit(f"sluice text {' '.join(map(str, arguments))}: status {done.returncode}: {done.stderr}")
    return done.stdout if status == 0 else done.stderr


def make_tokenizer(with_begin):
    """Byte-level BPE; a template that puts <s> in front where asked for, and </s> behind."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    if with_begin:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    return tokenizer


def make(kind, folder):
    tokenizer = make_tokenizer(kind == "llama")
    common = {"vocab_size": tokenizer.get_vocab_size(), "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 1}
    if kind == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=POSITIONS, **common))
    else:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
            max_position_embeddings=POSITIONS, **common))
    model.eval().save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return model, tokenizer


def plain(tokenizer, text, begin):
    return ([0] if begin else []) + tokenizer.encode(text, add_special_tokens=False).ids


def log_probabilities(model, ids):
    """Of each token but the first, given all before it."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids[:-1]])).logits[0].double().log_softmax(-1)
    return logits.gather(1, torch.tensor(ids[1:]).unsqueeze(1)).squeeze(1).tolist()


def sampled(program, kind, folder, model, tokenizer):
    for prompt in ("And the earth", "über 神😀", ""):
        ids = plain(tokenizer, prompt, kind == "llama") or [0]
        wanted = model.generate(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                                do_sample=False, max_new_tokens=48, pad_token_id=0)[0, len(ids):].tolist()
        for device in ("cpu", "xla"):
            out = sluice(program, "sample", "--model", folder, "--prompt", prompt, "--greedy", "--tokens", 48, "--json",
                         "--device", device)
            found = json.loads(out)
            check(found["tokens"] == wanted, f"{kind} on {device}: the likeliest tokens behind {prompt!r}")
            whole, before = tokenizer.decode(ids + found["tokens"]), tokenizer.decode(ids)
            check(before + found["text"] == whole, f"{kind} on {device}: their text")
    shown = sluice(program, "sample", "--model", folder, "--prompt", "And the earth", "--greedy", "--tokens", 48, "--device", "cpu")
    check(shown == json.loads(sluice(program, "sample", "--model", folder, "--prompt", "And the earth", "--greedy", "--tokens",
                                     48, "--device", "cpu", "--json"))["text"].join(["And the earth", "\n"]), f"{kind}: shown as text")
    several = sluice(program, "sample", "--model", folder, "--prompt-file", "/dev/null", "--samples", 3, "--tokens", 12, "--json")
    texts = [json.loads(line)["tokens"] for line in several.splitlines()]
    check(len(texts) == 3 and texts[0] != texts[1], f"{kind}: three different samples")


def windows(ids, length, stride):
    """As transformers' page on perplexity makes them, each with how many of its tokens are new."""
    previous = 1
    for begin in range(0, len(ids), stride):
        end = min(begin + length + 1, len(ids))
        if end <= previous:
            break
        yield ids[begin:end], end - previous
        previous = end


def scored(program, kind, folder, model, tokenizer, work):
    documents = [TEXT * 3, "Short.", "über 神😀 " * 20]
    files = []
    for number, document in enumerate(documents):
        files.append(work / f"{kind}-{number}.txt")
        files[-1].write_text(document, encoding="utf-8")
    for length, stride in ((0, 0), (40, 40), (40, 15)):
        nats, tokens = 0.0, 0
        for document in documents:
            ids = plain(tokenizer, document, True)
            tokens += len(ids) - 1
            for window, new in windows(ids, length or POSITIONS, stride or length or POSITIONS):
                nats -= sum(log_probabilities(model, window)[-new:])
        for device in ("cpu", "xla"):
            found = json.loads(sluice(program, "score", "--model", folder, *files, "--json", "--length", length, "--stride", stride,
                                      "--device", device, "--batch-size", 3))
            bits = nats / math.log(2) / sum(len(document.encode()) for document in documents)
            right = found["tokens"] == tokens and all(
                abs(found[key] / value - 1) <= 1e-5
                for key, value in (("nats", nats), ("perplexity", math.exp(nats / tokens)), ("bits_per_byte", bits)))
            check(right, f"{kind} on {device}: passages of {length} every {stride}: {nats} nats, found {found}")
    sluice(program, "pack", "::".join(map(str, files)), work / f"{kind}-set", "--tokenizer", folder, "--sample-by", "document")
    found = json.loads(sluice(program, "score", "--model", folder, "--tokens", work / f"{kind}-set" / "*.bin", "--json", "--device", "cpu",
                              "--length", 40, "--stride", 15))
    check(abs(found["nats"] / nats - 1) <= 1e-5, f"{kind}: the same of token files: {found}")


def chosen(program, kind, folder, model, tokenizer, work):
    questions = [{"prompt": "And the earth was", "choices": [" without form", " void", " good"], "answer": 1},
                 {"prompt": "In the ", "choices": ["beginning", "end"], "answer": 0},
                 {"prompt": TEXT * 2, "choices": ["And", " Und der Geist"], "answer": 0}]
    file, out = work / f"{kind}.jsonl", work / f"{kind}-out.jsonl"
    file.write_text("".join(json.dumps(question) + "\n" for question in questions))
    right, by_length, likelihoods = 0, 0, []
    for question in questions:
        row = []
        for choice in question["choices"]:
            before = plain(tokenizer, question["prompt"].rstrip(" "), kind == "llama")
            whole = plain(tokenizer, question["prompt"] + choice, kind == "llama")
            new = len(whole) - len(before)
            row.append(sum(log_probabilities(model, whole[-(POSITIONS + 1):])[-new:]))
        likelihoods.append(row)
        right += max(range(len(row)), key=row.__getitem__) == question["answer"]
        each = [value / len(choice.encode()) for value, choice in zip(row, question["choices"])]
        by_length += max(range(len(row)), key=each.__getitem__) == question["answer"]
    found = json.loads(sluice(program, "score", "--model", folder, "--choices", file, "--json", "--out", out, "--device", "cpu"))
    check((found["accuracy"], found["accuracy_by_length"], found["cut"]) == (right / 3, by_length / 3, 2), f"{kind}: choices: {found}")
    lines = [json.loads(line)["log_likelihoods"] for line in out.read_text().splitlines()]
    close = all(abs(a / b - 1) <= 1e-5 for row, wanted in zip(lines, likelihoods) for a, b in zip(row, wanted))
    check(close, f"{kind}: the choices' likelihoods: {lines}, wanted {likelihoods}")


def refused(program, folder, work):
    def says(part, *arguments):
        said = sluice(program, *arguments, status=1)
        check(part in said and said.count("\n") == 1, f"an error says {part!r}: {said.strip()}")

    says("is not there", "sample", "--model", work / "nowhere", "--prompt", "a")
    bare = work / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors"):
        (bare / name).write_bytes((folder / name).read_bytes())
    says(f"no tokenizer: {bare / 'tokenizer.json'} is not there", "sample", "--model", bare, "--prompt", "a")
    sluice(program, "sample", "--model", bare, "--prompt", "a", "--tokenizer", folder, "--tokens", 1, "--device", "cpu")
    says("the model's positions serve 96: cut the prompt", "sample", "--model", folder, "--prompt", TEXT * 4)
    says("expected a temperature above 0 (or greedy), found 0", "sample", "--model", folder, "--temperature", 0)
    says("expected a top-p above 0 and at most 1, found 1.5", "sample", "--model", folder, "--top-p", 1.5)
    says("expected one of FILES, --tokens and --choices, found 0", "score", "--model", folder)
    lines = work / "wrong.jsonl"
    lines.write_text('{"prompt": "a", "choices": ["b", "c"], "answer": 2}\n')
    says("answer", "score", "--model", folder, "--choices", lines, "--device", "cpu")
    settings = json.loads((folder / "config.json").read_text())
    (bare / "config.json").write_text(json.dumps(settings | {"vocab_size": 50}))
    says("is not below the vocabulary's size, 50", "sample", "--model", bare, "--tokenizer", folder, "--prompt", "the earth")
    (bare / "config.json").write_text(json.dumps({"model_type": "roberta"}))
    says("roberta sees the whole text, so it cannot say what comes next", "sample", "--model", bare, "--tokenizer", folder)
    says("roberta sees the whole text, so it does not say", "score", "--model", bare, "--tokenizer", folder, lines)


def main(program):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as parent:
        work = Path(parent)
        for seed, kind in enumerate(("gpt2", "llama")):
            torch.manual_seed(seed)
            folder = work / kind
            model, tokenizer = make(kind, folder)
            sampled(program, kind, folder, model, tokenizer)
            scored(program, kind, folder, model, tokenizer, work)
            chosen(program, kind, folder, model, tokenizer, work)
        refused(program, work / "gpt2", work)
    print(f"{check.failures} failures")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
