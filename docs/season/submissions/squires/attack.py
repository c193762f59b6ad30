from tiltyard.attacks import GoExplore


class AttackAlgorithm(GoExplore):
    """A rung of the attack ladder, as it is."""
