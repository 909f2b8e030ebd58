MODE = 'slow'
