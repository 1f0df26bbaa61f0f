"""Workloads: a descriptor file, validated, and the tree of ops that it stands for."""

from roofline.workload.descriptor import Workload, from_document, load

__all__ = ["Workload", "from_document", "load"]
