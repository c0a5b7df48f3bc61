"""The benchmark's models as Python programs: torchvision's, or small twins with the shapes and names of bench/models.

`build(name, settings)` gives a module in eval mode, float32, on the CPU. Settings are those of `sinter models`.
"""

import math

import strangers
import torch
import torchvision
from torch import nn
from torch.nn import functional as F


class Gelu(nn.Module):
    def forward(self, x):
        return x * 0.5 * (1 + torch.erf(x / 1.41421))


class GeluMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(768, 3072), nn.Linear(3072, 768)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Lstm(nn.Module):
    """bench/models/lstm.cpp."""

    def __init__(self, layers=2):
        super().__init__()
        self.lstm = nn.LSTM(256, 512, int(layers), batch_first=True)
        self.head = nn.Linear(512, 256)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


class GptAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, past):
        batch, tokens, width = x.shape
        split = self.c_attn(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = split.unbind()
        if past is not None:
            key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        return self.c_proj(mixed.transpose(1, 2).reshape(x.shape)), (key, value)


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = GptAttention(width, heads)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x, past):
        attended, cache = self.attn(self.ln_1(x), past)
        x = x + attended
        hidden = F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.mlp["c_proj"](hidden), cache


class Gpt(nn.Module):
    """bench/models/gpt.cpp: a prompt at once, then `steps` single tokens through the cache of keys and values."""

    def __init__(self, depth=6, steps=4, width=384, heads=6, vocabulary=8192, context=256):
        super().__init__()
        self.steps = int(steps)
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(vocabulary, width),
                "wpe": nn.Embedding(context, width),
                "h": nn.ModuleList([GptBlock(width, heads) for _ in range(int(depth))]),
                "ln_f": nn.LayerNorm(width),
            }
        )
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def step(self, tokens, start, caches):
        places = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        x = self.transformer["wte"](tokens) + self.transformer["wpe"](places)
        grown = []
        for block, past in zip(self.transformer["h"], caches):
            x, cache = block(x, past)
            grown.append(cache)
        return self.lm_head(self.transformer["ln_f"](x)), grown

    def forward(self, tokens):
        prompt = tokens.shape[1] - self.steps
        logits, caches = self.step(tokens[:, :prompt], 0, [None] * len(self.transformer["h"]))
        parts = [logits]
        for place in range(prompt, tokens.shape[1]):
            logits, caches = self.step(tokens[:, place : place + 1], place, caches)
            parts.append(logits)
        return torch.cat(parts, 1)


class Moe(nn.Module):
    """bench/models/moe.cpp: every token goes to its two best experts, each of which takes a bounded number of tokens."""

    def __init__(self, experts=8, width=512, hidden=2048):
        super().__init__()
        experts = int(experts)
        self.experts, self.chosen = experts, 2
        self.norm = nn.LayerNorm(width)
        self.router = nn.Linear(width, experts, bias=False)
        self.w1 = nn.Parameter(torch.empty(experts, width, hidden))
        self.w2 = nn.Parameter(torch.empty(experts, hidden, width))

    def forward(self, x):
        tokens = self.norm(x).flatten(0, 1)
        count = tokens.shape[0]
        capacity = math.ceil(1.25 * self.chosen * count / self.experts)
        weight, expert = self.router(tokens).softmax(-1).topk(self.chosen, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        # First choices before second ones; a token's place in the queue of the expert that it chose.
        wants = expert.t().flatten().unsqueeze(-1) == torch.arange(self.experts, device=x.device)
        place = ((wants.cumsum(0) - 1) * wants).sum(-1)
        seat = place.unsqueeze(-1) == torch.arange(capacity, device=x.device)
        dispatch = wants.unsqueeze(-1).logical_and(seat.unsqueeze(1)).view(self.chosen, count, self.experts * capacity)
        combine = (dispatch * weight.t().unsqueeze(-1)).sum(0)
        taken = dispatch.any(0).to(x.dtype).t() @ tokens
        hidden = F.gelu(torch.bmm(taken.view(self.experts, capacity, -1), self.w1))
        given = torch.bmm(hidden, self.w2).view(self.experts * capacity, -1)
        return x + (combine @ given).view_as(x)


def _vgg16(hidden=4096):
    model = torchvision.models.vgg16(init_weights=False)
    if hidden != 4096:
        hidden = int(hidden)
        for place, sizes in {0: (512 * 7 * 7, hidden), 3: (hidden, hidden), 6: (hidden, 1000)}.items():
            model.classifier[place] = nn.Linear(*sizes)
    return model


class PatchDropout(nn.Module):
    """Drops patches at random in training and keeps the class token, as timm's and bench/models/vit.cpp."""

    def __init__(self, part, indexing=False):
        super().__init__()
        self.part, self.indexing = part, indexing

    def forward(self, x):
        if not self.training or self.part == 0:
            return x
        patches = x.shape[1] - 1
        kept = max(1, int(patches * (1 - self.part)))
        order = torch.rand(x.shape[0], patches, dtype=x.dtype, device=x.device).argsort(1)
        return torch.cat([x[:, :1], self.taken(x[:, 1:], order[:, :kept])], 1)

    def taken(self, patches, order):
        if not self.indexing:
            return patches.gather(1, order.unsqueeze(-1).expand(-1, -1, patches.shape[2]))
        return patches[torch.arange(patches.shape[0], device=order.device).unsqueeze(1), order]


def _vit_b16(depth=12, image_size=224, patch_dropout=0, patch_indexing=0):
    model = torchvision.models.VisionTransformer(int(image_size), 16, int(depth), 12, 768, 3072)
    model.encoder.dropout = PatchDropout(patch_dropout, patch_indexing != 0)  # torchvision's drops nothing
    return model


def _swin(width, heads):
    def make(depth=6):
        depths = [2, 2, int(depth), 2]
        return torchvision.models.SwinTransformer([4, 4], width, depths, heads, [7, 7], stochastic_depth_prob=0.0)

    return make


def _swin_b(depth=18):
    return _swin(128, [4, 8, 16, 32])(depth)


def _convnext_l(depth=27, width=192):
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    widths = [int(width) * 2**i for i in range(4)] + [None]
    blocks = [3, 3, int(depth), 3]
    return ConvNeXt([CNBlockConfig(widths[i], widths[i + 1], blocks[i]) for i in range(4)])


# Each with its inputs, and for training its number of classes and the leading dims that labels share with the input.
MODELS = {
    "gelu": (Gelu, ["f32[4096,4096]"], None),
    "gelu_mlp": (GeluMlp, ["f32[128,768]"], (768, 1)),
    "resnet50": (torchvision.models.resnet50, ["f32[1,3,224,224]"], (1000, 1)),
    "vgg16": (_vgg16, ["f32[1,3,224,224]"], (1000, 1)),
    "vit_b16": (_vit_b16, ["f32[1,3,224,224]"], (1000, 1)),
    "swin_t": (_swin(96, [3, 6, 12, 24]), ["f32[1,3,224,224]"], (1000, 1)),
    "swin_b": (_swin_b, ["f32[1,3,224,224]"], (1000, 1)),
    "convnext_l": (_convnext_l, ["f32[1,3,224,224]"], (1000, 1)),
    "lstm": (Lstm, ["f32[1,64,256]"], (256, 2)),
    "gpt": (Gpt, ["i64[1,64]<8192"], (8192, 2)),
    "moe": (Moe, ["f32[1,256,512]"], (512, 2)),
}


@torch.no_grad()
def randomise(module):
    """The rule of randomise() in bench/models/settings.cpp: every parameter shows in the result."""
    for name, parameter in module.named_parameters():
        if parameter.dim() >= 2:
            parameter.normal_(0, math.sqrt(parameter.shape[0] / parameter.numel()))
        elif name.endswith("weight"):
            parameter.uniform_(0.5, 1)
        else:
            parameter.uniform_(-0.1, 0.1)


def build(name, settings=None):
    module = strangers.make(name) if strangers.is_stranger(name) else MODELS[name][0](**(settings or {}))
    randomise(module)
    return module.eval()


def inputs_of(name):
    return strangers.inputs_of(name) if strangers.is_stranger(name) else MODELS[name][1]
