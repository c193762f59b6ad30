from tiltyard.attacks import EnhancedGoExplore


class AttackAlgorithm(EnhancedGoExplore):
    """A rung of the attack ladder, as it is."""
