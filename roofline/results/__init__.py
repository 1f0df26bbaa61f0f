"""Records: what was analysed or measured, as versioned JSON that every renderer reads."""
