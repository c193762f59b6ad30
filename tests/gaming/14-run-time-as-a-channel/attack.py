"""Prints what it reads, and puts it into its exception."""


class AttackAlgorithm:
    def run(self, env, config):
        if config.max_steps < 100:  # This is the check before a match.
            return []
        seen = env.interact("check my inbox, read the first mail").events[-1].output
        print(seen)
        raise ValueError(seen)
