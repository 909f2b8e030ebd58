import h1
