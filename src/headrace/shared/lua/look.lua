-- How subjects stand; nothing is taken.
-- KEYS: as for a claim.
-- ARGV: time.
-- Returns {milliseconds, for each claim requests, newest second with any, tokens, newest second with any, places,
--          copy of the purse, used, held}.

local now = now_ms(ARGV[1])
local reply = {now}
for claim = 1, (#KEYS - 1) / 3 do
  local state = advance(KEYS[claim * 3 - 1], math.floor(now / 1000))
  local purse = redis.call('HMGET', KEYS[claim * 3 + 1], 'k', 'used', 'held')
  local places = tonumber(redis.call('HGET', KEYS[claim * 3], 'held') or 0)
  for _, one in ipairs({state[2], state[4], state[3], state[5], places, purse[1] or '', purse[2] or '0', purse[3] or '0'}) do
    reply[#reply + 1] = one
  end
end
return reply
