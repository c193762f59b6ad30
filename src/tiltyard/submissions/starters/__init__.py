"""The starter files: an attack and a guardrail that `tiltyard init` copies.

They are submissions and use only the public contract. No module of Tiltyard imports them.
"""
