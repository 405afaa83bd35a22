"""language_training_oracle.py PROGRAM: 200 updates of `sluice train --task clm` lose what PyTorch's lose.

The same weights, batches, AdamW, schedule and clipping in eager PyTorch with Hugging Face's models; the order of the
rows is computed here from what sluice/text/permutation.h says. What Sluice writes is loaded by transformers.
"""

import json
import math
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}; scripts/setup installs transformers for the tests")
    sys.exit(77)

VOCABULARY, LENGTH, ROWS, STEPS, WARMUP, LR, DECAY = 97, 24, 4, 200, 20, 2e-3, 0.1
MASK64 = (1 << 64) - 1
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
MODELS = {
    "llama": (transformers.LlamaConfig(**SIZES, intermediate_size=64, num_key_value_heads=2, bos_token_id=1, eos_token_id=2),
              transformers.LlamaForCausalLM),
    "gpt2": (transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=LENGTH,
                                     resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0),
             transformers.GPT2LMHeadModel),
}


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def key(*parts):
    value = 0x736C75696365
    for part in parts:
        value = mix64(value ^ mix64(part))
    return value


def permuted(place, numbers, seed, epoch):
    half = ((numbers - 1).bit_length() + 1) // 2
    mask = (1 << half) - 1
    while True:
        high, low = place >> half, place & mask
        for r in range(4):
            high, low = low, high ^ (key(seed, epoch, r, low) & mask)
        place = high << half | low
        if place < numbers:
            return place


def documents():
    """Chains in which few tokens follow each."""
    random.seed(5)
    for _ in range(260):
        token, document = random.randrange(3, VOCABULARY), []
        for _ in range(random.randrange(5, 40)):
            document.append(token)
            token = 3 + (token * 11 + random.randrange(3)) % (VOCABULARY - 3)
        yield document


def write_tokens(folder, texts):
    lengths = [len(text) for text in texts]
    places = [2 * sum(lengths[:i]) for i in range(len(texts))]
    with open(folder / "train-0000.bin", "wb") as out:
        for text in texts:
            out.write(struct.pack(f"<{len(text)}H", *text))
    with open(folder / "train-0000.idx", "wb") as out:
        n = len(texts)
        out.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, n, n + 1))
        out.write(struct.pack(f"<{n}i", *lengths) + struct.pack(f"<{n}q", *places) + struct.pack(f"<{n + 1}q", *range(n + 1)))


def batches(ids, seed):
    rows = (len(ids) - 1) // LENGTH
    for epoch in range(10**6):
        for first in range(0, rows - ROWS + 1, ROWS):
            numbers = [permuted(place, rows, seed, epoch) for place in range(first, first + ROWS)]
            yield torch.tensor([ids[n * LENGTH:n * LENGTH + LENGTH + 1] for n in numbers])


def learning_rate(step, steps):
    if step < WARMUP:
        return LR * step / WARMUP
    return LR * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP)))


def losses_of_pytorch(model, ids, seed):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0}],
                                  lr=LR, betas=(0.9, 0.95))
    model.train()
    losses = []
    for step, batch in zip(range(STEPS), batches(ids, seed)):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, STEPS)
        logits = model(batch[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def losses_of_sluice(program, folder, logdir, device, *flags):
    command = [program, "train", "--task", "clm", "--weights", str(folder), "--train", str(folder.parent / "train-*.bin"),
               "--length", str(LENGTH), "--batch-size", str(ROWS), "--epochs", "100", "--max-steps", str(STEPS), "--lr", str(LR),
               "--warmup-steps", str(WARMUP), "--weight-decay", str(DECAY), "--log-steps", "1", "--seed", "0", "--device", device,
               "--logdir", str(logdir), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (logdir / "metrics.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if row.get("split") == "train" and row.get("loss") is not None][:STEPS]


def main(program):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        texts = list(documents())
        write_tokens(root, texts)
        ids = [token for text in texts for token in text]
        for kind, (config, model_class) in MODELS.items():
            torch.manual_seed(3)
            model = model_class(config)
            folder = root / kind
            model.save_pretrained(folder)
            expected = losses_of_pytorch(model, ids, seed=0)
            for device, flags in (("cpu", []), ("xla", ["--plugin", "cpu", "--strict"])):
                logdir = root / f"{kind}-{device}"
                found = losses_of_sluice(program, folder, logdir, device, *flags)
                assert len(found) == STEPS, len(found)
                worst = max(abs(a - b) for a, b in zip(found, expected))
                print(f"{kind} on {device}: {expected[0]:.4f} to {expected[-1]:.4f} nats, at most {worst:.1e} apart")
                assert worst <= 1e-3, (kind, device, worst)
                again, info = model_class.from_pretrained(logdir / "last", output_loading_info=True)
                assert not info["missing_keys"] and not info["unexpected_keys"], info
                apart = max((a - b).abs().max().item() for a, b in zip(again.parameters(), model.parameters()))
                assert apart < 1e-2, apart
            assert expected[-1] < expected[0] - 1, "it has not learnt"


if __name__ == "__main__":
    main(sys.argv[1])
