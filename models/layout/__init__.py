"""Where switches stand, and what cables, money and power that takes."""
