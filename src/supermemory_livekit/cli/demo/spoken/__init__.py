"""A spoken call without a cloud: real voice detection, recognition and synthesis around a real `AgentSession`."""
