"""Writes the model files that tests/model_file reads, and what Python's own run of them gives.

    python tests/model_file/data/export.py [FOLDER]

NAME.pt2 or NAME.pt is a model; NAME.case.pt a dict: "args" (tuple), "kwargs" (dict), "result". Needs PyTorch 2.11.
samples/NAME.DTYPE.NUMBER.pt2 are from tests/conformance/export_samples.py.
"""

import pathlib
import sys
import warnings
from typing import Dict, Optional

import torch
from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)) + x)


class ConvNet(nn.Module):
    """Convolutions, batch norm, pooling and a linear layer under nested modules."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2)
        self.layers = nn.Sequential(Block(8), Block(8))
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


class Nested(nn.Module):
    """Containers in arguments and results, keyword arguments, buffers, lifted constants, tied weights."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(8, 8, bias=False)
        self.decode = nn.Linear(8, 8, bias=False)
        self.decode.weight = self.encode.weight
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 8))
        self.register_buffer("shift", torch.linspace(-1, 1, 8), persistent=False)
        self.constant = torch.arange(8.0)

    def forward(self, x, extra, *, factor=2.0, bias=None):
        y = self.decode(torch.tanh(self.encode(x))) * self.scale + self.shift + self.constant
        y = y * factor + extra["b"][0] - extra["a"]
        if bias is not None:
            y = y + bias
        picked = y[:, torch.tensor([0, 3])]
        return {"y": y, "parts": [picked, (y.sum(), 3)], "none": None}


class Sizes(nn.Module):
    """Arithmetic on a symbolic batch size."""

    def forward(self, x):
        n = x.shape[0]
        halves = x.reshape(n * 2, -1).relu()
        kept = halves[: n + n // 1] / n
        return kept.reshape(n, 2, 4), torch.split(x, [2, 6], 1)[1], x.new_full((n + 1, 3), 0.5)


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t.sin() + 1, lambda t: t.cos() - 1, (x,))


class Regions(nn.Module):
    """No-grad and autocast regions."""

    def forward(self, x):
        with torch.no_grad():
            y = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = torch.mm(y, y.t())
        return z.float() + y.sum()


class Counter(nn.Module):
    """A buffer that every call changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x * self.count


class Windows(nn.Module):
    """Sizes computed with, which a trace does with tensors and with constants of its own."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)

    def forward(self, x):
        height, width = x.shape[1] + 3 // 2, x.shape[2]
        padded = F.pad(x, (0, 0, 0, (4 - width % 4) % 4, 0, 1))
        windows = padded.view(-1, height // 2, 2, padded.shape[2] // 4, 4, 8).transpose(2, 3).reshape(-1, 8, 8)
        return self.project(windows).softmax(-1) * int(width**0.5)


class Special(nn.Module):
    """Results that are nan and infinite."""

    def forward(self, x):
        return torch.log(x), 1 / x, torch.polar(x.abs(), x) / 0


class Selected(nn.Module):
    """Sizes that depend on data, and arithmetic on them."""

    def forward(self, x):
        places = (x > 0).nonzero()
        count = places.shape[0]
        torch._check(count <= 32)
        picked = x[x > 0.5]
        return places.reshape(count * 2), torch.ones(count + 1).cumsum(0), picked * 2, torch.unique(x.sign())


class NoDouble(nn.Module):
    """An operator that does not know float64."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        y = torch.ops.aten.mkldnn_convolution(x, self.conv.weight, self.conv.bias, [0, 0], [1, 1], [1, 1], 1)
        return torch.tanh(y) * 2


class Mlp(nn.Module):
    """The shapes of the built-in `gelu_mlp`, all elements of a weight in one place."""

    def __init__(self, hidden=3072):
        super().__init__()
        self.fc1 = nn.Linear(768, hidden, device="meta")
        self.fc2 = nn.Linear(hidden, 768, device="meta")
        for layer in (self.fc1, self.fc2):
            for name, weight in list(layer.named_parameters()):
                setattr(layer, name, nn.Parameter(torch.full((1,), 0.01).expand(weight.shape)))


class Scripted(nn.Module):
    """Control flow that tracing would lose."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.GELU())

    def forward(self, x, times: int = 2, names: Optional[Dict[str, torch.Tensor]] = None):
        for _ in range(times):
            x = self.inner(x)
        if names is not None:
            x = x + names["bias"]
        return x, [x.sum(), x.mean()]


class NamesItsDtype(nn.Module):
    """Of halves: sums are wide, and the dtype of the weight is named where they become halves again."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        wide = x.float()
        return self.fc((wide * torch.rsqrt(wide.square().mean(-1, keepdim=True))).to(self.fc.weight.dtype)).float()


class HostMade(nn.Module):
    """Of a GPU: tensors that are made on the host and brought to the model's device. One is filled by parts before;
    one is written to on the host between two copies of it, and one on the device."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        device = self.fc.weight.device
        hidden = torch.ones(4, 8).cumsum(1).gt(6).to(device)
        counts = torch.arange(8.0).to(device)
        counts += x.sum()
        table = torch.zeros(4, 8)
        table[:, 2] = torch.arange(4.0)
        table[1:] += table[0] + 1
        early = torch.zeros(8)
        before = early.to(device, copy=True)
        early += torch.ones(8)
        after = early.to(device, copy=True)
        bias = table.to(device) + torch.arange(8.0).view(1, 8).to(device) + before + after
        return self.fc(x).masked_fill(hidden, 0.5) + bias, counts


def randomise(model):
    for name, tensor in list(model.named_parameters()) + list(model.named_buffers()):
        if name.endswith("running_var"):
            nn.init.uniform_(tensor, 0.5, 1.5)
        elif name.endswith("running_mean"):
            nn.init.uniform_(tensor, -0.5, 0.5)
    return model.eval()


def export_from_gpu(folder, name, model, args):
    """Where there is one; the file of a model without says nothing of what crosses devices."""
    if not torch.cuda.is_available():
        return print(f"{name}.pt2 is left as it is: no GPU")
    randomise(model).cuda()
    exported = torch.export.export(model, tuple(arg.cuda() for arg in args))
    torch.export.save(exported, folder / f"{name}.pt2")
    save_case(folder, name, model.cpu(), args)


def save_case(folder, name, model, args, kwargs=None):
    kwargs = kwargs or {}
    with torch.no_grad():
        result = model(*args, **kwargs)
    torch.save({"args": args, "kwargs": kwargs, "result": result}, folder / f"{name}.case.pt")


def export(folder, name, model, args, kwargs=None, **options):
    randomise(model)
    torch.export.save(torch.export.export(model, args, kwargs or {}, **options), folder / f"{name}.pt2")
    save_case(folder, name, model, args, kwargs)


def main(folder):
    torch.manual_seed(3)
    batch = torch.export.Dim("batch", min=2, max=64)
    image = torch.randn(2, 3, 17, 17)
    matrix = torch.randn(4, 8)
    export(folder, "convnet", ConvNet(), (image,))
    extra = {"a": torch.randn(8), "b": [torch.randn(4, 8)]}
    export(folder, "nested", Nested(), (matrix, extra), {"factor": 3.0, "bias": torch.randn(8)})
    export(folder, "sizes", Sizes(), (matrix,), dynamic_shapes=({0: batch},))
    export(folder, "branch", Branch(), (matrix,))
    export(folder, "regions", Regions(), (matrix,))
    export(folder, "counter", Counter(), (matrix,))
    export(folder, "names_its_dtype", NamesItsDtype().half(), (matrix.half(),))
    export_from_gpu(folder, "host_made", HostMade(), (matrix,))
    decomposed = torch.export.export(randomise(ConvNet()), (image,)).run_decompositions()
    torch.export.save(decomposed, folder / "decomposed.pt2")
    save_case(folder, "decomposed", decomposed.module(), (image,))

    # Samples: run eager and compiled and compared, without saved results.
    samples = folder / "samples"
    special = torch.tensor([-1.0, 0.0, 2.0, float("inf"), float("nan"), 1e-30])
    torch.export.save(torch.export.export(Special(), (special,), strict=False), samples / "special.pt2")
    torch.export.save(torch.export.export(Selected(), (matrix,), strict=False), samples / "selected.pt2")

    # A state dict that does not fit `gelu_mlp`.
    wrong = {"fc1.weight": torch.zeros(1).expand(8, 768), "fc1.bias": torch.zeros(1).expand(3072), "fc2.weight": torch.zeros(1).expand(768, 3072)}
    torch.save({**wrong, "fc3.weight": torch.zeros(1)}, folder / "wrong_state.pt")

    # State dicts as training code saves them: `gelu_mlp` fits the first and not the second.
    torch.save(Mlp().state_dict(), folder / "mlp_state.pt")
    torch.save(Mlp(hidden=8).state_dict(), folder / "narrow_state.pt")

    convnet = randomise(ConvNet())
    torch.save(convnet.state_dict(), folder / "state.pt")
    torch.jit.trace(convnet, image).save(folder / "traced.pt")
    save_case(folder, "traced", convnet, (image,))
    no_double = randomise(NoDouble().bfloat16())
    with torch.no_grad():
        torch.jit.trace(no_double, torch.randn(1, 3, 8, 8).bfloat16()).save(folder / "no_double.pt")
    windows, grid = randomise(Windows()), torch.randn(2, 5, 6, 8)
    torch.jit.trace(windows, grid).save(folder / "windows.pt")
    save_case(folder, "windows", windows, (grid,))
    scripted = torch.jit.script(randomise(Scripted()))
    scripted.save(folder / "scripted.pt")
    save_case(folder, "scripted", scripted, (matrix, 3, {"bias": torch.randn(8)}))
    frozen = torch.jit.freeze(torch.jit.script(randomise(ConvNet())))
    frozen.save(folder / "frozen.pt")
    save_case(folder, "frozen", frozen, (image,))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
