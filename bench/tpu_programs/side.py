#!/usr/bin/env python3
"""Compiles one program for the devices of a TPU slice, and prints as JSON what the compiler says of one device.

  side.py --topology v5e:2x4 --text step.mlir
  side.py --topology v5e:2x4 --model gpt2 --batch 8 --options '{"rate": 0.1}'

--text: StableHLO as Sluice records it, one replica a device. --model: a step of models.py or of bench/jax_step.py, as JAX
makes it, one batch a device. Both are compiled by one function of jaxlib, so that times and counts compare. TPU_LIBRARY_PATH
names libtpu.so; nothing runs on a device. --hlo FILE keeps the optimized program.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import hlo  # noqa: E402


def devices_of(topology):
    from jax.experimental import topologies

    return topologies.get_topology_desc(platform="tpu", topology_name=topology).devices


def timed(compile_):
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    compiled = compile_()
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_SELF)
    return compiled, {"compile_seconds": round(seconds, 2), "processor_seconds": round(
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)}


def of_text(path, devices):
    """What Sluice's own way of compiling makes: the same options, from the same text."""
    import numpy
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    options = compiler.get_compile_options(num_replicas=len(devices), num_partitions=1,
                                           device_assignment=numpy.array([[one.id] for one in devices]))
    with mlir.make_ir_context():
        module = ir.Module.parse(Path(path).read_text())
        return timed(lambda: devices[0].client.compile(module, xla_client.DeviceList(tuple(devices)), options))


def step_of(options):
    import jax
    from jax import lax

    if options.model in ("resnet50", "transformer6"):
        import jax_step

        more = dict(options.options)
        jax_step.BF16 = more.pop("bf16", False)
        step, arguments, inputs = jax_step.step_of(options.model, more.get("side"), None, "devices")
        rows = (inputs(options.batch), jax_step.shape(options.batch, dtype=jax.numpy.int32))
        return lambda params, state, slots, count, rows: step(params, state, slots, count, *rows), arguments, rows

    import models
    import optax

    params, state, loss, optimizer, rows = models.MODELS[options.model](options.batch, **options.options)

    def step(params, state, slots, count, rows):
        key = jax.random.fold_in(jax.random.key(0), count * lax.axis_size("devices") + lax.axis_index("devices"))
        (value, after), grads = jax.value_and_grad(loss, has_aux=True)(params, state, rows, key)
        value, after, grads = lax.pmean((value, after, grads), "devices")
        updates, slots = optimizer.update(grads, slots, params)
        return optax.apply_updates(params, updates), after, slots, count + 1, value

    return step, (params, state, jax.eval_shape(optimizer.init, params), models.ids()), rows


def of_model(options, devices):
    import jax
    from jax.sharding import Mesh, PartitionSpec

    jax.config.update("jax_default_prng_impl", "unsafe_rbg")  # as MaxText: the default is slower on TPUs
    step, arguments, rows = step_of(options)
    whole, parts = PartitionSpec(), PartitionSpec("devices")
    shared = jax.shard_map(step, mesh=Mesh(devices, "devices"), in_specs=(whole, whole, whole, whole, parts),
                           out_specs=whole, check_vma=False)
    everywhere = jax.tree.map(lambda one: jax.ShapeDtypeStruct((one.shape[0] * len(devices), *one.shape[1:]), one.dtype), rows)
    lowered = jax.jit(shared, donate_argnums=(0, 1, 2)).lower(*arguments, everywhere)
    compiled, times = timed(lowered.compile)
    return compiled.runtime_executable(), times


def figures(executable, times, keep):
    cost = executable.cost_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    memory = executable.get_compiled_memory_stats()
    text = "\n".join(module.to_string() for module in executable.hlo_modules())
    if keep:
        Path(keep).write_text(text)
    counter = hlo.Counter(text)
    collectives = counter.collectives()
    return {"flops": cost["flops"], "bytes_accessed": cost["bytes accessed"], "hbm_bytes": counter.hbm(),
            "memory": memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
            + memory.temp_size_in_bytes, "temporary": memory.temp_size_in_bytes, "code": memory.generated_code_size_in_bytes,
            "collectives": collectives, **times,
            # The parts of an all-reduce that libtpu split are gathered again: these bytes are not counted twice.
            "exchanged": sum(size for kind, (_, size) in collectives.items() if kind != "all-gather")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", required=True, help="libtpu's name of a slice, such as v3:2x2")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--hlo", type=Path)
    options = parser.parse_args()
    if (options.text is None) == (options.model is None):
        parser.error("give --text or --model")
    import jax

    devices = devices_of(options.topology)
    try:
        executable, times = of_text(options.text, devices) if options.text else of_model(options, devices)
    except jax.errors.JaxRuntimeError as error:
        if "Ran out of memory" not in str(error):
            raise
        print(json.dumps({"jax": jax.__version__, "does_not_fit": str(error).split("\n")[0]}))
        return
    print(json.dumps({"jax": jax.__version__, **figures(executable, times, options.hlo)}))


if __name__ == "__main__":
    main()
