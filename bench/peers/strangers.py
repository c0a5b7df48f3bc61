"""Models that Sinter's benchmark does not contain, for `compare`: Sinter runs them as files of torch.export.

`timm/NAME` is a model of timm, `torchvision/NAME` one of torchvision, `transformers/NAME` one of transformers (the part
that gives hidden states); the others are written here as people write them. Weights are random.
"""

import torch
from torch import nn
from torch.nn import functional as F


class ResidualBlock(nn.Module):
    """Of a diffusion model's U-Net: group norm, SiLU, convolution, twice, with the time's embedding between."""

    def __init__(self, channels, out, time):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(32, channels), nn.GroupNorm(32, out)
        self.conv1, self.conv2 = nn.Conv2d(channels, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.skip = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x, time):
        hidden = self.conv1(F.silu(self.norm1(x)))
        hidden = hidden + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(hidden)))


class SpatialAttention(nn.Module):
    def __init__(self, channels, heads=8):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(32, channels)
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        batch, channels, height, width = x.shape
        qkv = self.qkv(self.norm(x)).reshape(batch, 3, self.heads, channels // self.heads, height * width)
        query, key, value = qkv.transpose(-1, -2).unbind(1)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return x + self.out(mixed.transpose(-1, -2).reshape(x.shape))


class UNet(nn.Module):
    def __init__(self, width=128, time=512):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        widths = [width, 2 * width, 4 * width]
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        at = width
        for level, out in enumerate(widths):
            parts = [ResidualBlock(at, out, time), ResidualBlock(out, out, time)]
            if level > 0:
                parts.append(SpatialAttention(out))
            parts.append(nn.Conv2d(out, out, 3, stride=2, padding=1))
            self.down.append(nn.ModuleList(parts))
            at = out
        self.middle = nn.ModuleList([ResidualBlock(at, at, time), SpatialAttention(at), ResidualBlock(at, at, time)])
        for out in reversed(widths):
            parts = [nn.Conv2d(at, out, 3, padding=1), ResidualBlock(2 * out, out, time), ResidualBlock(out, out, time)]
            self.up.append(nn.ModuleList(parts))
            at = out
        self.norm, self.leave = nn.GroupNorm(32, at), nn.Conv2d(at, 4, 3, padding=1)
        self.register_buffer("scales", torch.exp(torch.linspace(0, -9, width // 2)))

    def forward(self, x, time):
        angles = time[:, None] * self.scales
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        x = self.enter(x)
        kept = []
        for *parts, shrink in self.down:
            for part in parts:
                x = part(x, time) if isinstance(part, ResidualBlock) else part(x)
            kept.append(x)
            x = shrink(x)
        for part in self.middle:
            x = part(x, time) if isinstance(part, ResidualBlock) else part(x)
        for grow, first, second in self.up:
            x = grow(F.interpolate(x, scale_factor=2.0, mode="nearest"))
            x = second(first(torch.cat([x, kept.pop()], 1), time), time)
        return self.leave(F.silu(self.norm(x)))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def rotated(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class LlamaBlock(nn.Module):
    """Grouped queries, rotary embeddings, a gated feed-forward layer."""

    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.rise = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.fall = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin):
        batch, tokens, width = x.shape
        normed = self.norm1(x)
        query = rotated(self.query(normed).view(batch, tokens, self.heads, self.size).transpose(1, 2), cos, sin)
        key = rotated(self.key(normed).view(batch, tokens, self.groups, self.size).transpose(1, 2), cos, sin)
        value = self.value(normed).view(batch, tokens, self.groups, self.size).transpose(1, 2)
        repeats = self.heads // self.groups
        key, value = (t.repeat_interleave(repeats, 1) for t in (key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        normed = self.norm2(x)
        return x + self.fall(F.silu(self.gate(normed)) * self.rise(normed))


class Llama(nn.Module):
    def __init__(self, depth=8, width=1024, heads=16, groups=4, hidden=2816, vocabulary=32000, context=2048):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList([LlamaBlock(width, heads, groups, hidden) for _ in range(depth)])
        self.norm, self.head = RmsNorm(width), nn.Linear(width, vocabulary, bias=False)
        size = width // heads
        scales = 10000.0 ** (-torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(context), scales).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens):
        x = self.embed(tokens)
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


class BertLayer(nn.Module):
    """Attention written out, with a mask; norms behind the sums."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.rise, self.fall = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x, mask):
        split = lambda t: t.view(*t.shape[:2], self.heads, -1).transpose(1, 2)
        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5 + mask
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(x.shape)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.fall(F.gelu(self.rise(x))))


class Bert(nn.Module):
    def __init__(self, depth=12, width=768, heads=12, hidden=3072, vocabulary=30522):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList([BertLayer(width, heads, hidden) for _ in range(depth)])
        self.pool = nn.Linear(width, width)

    def forward(self, tokens):
        mask = torch.where(tokens == 0, -1e4, 0.0).to(self.norm.weight.dtype)[:, None, None, :]
        x = self.norm(self.words(tokens) + self.places.weight[: tokens.shape[1]])
        for layer in self.layers:
            x = layer(x, mask)
        return self.pool(x[:, 0]).tanh()


class CausalBlock(nn.Module):
    """What lies ahead is hidden by filling the scores with -inf."""

    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rise, self.fall = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("ahead", torch.ones(context, context).triu(1).bool())

    def forward(self, x):
        tokens = x.shape[1]
        split = lambda t: t.view(*t.shape[:2], self.heads, -1).transpose(1, 2)
        query, key, value = map(split, self.qkv(self.norm1(x)).chunk(3, -1))
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        scores = scores.masked_fill(self.ahead[:tokens, :tokens], float("-inf"))
        x = x + self.out((scores.softmax(-1) @ value).transpose(1, 2).reshape(x.shape))
        return x + self.fall(F.gelu(self.rise(self.norm2(x))))


class CausalGpt(nn.Module):
    def __init__(self, depth=8, width=768, heads=12, vocabulary=32000, context=1024):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([CausalBlock(width, heads, context) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


OWN = {
    "strangers/gpt": (CausalGpt, ["i64[1,512]<32000"]),
    "strangers/unet": (UNet, ["f32[1,4,64,64]", "f32[1]"]),
    "strangers/llama": (Llama, ["i64[1,256]<32000"]),
    "strangers/bert": (Bert, ["i64[1,128]<30522"]),
}


# Models of transformers whose default configuration is that of billions of parameters.
SMALL_DECODER = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8, "num_attention_heads": 16}
CONFIGURATIONS = {
    "llama": SMALL_DECODER | {"num_key_value_heads": 4},
    "mistral": SMALL_DECODER | {"num_key_value_heads": 4},
    "qwen3": SMALL_DECODER | {"num_key_value_heads": 8},
    "gemma2": SMALL_DECODER | {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 128},
    "gpt_neox": SMALL_DECODER,
    "phi": SMALL_DECODER,
    "bloom": {"hidden_size": 1024, "n_layer": 8, "n_head": 16},
    "mamba": {"hidden_size": 512, "num_hidden_layers": 4},
}
ENCODERS = {"t5": "T5EncoderModel", "clip_vision_model": "CLIPVisionModel"}


class HiddenStates(nn.Module):
    """A model of transformers as a function of tensors."""

    def __init__(self, name):
        super().__init__()
        import transformers

        config = configuration(name)
        maker = getattr(transformers, ENCODERS[name]) if name in ENCODERS else transformers.AutoModel.from_config
        self.model = maker(config)
        self.options = {"use_cache": False} if getattr(config, "use_cache", False) else {}

    def forward(self, x):
        return self.model(x, **self.options)[0]


class Pictures(nn.Module):
    """A model of torchvision as a function of tensors; one that marks every pixel gives a dict."""

    def __init__(self, name):
        super().__init__()
        import torchvision

        keywords = {"weights": None, "weights_backbone": None} if is_of("segmentation", name) else {"weights": None}
        self.model = torchvision.models.get_model(name, **keywords)

    def forward(self, x):
        found = self.model(x)
        return found["out"] if isinstance(found, dict) else found


def is_of(part, name):
    import torchvision

    return name in torchvision.models.list_models(getattr(torchvision.models, part))


def configuration(name):
    from transformers import AutoConfig

    return AutoConfig.for_model(name, **CONFIGURATIONS.get(name, {}))


def input_of_transformer(name):
    config = configuration(name)
    if name in ("wav2vec2", "hubert"):
        return "f32[1,16000]"
    if hasattr(config, "num_channels"):
        size = getattr(config, "image_size", 224)
        return "f32[1,3,%d,%d]" % (size, size)
    return "i64[1,128]<%d" % config.vocab_size


def is_stranger(name):
    return "/" in name


def make(name):
    if name in OWN:
        return OWN[name][0]()
    if name.startswith("transformers/"):
        return HiddenStates(name.removeprefix("transformers/"))
    if name.startswith("torchvision/"):
        return Pictures(name.removeprefix("torchvision/"))
    import timm

    return timm.create_model(name.removeprefix("timm/"))


def inputs_of(name):
    if name in OWN:
        return OWN[name][1]
    if name.startswith("transformers/"):
        return [input_of_transformer(name.removeprefix("transformers/"))]
    if name.startswith("torchvision/"):
        return ["f32[1,3,16,112,112]" if is_of("video", name.removeprefix("torchvision/")) else "f32[1,3,224,224]"]
    import timm

    size = timm.get_pretrained_cfg(name.removeprefix("timm/")).input_size
    return ["f32[1,%d,%d,%d]" % tuple(size)]
