"""Stage 3: where to?"""
