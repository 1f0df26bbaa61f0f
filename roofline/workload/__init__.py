"""Workloads: a descriptor file, validated, and the tree of ops that it stands for."""

from roofline.workload.descriptor import Workload, from_document, load
from roofline.workload.runs import DecoderRun, DiffusionRun, OpRun
from roofline.workload.schema import json_schema

__all__ = ["DecoderRun", "DiffusionRun", "OpRun", "Workload", "from_document", "json_schema", "load"]
