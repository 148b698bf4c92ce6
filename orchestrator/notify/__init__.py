"""What the character says by itself: reminders and other proactive events, and when there is room for them."""
