"""A fork has no site of its own to look at."""

from sampletool.kit.project import ROOT

collect_ignore = [] if (ROOT / "docs" / "site").is_dir() else ["test_site.py"]
