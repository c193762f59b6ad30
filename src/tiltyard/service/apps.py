"""The server as an application of Django."""

from django.apps import AppConfig


class ServiceConfig(AppConfig):
    name = "tiltyard.service"
    label = "service"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Tiltyard"
