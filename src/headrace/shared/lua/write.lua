-- Write what an incarnation holds of some places or of a purse, as it is, whatever stood there.
-- KEYS: headrace:of:INCARNATION, places or purse.
-- ARGV: incarnation, session, how much; for a purse, what the incarnation settled in all.
-- Returns nothing.

local incarnation, amount = ARGV[1], ARGV[3]
if redis.call('HGET', 'headrace:session', incarnation) ~= ARGV[2] then return end
local own = 'h:' .. incarnation
local before = redis.call('HGET', KEYS[2], own) or '0'
if amount ~= '0' then
  -- Added before the old is taken away: a sum of 0 would be forgotten.
  hold(KEYS[2], own, amount, '')
  redis.call('SADD', KEYS[1], KEYS[2])
end
if before ~= '0' then release(KEYS[2], own, before) end
if amount == '0' then redis.call('SREM', KEYS[1], KEYS[2]) end
if ARGV[4] then grow(KEYS[2], incarnation, ARGV[4]) end
