"""The JAX side of bench/ahead.py: training steps as JAX's users write them, with the types of LibTorch's autocast.

Weights, norms and the values between the layers are f32; with bf16, products take operands in bf16. Losses and optimizers
are optax's. A model is (shapes of its weights, shapes of its state, its loss, its optimizer, shapes of a batch);
the loss takes (weights, state, batch, key) and gives (loss, state). `--model` recipes of ResNet-50 and transformer6 are
those of bench/jax_step.py.
"""

import math

import jax
import jax.numpy as jnp
import optax
from jax import lax

F32, BF16 = jnp.float32, jnp.bfloat16


def shape(*dims, dtype=F32):
    return jax.ShapeDtypeStruct(dims, dtype)


def ids(*dims):
    return shape(*dims, dtype=jnp.int32)


class Layers:
    """What the models share, for one type of the products."""

    def __init__(self, bf16):
        self.type = BF16 if bf16 else F32

    def low(self, x):
        return x.astype(self.type)

    def dense(self, p, x):
        y = self.low(x) @ self.low(p["kernel"])
        return y + self.low(p["bias"]) if "bias" in p else y

    def attention(self, q, k, v, **seen):
        """[batch, length, heads, width]."""
        return jax.nn.dot_product_attention(self.low(q), self.low(k), self.low(v), **seen)

    def attention_with_dropout(self, q, k, v, key, rate, mask):
        """The same for a model in training: jax.nn's attention has no dropout."""
        scores = jnp.einsum("blhd,bmhd->bhlm", self.low(q), self.low(k)).astype(F32) * q.shape[-1] ** -0.5
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e30))
        return jnp.einsum("bhlm,bmhd->blhd", self.low(dropout(key, rate, weights)), self.low(v))


def dense(inputs, outputs, bias=True):
    kernel = {"kernel": shape(inputs, outputs)}
    return {**kernel, "bias": shape(outputs)} if bias else kernel


def norm(width):
    return {"scale": shape(width), "bias": shape(width)}


def layer_norm(p, x):
    x = x.astype(F32)
    mean = jnp.mean(x, -1, keepdims=True)
    var = jnp.mean(x * x, -1, keepdims=True) - mean * mean  # as flax's LayerNorm
    return (x - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["bias"]


def rms_norm(p, x):
    x = x.astype(F32)
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * p["scale"]


def dropout(key, rate, x):
    if rate == 0:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def adamw(beta2):
    """What `sluice train` uses for language models: no decay of vectors, the gradient's norm at most 1."""
    schedule = optax.warmup_cosine_decay_schedule(0, 5e-4, 100, 1000)
    return optax.chain(optax.clip_by_global_norm(1.0),
                       optax.adamw(schedule, b1=0.9, b2=beta2, weight_decay=0.1,
                                   mask=lambda params: jax.tree.map(lambda p: p.ndim > 1, params)))


def token_loss(logits, targets):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(F32), targets)


def gpt2(batch, length=1024, bf16=True, rate=0.0, recompute=False, layers=12, width=768, heads=12, vocabulary=50257):
    on = Layers(bf16)
    params = {"tokens": shape(vocabulary, width), "positions": shape(max(1024, length), width), "norm": norm(width),
              "layers": [{"norm1": norm(width), "qkv": dense(width, 3 * width), "out": dense(width, width),
                          "norm2": norm(width), "up": dense(width, 4 * width), "down": dense(4 * width, width)}
                         for _ in range(layers)]}

    def attention(p, x, key):
        q, k, v = jnp.split(on.dense(p["qkv"], x).reshape(batch, length, 3 * heads, width // heads), 3, axis=2)
        if rate == 0:
            mixed = on.attention(q, k, v, is_causal=True)
        else:
            causal = jnp.tril(jnp.ones((length, length), bool))
            mixed = on.attention_with_dropout(q, k, v, key, rate, causal)
        return on.dense(p["out"], mixed.reshape(batch, length, width))

    def layer(p, h, key):
        keys = jax.random.split(key, 3)
        h = h + dropout(keys[1], rate, attention(p, layer_norm(p["norm1"], h), keys[0]))
        up = jax.nn.gelu(on.dense(p["up"], layer_norm(p["norm2"], h)), approximate=True)
        return h + dropout(keys[2], rate, on.dense(p["down"], up))

    run = jax.checkpoint(layer) if recompute else layer

    def loss(params, state, rows, key):
        tokens, targets = rows[:, :-1], rows[:, 1:]
        keys = jax.random.split(key, layers + 1)
        h = dropout(keys[-1], rate, params["tokens"][tokens] + params["positions"][:length])
        for p, one in zip(params["layers"], keys):
            h = run(p, h, one)
        logits = on.low(layer_norm(params["norm"], h)) @ on.low(params["tokens"]).T
        return token_loss(logits, targets).mean(), state

    return params, {}, loss, adamw(0.95), ids(batch, length + 1)


def llama(batch, length=2048, bf16=True, layers=22, width=2048, heads=32, shared=4, feedforward=5632, vocabulary=32000):
    on = Layers(bf16)
    head = width // heads
    scale = {"scale": shape(width)}
    params = {"tokens": shape(vocabulary, width), "norm": scale, "head": dense(width, vocabulary, False),
              "layers": [{"norm1": scale, "q": dense(width, width, False), "k": dense(width, shared * head, False),
                          "v": dense(width, shared * head, False), "out": dense(width, width, False), "norm2": scale,
                          "gate": dense(width, feedforward, False), "up": dense(width, feedforward, False),
                          "down": dense(feedforward, width, False)} for _ in range(layers)]}
    angles = jnp.outer(jnp.arange(length), 10000.0 ** (-jnp.arange(0, head, 2) / head))[:, None, :]

    def rotate(x):
        a, b = jnp.split(x.astype(F32), 2, axis=-1)
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def layer(p, h):
        x = rms_norm(p["norm1"], h)
        q = rotate(on.dense(p["q"], x).reshape(batch, length, heads, head))
        k = rotate(on.dense(p["k"], x).reshape(batch, length, shared, head))
        v = on.dense(p["v"], x).reshape(batch, length, shared, head)
        h = h + on.dense(p["out"], on.attention(q, k, v, is_causal=True).reshape(batch, length, width))
        x = rms_norm(p["norm2"], h)
        return h + on.dense(p["down"], jax.nn.silu(on.dense(p["gate"], x)) * on.dense(p["up"], x))

    def loss(params, state, rows, key):
        h = params["tokens"][rows[:, :-1]]
        for p in params["layers"]:
            h = layer(p, h)
        return token_loss(on.dense(params["head"], rms_norm(params["norm"], h)), rows[:, 1:]).mean(), state

    return params, {}, loss, adamw(0.95), ids(batch, length + 1)


def roberta(batch, length=512, bf16=True, rate=0.1, hidden=77, layers=12, width=768, heads=12, vocabulary=50265):
    """Masked tokens: `hidden` places of each row, of which some may be empty (-1)."""
    on = Layers(bf16)
    params = {"tokens": shape(vocabulary, width), "positions": shape(length + 2, width), "type": shape(width),
              "norm": norm(width), "dense": dense(width, width), "head_norm": norm(width), "head_bias": shape(vocabulary),
              "layers": [{"q": dense(width, width), "k": dense(width, width), "v": dense(width, width),
                          "out": dense(width, width), "norm1": norm(width), "up": dense(width, 4 * width),
                          "down": dense(4 * width, width), "norm2": norm(width)} for _ in range(layers)]}

    def layer(p, h, mask, key):
        keys = jax.random.split(key, 3)
        q, k, v = (on.dense(p[name], h).reshape(batch, length, heads, width // heads) for name in "qkv")
        mixed = on.attention_with_dropout(q, k, v, keys[0], rate, mask)
        h = layer_norm(p["norm1"], h + dropout(keys[1], rate, on.dense(p["out"], mixed.reshape(batch, length, width))))
        up = jax.nn.gelu(on.dense(p["up"], h), approximate=False)
        return layer_norm(p["norm2"], h + dropout(keys[2], rate, on.dense(p["down"], up)))

    def loss(params, state, rows, key):
        tokens, lengths, places, targets = rows
        keys = jax.random.split(key, layers + 1)
        real = jnp.arange(length) < lengths[:, None]
        positions = jnp.where(real, jnp.arange(length) + 2, 1)
        h = params["tokens"][tokens] + params["type"] + params["positions"][positions]
        h = dropout(keys[-1], rate, layer_norm(params["norm"], h))
        for p, one in zip(params["layers"], keys):
            h = layer(p, h, real[:, None, None, :], one)
        chosen = jnp.take_along_axis(h, places[:, :, None], axis=1)
        chosen = layer_norm(params["head_norm"], jax.nn.gelu(on.dense(params["dense"], chosen), approximate=False))
        logits = on.low(chosen) @ on.low(params["tokens"]).T + on.low(params["head_bias"])
        there = targets >= 0
        count = lax.psum(there.sum(), "devices")
        losses = jnp.where(there, token_loss(logits, jnp.maximum(targets, 0)), 0)
        right = lax.psum((there & (jnp.argmax(logits, -1) == targets)).sum(), "devices")
        # The mean of the devices' gradients is that of all tokens.
        return losses.sum() * lax.psum(1, "devices") / count, {"accuracy": right / count}

    rows = (ids(batch, length), ids(batch), ids(batch, hidden), ids(batch, hidden))
    return params, {"accuracy": shape()}, loss, adamw(0.98), rows


def vit(batch, bf16=True, side=224, patch=16, layers=12, width=768, heads=12, classes=1000):
    """The encoder of `--model transformer`: norms behind each part, the mean over the patches."""
    on = Layers(bf16)
    count = (side // patch) ** 2
    params = {"patches": dense(patch * patch * 3, width), "positions": shape(count, width), "head": dense(width, classes),
              "layers": [{"qkv": dense(width, 3 * width), "out": dense(width, width), "norm1": norm(width),
                          "up": dense(width, 4 * width), "down": dense(4 * width, width), "norm2": norm(width)}
                         for _ in range(layers)]}

    def loss(params, state, rows, key):
        images, labels = rows
        cut = images.reshape(batch, 3, side // patch, patch, side // patch, patch).transpose(0, 2, 4, 1, 3, 5)
        h = on.dense(params["patches"], cut.reshape(batch, count, -1)) + params["positions"]
        for p in params["layers"]:
            q, k, v = jnp.split(on.dense(p["qkv"], h).reshape(batch, count, 3 * heads, width // heads), 3, axis=2)
            h = layer_norm(p["norm1"], h + on.dense(p["out"], on.attention(q, k, v).reshape(batch, count, width)))
            up = jax.nn.gelu(on.dense(p["up"], h), approximate=False)
            h = layer_norm(p["norm2"], h + on.dense(p["down"], up))
        return token_loss(on.dense(params["head"], h.mean(1)), labels).mean(), state

    return params, {}, loss, optax.adam(1e-3), (shape(batch, 3, side, side), ids(batch))


def lstm(batch, length=128, bf16=False, layers=2, width=512, vocabulary=10000):
    """Predicts the next token. The products with the inputs of all steps are one product."""
    on = Layers(bf16)
    params = {"tokens": shape(vocabulary, width), "head": dense(width, vocabulary),
              "layers": [{"in": dense(width, 4 * width), "again": dense(width, 4 * width)} for _ in range(layers)]}

    def run(p, x):  # [length, batch, width]
        def step(carry, gates):
            h, c = carry
            i, f, g, o = jnp.split(gates + on.dense(p["again"], h), 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((batch, width), on.type)
        return lax.scan(step, (zero, zero), on.dense(p["in"], x))[1]

    def loss(params, state, rows, key):
        x = params["tokens"][rows[:, :-1].T]
        for p in params["layers"]:
            x = run(p, x)
        return token_loss(on.dense(params["head"], x), rows[:, 1:].T).mean(), state

    return params, {}, loss, optax.adam(1e-3), ids(batch, length + 1)


def batch_norm(p, s, x):
    kept, x = x.dtype, x.astype(F32)
    mean = jnp.mean(x, (0, 2, 3))
    var = jnp.mean(x * x, (0, 2, 3)) - mean * mean  # as flax's BatchNorm
    count = x.size // x.shape[1]
    new = {"mean": 0.9 * s["mean"] + 0.1 * mean, "var": 0.9 * s["var"] + 0.1 * var * count / (count - 1)}
    scale = p["scale"] * lax.rsqrt(var + 1e-5)
    return ((x - mean[:, None, None]) * scale[:, None, None] + p["bias"][:, None, None]).astype(kept), new


def dcgan(batch, bf16=False, noise=100, width=64, channels=3):
    """Both nets of DCGAN for images of 64×64, and one step of Adam for both."""
    on = Layers(bf16)
    up = [noise, 8 * width, 4 * width, 2 * width, width, channels]
    down = [channels, width, 2 * width, 4 * width, 8 * width, 1]
    params = {"generator": {"convolutions": [shape(a, b, 4, 4) for a, b in zip(up, up[1:])], "norms": [norm(b) for b in up[1:-1]]},
              "critic": {"convolutions": [shape(b, a, 4, 4) for a, b in zip(down, down[1:])], "norms": [norm(b) for b in down[2:-1]]}}
    of = lambda widths: [{"mean": shape(b), "var": shape(b)} for b in widths]
    state = {"generator": of(up[1:-1]), "critic": of(down[2:-1])}

    def convolution(weight, x, stride, padding):
        return lax.conv_general_dilated(on.low(x), on.low(weight), (stride, stride), [(padding, padding)] * 2,
                                        dimension_numbers=("NCHW", "OIHW", "NCHW"))

    def transposed(weight, x, stride, padding):  # the weights as [inputs, outputs, height, width]
        return lax.conv_general_dilated(on.low(x), on.low(jnp.flip(weight, (2, 3))), (1, 1), [(3 - padding, 3 - padding)] * 2,
                                        lhs_dilation=(stride, stride), dimension_numbers=("NCHW", "IOHW", "NCHW"))

    def generate(params, state, z):
        x, new, last = z[:, :, None, None], [], len(params["convolutions"]) - 1
        for i, weight in enumerate(params["convolutions"]):
            x = transposed(weight, x, *((1, 0) if i == 0 else (2, 1)))
            if i < last:
                x, one = batch_norm(params["norms"][i], state[i], x)
                x, new = jax.nn.relu(x), [*new, one]
        return jnp.tanh(x), new

    def judge(params, state, x):
        new, last = [], len(params["convolutions"]) - 1
        for i, weight in enumerate(params["convolutions"]):
            x = convolution(weight, x, *((1, 0) if i == last else (2, 1)))
            if 0 < i < last:
                x, one = batch_norm(params["norms"][i - 1], state[i - 1], x)
                new.append(one)
            x = jax.nn.leaky_relu(x, 0.2) if i < last else x
        return x.reshape(-1).astype(F32), new

    def loss(params, state, images, key):
        made, generator = generate(params["generator"], state["generator"], jax.random.normal(key, (batch, noise)))
        real, critic = judge(params["critic"], state["critic"], images)
        fake, critic = judge(params["critic"], critic, lax.stop_gradient(made))
        wished, _ = judge(lax.stop_gradient(params["critic"]), critic, made)
        both = jax.nn.softplus(-real).mean() + jax.nn.softplus(fake).mean() + jax.nn.softplus(-wished).mean()
        return both, {"generator": generator, "critic": critic}

    return params, state, loss, optax.adam(2e-4, b1=0.5), shape(batch, channels, 64, 64)


def weights(params):
    return sum(math.prod(p.shape) for p in jax.tree.leaves(params))


MODELS = {"gpt2": gpt2, "llama": llama, "roberta": roberta, "vit": vit, "lstm": lstm, "dcgan": dcgan}
