"""Writes one case of `compare` as a file of torch.export: python export_stranger.py CASE.json FILE.pt2"""

import json
import sys
import warnings

import torch

import measure

warnings.simplefilter("ignore")


@torch.no_grad()
def main(case, path):
    subject = measure.Subject(case)
    inputs = tuple(measure.draw(spec, case["device"]) for spec in subject.specs)
    torch.export.save(torch.export.export(subject.module, inputs), path)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
