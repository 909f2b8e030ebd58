"""What there is: files, the store, the manifest. Knows no rule and no process but the one that copies a snapshot."""
