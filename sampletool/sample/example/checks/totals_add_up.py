"""Check that the totals of all regions are the sum of all rows."""

import csv
import json

with open("data/sales.csv", newline="") as file:
    expected = sum(int(row["units"]) * int(row["price_cents"]) for row in csv.DictReader(file))
with open("out/totals/totals.json") as file:
    found = sum(json.load(file).values())

if found != expected:
    raise SystemExit(f"the totals add up to {found}, the rows to {expected}")
