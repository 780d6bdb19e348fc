"""An Airflow DAG that brings the lake up to date each night, then shows what was refused."""

from datetime import datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

COMMAND = """
delta-migrate -c /srv/delta-migrate/delta-migrate.toml apply \
    --max-changed 500 --format json --report /tmp/delta-migrate-{{ ds }}.json > /dev/null
code=$?
python3 - <<'PYTHON'
import json

report = json.load(open("/tmp/delta-migrate-{{ ds }}.json"))
for table in report["tables"]:
    if "error" in table:
        error = table["error"]
        print(f"{table['outcome']:8} {table['uri']}: {error['code']}: {error['message']}")
print(report["summary"])
PYTHON
exit $code
"""

with DAG("delta_migrate", schedule="15 3 * * *", start_date=datetime(2026, 1, 1), catchup=False):
    BashOperator(task_id="apply", bash_command=COMMAND)
