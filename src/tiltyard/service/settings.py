"""The settings of Django, from the variables of `environment`."""

import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tiltyard.service.environment import (
    DATABASE,
    DEFAULT_ORIGIN,
    ORIGIN,
    SECRET,
    database_settings,
)

_WEB: Final = Path(__file__).parent / "web"
_ORIGIN: Final = urlsplit(os.environ.get(ORIGIN, DEFAULT_ORIGIN))
_HTTPS: Final = _ORIGIN.scheme == "https"
_YEAR: Final = 31_536_000

DEBUG = False
SECRET_KEY = os.environ.get(SECRET, "")
ALLOWED_HOSTS = [_ORIGIN.hostname or "", *(() if _HTTPS else ("127.0.0.1", "localhost", "[::1]"))]
CSRF_TRUSTED_ORIGINS = [f"{_ORIGIN.scheme}://{_ORIGIN.netloc}"]
DATABASES: dict[str, dict[str, Any]] = {
    "default": database_settings(os.environ.get(DATABASE, "sqlite:///:memory:"))
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "axes",
    "tiltyard.service.apps.ServiceConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "tiltyard.service.web.urls"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [str(_WEB / "templates")],
        "APP_DIRS": False,
        "OPTIONS": {"environment": "tiltyard.service.web.environment.environment"},
    }
]

AUTH_USER_MODEL = "service.Account"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = ["tiltyard.service.hashing.PatientArgon2"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login"
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False

SESSION_COOKIE_AGE = 14 * 86_400
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _HTTPS
CSRF_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = _HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _HTTPS else None
SECURE_HSTS_SECONDS = _YEAR if _HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"

# The front counts the bytes of every request. Django keeps small bodies in memory only.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
DATA_UPLOAD_MAX_NUMBER_FIELDS = 100
DATA_UPLOAD_MAX_NUMBER_FILES = 1
FILE_UPLOAD_HANDLERS = ["tiltyard.service.web.uploads.BoundedUpload"]
FILE_UPLOAD_PERMISSIONS = 0o600

# Only for tests on one machine: lets webhooks reach loopback addresses, and without TLS.
WEBHOOKS_TO_LOOPBACK = os.environ.get("TILTYARD_WEBHOOKS_TO_LOOPBACK") == "1"

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
SILENCED_SYSTEM_CHECKS: list[str] = []
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "ERROR"},
        "axes": {"handlers": ["stderr"], "level": "ERROR"},
    },
}
