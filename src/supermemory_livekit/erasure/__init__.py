"""Everything of one caller taken away, proved, and kept from coming back."""
