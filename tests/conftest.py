"""Settings for all property tests: no test may depend on how fast the machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile("tiltyard", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tiltyard")
