-- Live on, and give back what the dead held: some of it at a time.
-- ARGV: incarnation, session, time, milliseconds that it lives without the next beat, keys to look at at once.
-- Returns 1; 0 if this session has ended.

local now = now_ms(ARGV[3])
local counts = redis.call('HGET', 'headrace:session', ARGV[1]) == ARGV[2]
if counts then redis.call('ZADD', 'headrace:live', now + ARGV[4], ARGV[1]) end
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', 'headrace:live', '-inf', '(' .. now, 'LIMIT', 0, 4)) do
  if not clear(dead, ARGV[5]) then break end
end
return counts and 1 or 0
