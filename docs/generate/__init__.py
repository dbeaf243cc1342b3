"""Makes the pages that say what was measured or recorded. A test fails when one of them is stale."""
