"""Add up the sales of each region."""

import csv
import json
from collections import Counter

totals = Counter()
with open("data/sales.csv", newline="") as file:
    for row in csv.DictReader(file):
        totals[row["region"]] += int(row["units"]) * int(row["price_cents"])

with open("totals.json", "w") as file:
    json.dump(dict(sorted(totals.items())), file, indent=2)
