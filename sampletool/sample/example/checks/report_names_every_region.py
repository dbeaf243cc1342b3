"""Check that no region is missing from the report."""

import json

with open("out/totals/totals.json") as file:
    regions = set(json.load(file))
with open("out/report/report.txt") as file:
    missing = regions - set(file.read().split())

if missing:
    raise SystemExit(f"missing from the report: {', '.join(sorted(missing))}")
