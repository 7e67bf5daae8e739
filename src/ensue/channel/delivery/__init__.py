"""From the look-up to one consumer: its queue, its overflow policy, its steps and its turns."""
