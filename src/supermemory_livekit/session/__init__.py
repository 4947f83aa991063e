"""What is tied to LiveKit's sessions, agents, participants and jobs."""
