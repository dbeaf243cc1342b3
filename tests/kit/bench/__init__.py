"""Speed, compared within one run: machines are noisy, ratios less so."""
