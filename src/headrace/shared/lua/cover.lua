-- Take in what the ledger has of a purse; where it is absent it is made.
-- KEYS: purse.
-- ARGV: time, a name for the copy if it is made, when it may be forgotten (milliseconds; '' never), settled by journals
--       that are not named, what rating again has changed (may be negative); then incarnations with their parts.
-- Returns the copy's name, used and held.

local purse, settled = KEYS[1], ARGV[4]
redis.call('HSETNX', purse, 'k', ARGV[2])
if ARGV[3] ~= '' then redis.call('PEXPIREAT', purse, ARGV[3]) end
local named = {}
correct(purse, ARGV[5])
for at = 6, #ARGV, 2 do
  named[ARGV[at]] = true
  grow(purse, ARGV[at], ARGV[at + 1])
end

-- A dead incarnation that the ledger does not name is either among `settled` by now or not yet known to it. So the sum
-- counts from where it covers all of those.
local now = now_ms(ARGV[1])
local unnamed = {}
redis.call('HSET', purse, 'sum', redis.call('HGET', purse, 's') or '0')
local state = redis.call('HGETALL', purse)
for at = 1, #state, 2 do
  local incarnation = string.match(state[at], '^p:(.*)$')
  if incarnation and not named[incarnation] then
    local until_ms = redis.call('ZSCORE', 'headrace:live', incarnation)
    if not until_ms or tonumber(until_ms) < now then
      unnamed[#unnamed + 1] = state[at]
      redis.call('HINCRBY', purse, 'sum', state[at + 1])
    end
  end
end
local covered = redis.call('HGET', purse, 'sum')
redis.call('HDEL', purse, 'sum')
if not is_less(settled, covered) then
  add(purse, 'used', settled, '')
  add(purse, 'used', covered, '-')
  redis.call('HSET', purse, 's', settled)
  if #unnamed > 0 then redis.call('HDEL', purse, unpack(unnamed)) end
end
return redis.call('HMGET', purse, 'k', 'used', 'held')
