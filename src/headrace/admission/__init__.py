"""Stage 2: may this exchange run?"""
