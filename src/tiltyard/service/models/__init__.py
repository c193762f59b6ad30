"""The tables of the server."""

from tiltyard.service.models.accounts import Account, ApiToken
from tiltyard.service.models.competitions import (
    Announcement,
    Competition,
    Delivery,
    Invitation,
    Membership,
    Team,
    Webhook,
)
from tiltyard.service.models.judgings import Judging, StoredReport, Submission, Upload, Worker
from tiltyard.service.models.organizing import Rejudging, Sketch
from tiltyard.service.models.records import AuditEntry, Event

__all__ = [
    "Account",
    "Announcement",
    "ApiToken",
    "AuditEntry",
    "Competition",
    "Delivery",
    "Event",
    "Invitation",
    "Judging",
    "Membership",
    "Rejudging",
    "Sketch",
    "StoredReport",
    "Submission",
    "Team",
    "Upload",
    "Webhook",
    "Worker",
]
