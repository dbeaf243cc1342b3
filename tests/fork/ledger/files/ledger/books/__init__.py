"""Keep books: bookings, each with a reference of its own, and the balance of each account."""
