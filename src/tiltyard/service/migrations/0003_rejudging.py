"""Tables for rejudgings that are not published, and for marks of clones."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("service", "0002_append_only"),
    ]

    operations = [
        migrations.CreateModel(
            name="Sketch",
            fields=[
                (
                    "submission",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="sketch",
                        serialize=False,
                        to="service.submission",
                    ),
                ),
                ("values", models.JSONField()),
            ],
        ),
        migrations.CreateModel(
            name="Rejudging",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("engine", models.CharField(max_length=40)),
                ("ruleset_text", models.TextField()),
                ("ruleset", models.CharField(max_length=120)),
                ("ruleset_digest", models.CharField(max_length=64)),
                ("budget", models.CharField(max_length=16)),
                ("before", models.JSONField(default=dict)),
                ("published_at", models.DateTimeField(null=True)),
                ("dropped_at", models.DateTimeField(null=True)),
                (
                    "competition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rejudgings",
                        to="service.competition",
                    ),
                ),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("dropped_at", None), ("published_at", None)),
                        fields=("competition",),
                        name="one_open_rejudging",
                    )
                ],
            },
        ),
    ]
