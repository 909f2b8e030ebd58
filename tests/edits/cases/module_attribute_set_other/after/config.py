MODE = 'slow'
LEVEL = 1
