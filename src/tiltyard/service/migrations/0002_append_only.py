"""Let the database refuse to change or delete what is only ever appended."""

from typing import Any, Final

from django.db import migrations

TABLES: Final = ("service_event", "service_auditentry", "service_upload", "service_storedreport")
_MESSAGE: Final = "rows of this table are never changed or deleted"


def add_triggers(_: Any, editor: Any) -> None:
    if editor.connection.vendor == "postgresql":
        editor.execute(
            "CREATE FUNCTION tiltyard_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '%: {_MESSAGE}', TG_TABLE_NAME; END $$",
            params=None,  # The per cent sign is not a parameter.
        )
    for table in TABLES:
        if editor.connection.vendor == "postgresql":
            editor.execute(
                f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION tiltyard_append_only()"
            )
            continue
        for change in ("UPDATE", "DELETE"):
            editor.execute(
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table}: {_MESSAGE}'); END"
            )


def remove_triggers(_: Any, editor: Any) -> None:
    for table in TABLES:
        if editor.connection.vendor == "postgresql":
            editor.execute(f"DROP TRIGGER append_only ON {table}")
            continue
        for change in ("update", "delete"):
            editor.execute(f"DROP TRIGGER {table}_no_{change}")
    if editor.connection.vendor == "postgresql":
        editor.execute("DROP FUNCTION tiltyard_append_only()")


class Migration(migrations.Migration):
    dependencies = (("service", "0001_initial"),)
    operations = (migrations.RunPython(add_triggers, remove_triggers),)
