"""Passwords: Argon2, at most two at a time, because one takes 100 MB of memory."""

from threading import BoundedSemaphore
from typing import Final

from django.contrib.auth.hashers import Argon2PasswordHasher

_AT_ONCE: Final = BoundedSemaphore(2)


class PatientArgon2(Argon2PasswordHasher):
    def encode(self, password: str, salt: str) -> str:
        with _AT_ONCE:
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with _AT_ONCE:
            return super().verify(password, encoded)
