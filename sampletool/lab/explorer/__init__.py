"""The lab in a browser: every schedule, recorded, to be walked by hand."""
