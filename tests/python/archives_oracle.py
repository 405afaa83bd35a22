"""Python's half of archives_test.sh: the regression of archives.cc, with Python's torch.

Usage: archives_oracle.py FROM TO. The C++ program has trained 3 steps and written FROM; Python compares what it
reads there with 3 steps of its own, trains 2 more, puts its values into the archives and writes TO. With FROM
alone it compares with 7 steps: those and 2 more of the C++ program.
"""
import os
import sys

import torch

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, 0.02, amsgrad=True, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, 0.02, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.1, lr_decay=0.01),
    "lbfgs": lambda p: torch.optim.LBFGS(p, 0.2, max_iter=4, history_size=20),
}
# What a step only works with.
SCRATCH = {"al"}


def ramp(*sizes):
    count = 1
    for size in sizes:
        count *= size
    return torch.arange(count, dtype=torch.float32).mul(0.37).sin().reshape(sizes)


def trained(name, steps):
    model = torch.nn.Linear(4, 3)
    with torch.no_grad():
        model.weight.copy_(ramp(3, 4))
        model.bias.copy_(ramp(3))
    optimizer = OPTIMIZERS[name](model.parameters())
    x, y = ramp(8, 4), ramp(8, 3) * 0.5

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return model, optimizer


def check(what, found, expected):
    if not torch.allclose(found, expected, rtol=1e-4, atol=1e-6):
        sys.exit(f"{what}: expected {expected}, found {found}")


def states_of(archive):
    """The archive's states, in the order of the parameters."""
    group = getattr(archive.param_groups, "param_groups/0")
    keys = [group._c.getattr(f"params/{i}") for i in range(int(getattr(group, "params/size")))]
    return [getattr(archive.state, key) for key in keys if hasattr(archive.state, key)]


def pairs_of(states, optimizer):
    """(state of the archive, name of a value, state of Python's optimizer)"""
    python = [state for state in optimizer.state.values() if state]
    if len(states) != len(python):
        sys.exit(f"expected {len(python)} states, found {len(states)}")
    for there, here in zip(states, python):
        for name, value in here.items():
            if value is not None and name not in SCRATCH:
                yield there, name, here


def as_tensor(value):
    if isinstance(value, list):  # LBFGS's history
        return torch.stack(value).float()
    return value.float() if isinstance(value, torch.Tensor) else torch.tensor(float(value))


def hand_over(name, source, target=None):
    model, optimizer = trained(name, 3 if target else 7)
    archive, saved = torch.jit.load(f"{source}/model.pt"), torch.jit.load(f"{source}/optimizer.pt")
    check("weight", archive.weight, model.weight)
    check("bias", archive.bias, model.bias)
    check("weight.pt", torch.load(f"{source}/weight.pt"), model.weight)
    pairs = list(pairs_of(states_of(saved), optimizer))
    for there, key, here in pairs:
        check(f"{name}'s {key}", as_tensor(there._c.getattr(key)), as_tensor(here[key]))
    print(f"{name}: {len(pairs)} values of the optimizer's state are Python's")
    if target is None:
        return
    # Two steps more here, into the same archives.
    model, optimizer = trained(name, 5)
    with torch.no_grad():
        archive.weight.copy_(model.weight)
        archive.bias.copy_(model.bias)
        for there, key, here in pairs_of(states_of(saved), optimizer):
            old = there._c.getattr(key)
            kept = isinstance(old, (torch.Tensor, list))
            there._c.setattr(key, here[key] if kept else type(old)(here[key]))
    os.makedirs(target)
    archive.save(f"{target}/model.pt")
    saved.save(f"{target}/optimizer.pt")
    torch.save(model.weight.detach(), f"{target}/weight.pt")


for optimizer_name in OPTIMIZERS:
    hand_over(optimizer_name, *(f"{folder}/{optimizer_name}" for folder in sys.argv[1:]))
