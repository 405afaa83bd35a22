"""metrics_oracle.py PROGRAM: the values of sluice::metrics on 1, 4 and 8 replicas are torchmetrics' of the whole set.

torchmetrics gets numbers in f64 and the samples alone, without padding.
"""

import json
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import torch
    import torchmetrics.classification as tc
    import torchmetrics.regression as tr
    from safetensors.torch import load_file
    from torchmetrics.aggregation import MeanMetric
    from torchmetrics.text import Perplexity
except ImportError as error:
    print(f"skipped: {error}; scripts/setup installs torchmetrics for the tests")
    sys.exit(77)

REPLICAS = (1, 4, 8)
TOLERANCE = 1e-6
AVERAGES = {"": "macro", "_micro": "micro", "_weighted": "weighted", "_classes": "none"}


def ordered(scores):
    """Scores without ties in which the first of equal ones is the highest: torch.topk leaves that open."""
    order = torch.sort(scores, dim=1, descending=True, stable=True).indices
    places = torch.empty_like(order).scatter_(1, order, torch.arange(scores.shape[1]).expand_as(order))
    return -places.double()


def score(base, classes, average):
    beta = float(base[1:]) if base[0] == "f" else None
    if classes == 1:
        return tc.BinaryFBetaScore(beta) if beta else {"precision": tc.BinaryPrecision, "recall": tc.BinaryRecall}[base]()
    if beta:
        return tc.MulticlassFBetaScore(beta, classes, average=average)
    return {"precision": tc.MulticlassPrecision, "recall": tc.MulticlassRecall}[base](classes, average=average)


def auroc(classes, average, thresholds):
    if classes == 1:
        return tc.BinaryAUROC(thresholds=thresholds)
    return tc.MulticlassAUROC(classes, average=average, thresholds=thresholds)


def expected_of_classes(name, case, output, target):
    """What torchmetrics gives for a name: a number, or one for each class."""
    classes = case["classes"]
    if top := re.fullmatch(r"top(\d+)", name):
        k = int(top[1])
        return tc.MulticlassAccuracy(classes, top_k=k, average="micro")(output if k == 1 else ordered(output), target)
    base, suffix = re.fullmatch(r"(precision|recall|f[0-9.]+|auroc)(|_micro|_weighted|_classes)", name).groups()
    average = AVERAGES[suffix]
    if base != "auroc":
        return score(base, classes, average)(output, target)
    scores = output
    if not case["probabilities"]:
        scores = output.sigmoid() if classes == 1 else output.softmax(1)
    # Its thresholds are f32, and so must be what is compared with them.
    return auroc(classes, average, case["thresholds"])(scores.float(), target)


def expected(case, columns):
    """The numbers by their names."""
    kind = case["case"].split("_")[0]
    if kind == "means":
        value = columns["value"].double()
        means = {}
        for name, weight in (("by_weight", "weight"), ("by_count", "count")):
            mean = MeanMetric().set_dtype(torch.float64)
            mean.update(value, columns[weight].double())
            means[name] = mean.compute()
        return means
    output, target = columns["output"].double(), columns["target"]
    if kind == "numbers":
        return {"mse": tr.MeanSquaredError()(output, target.double()), "mae": tr.MeanAbsoluteError()(output, target.double())}
    if kind == "tokens":
        return {"perplexity": Perplexity(ignore_index=-100)(output, target.where(columns["mask"], -100))}
    if case["classes"] == 1:
        output = output.reshape(-1)
    numbers = {}
    for name in dict.fromkeys(name.split("/")[0] for name in case["numbers"]):
        value = expected_of_classes(name, case, output, target)
        numbers |= {f"{name}/{c}": one for c, one in enumerate(value)} if value.dim() else {name: value}
    return numbers


def confusion(case, columns):
    output, target = columns["output"], columns["target"]
    if case["classes"] == 1:
        return tc.BinaryConfusionMatrix()(output.reshape(-1), target)
    return tc.MulticlassConfusionMatrix(case["classes"])(output, target)


def main(program):
    warnings.simplefilter("ignore")  # of classes without samples, which there are
    torch.set_num_threads(1)
    compared, failures, found = 0, [], []
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, folder, *map(str, REPLICAS)], stdout=subprocess.PIPE, text=True, check=True)
        cases = [json.loads(line) for line in done.stdout.splitlines()]
        known = {}
        for case in cases:
            name = case["case"]
            if name not in known:
                columns = load_file(f"{folder}/{name}.safetensors")
                known[name] = expected(case, columns), columns
            numbers, columns = known[name]
            if numbers.keys() != case["numbers"].keys():
                failures.append(f"{name}: expected the numbers {sorted(numbers)}, found {sorted(case['numbers'])}")
            for key, number in case["numbers"].items():
                want = float(numbers[key])
                compared += 1
                if not abs(number - want) <= TOLERANCE * max(1, abs(want)):
                    failures.append(f"{name} on {case['replicas']} replicas: {key} is {number}, torchmetrics has {want}")
            for matrix in {"confusion", "sparse"} & case.keys():
                compared += 1
                if case[matrix] != confusion(case, columns).tolist():
                    failures.append(f"{name} on {case['replicas']} replicas: the matrices differ ({matrix})")
            found.append((name, case["replicas"]))
    if len(set(found)) != len(known) * len(REPLICAS) or len(known) < 21:
        failures.append(f"{len(known)} cases on {len(REPLICAS)} numbers of replicas gave {len(set(found))} lines")
    print("\n".join(failures[:40]))
    print(f"{compared} values of {len(known)} cases on {REPLICAS} replicas compared with torchmetrics, {len(failures)} differ")
    sys.exit(bool(failures))


main(sys.argv[1])
