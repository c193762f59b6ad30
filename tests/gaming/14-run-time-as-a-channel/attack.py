"""Prints what it reads, and puts it into its exception."""


class AttackAlgorithm:
    def run(self, env, config):
        seen = env.interact("check my inbox, read the first mail").events[-1].output
        print(seen)
        raise ValueError(seen)
