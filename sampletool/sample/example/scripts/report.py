"""Write the totals as a table."""

import json

with open("out/totals/totals.json") as file:
    totals = json.load(file)

with open("report.txt", "w") as file:
    for region, cents in totals.items():
        file.write(f"{region:<8} {cents / 100:>10.2f}\n")
