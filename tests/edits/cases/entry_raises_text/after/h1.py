WHY = 'two'
