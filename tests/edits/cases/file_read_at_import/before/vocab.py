from pathlib import Path
WORDS = Path(__file__).with_name("words.txt").read_text().split()
