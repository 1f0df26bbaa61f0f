"""Workloads: a descriptor file, validated, and the tree of ops that it stands for."""

from roofline.workload.descriptor import OpRun, Workload, from_document, load

__all__ = ["OpRun", "Workload", "from_document", "load"]
