-- Begin a session: commands of earlier ones count no more, wherever they still are on their way.
-- ARGV: incarnation, session, time, milliseconds that it lives without a beat.
-- Returns the places and purses that the incarnation holds something of.

redis.call('ZADD', 'headrace:live', now_ms(ARGV[3]) + ARGV[4], ARGV[1])
redis.call('HSET', 'headrace:session', ARGV[1], ARGV[2])
return redis.call('SMEMBERS', 'headrace:of:' .. ARGV[1])
