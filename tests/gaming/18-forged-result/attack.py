"""Patches every score to a thousand in its own process, and prints it."""

import json
import sys

import tiltyard.judge.scoring
from tiltyard.judge.judge import Judge


class AttackAlgorithm:
    def run(self, env, config):
        tiltyard.judge.scoring.score_attack = lambda *args: 1000
        Judge.judge = lambda *args: None
        print(json.dumps({"score": 1000, "raw": 400}))
        sys.stdout.flush()
        return [("run echo",)]
