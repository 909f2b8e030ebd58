WHY = 'one'
