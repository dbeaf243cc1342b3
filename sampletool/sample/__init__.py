"""What this sample happens to do: targets, checks, column profiles. Replace it with your own."""

TITLE = "Build, test and process"
