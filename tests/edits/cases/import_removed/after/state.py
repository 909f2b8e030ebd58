SEEN = []
