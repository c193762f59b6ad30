from tiltyard.attacks import SystematicExploration


class AttackAlgorithm(SystematicExploration):
    """A rung of the attack ladder, as it is."""
