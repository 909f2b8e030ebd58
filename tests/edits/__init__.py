"""Small edits, each with what it can change: does a code fingerprint change exactly when it must?"""
