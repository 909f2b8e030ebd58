"""What is done: workers, services, requests, checks. Knows nothing of what is stale."""
