-- What all scripts know. Amounts are decimal strings of at most 19 digits: a Lua number holds only 15 of them exactly, so
-- they are compared as strings and added by HINCRBY.
--
-- headrace:live            zset  incarnation -> when it counts as dead, milliseconds
-- headrace:session         hash  incarnation -> the only session whose commands count
-- headrace:of:INCARNATION  set   the places and purses that it holds something of
-- headrace:rates:SUBJECT   hash  t newest second; r k sums; rN kN buckets, N = second % 60; q l newest with any
-- headrace:places:SUBJECT  hash  held sum; h:INCARNATION
-- headrace:purse:PURSE     hash  k copy; s settled; p:INCARNATION parts; h:INCARNATION holds; held sum of the holds;
--                                used sum of everything

local STALE = 6

local function now_ms(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function is_less(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
end

local function is_purse(key)
  return string.sub(key, 1, 15) == 'headrace:purse:'
end

-- Add an amount, or with '-' as its sign take it away: -0 is no number to HINCRBY.
local function add(key, field, amount, sign)
  if amount == '0' then return end
  redis.call('HINCRBY', key, field, sign .. amount)
end

-- The same with what an incarnation holds of a key, and its sums.
local function hold(key, field, amount, sign)
  add(key, field, amount, sign)
  add(key, 'held', amount, sign)
  if is_purse(key) then add(key, 'used', amount, sign) end
end

-- Take an amount away again: never more than is there. Returns whether the incarnation holds nothing any more.
local function release(key, field, amount)
  local there = redis.call('HGET', key, field)
  if not there then return true end
  local all = not is_less(amount, there)
  if all then amount = there end
  hold(key, field, amount, '-')
  if all then redis.call('HDEL', key, field) end
  if not is_purse(key) and redis.call('HGET', key, 'held') == '0' then redis.call('DEL', key) end
  return all
end

-- What an incarnation settled: it only grows.
local function grow(key, incarnation, part)
  local field = 'p:' .. incarnation
  local before = redis.call('HGET', key, field) or '0'
  if is_less(before, part) then
    add(key, 'used', part, '')
    add(key, 'used', before, '-')
    redis.call('HSET', key, field, part)
  end
end

-- Give back everything of an incarnation, `most` keys of it. Returns whether that was all.
local function clear(incarnation, most)
  local mine = 'headrace:of:' .. incarnation
  for _, key in ipairs(redis.call('SRANDMEMBER', mine, most)) do
    local field = 'h:' .. incarnation
    release(key, field, redis.call('HGET', key, field) or '0')
    redis.call('SREM', mine, key)
  end
  if redis.call('EXISTS', mine) == 1 then return false end
  redis.call('ZREM', 'headrace:live', incarnation)
  redis.call('HDEL', 'headrace:session', incarnation)
  return true
end

-- Let what is older than a minute leave. Returns the newest second, both sums, and the newest seconds with any.
local function advance(key, second)
  local state = redis.call('HMGET', key, 't', 'r', 'k', 'q', 'l')
  local newest = tonumber(state[1])
  if not newest then return second, 0, 0, 0, 0 end
  local requests, tokens = tonumber(state[2]), tonumber(state[3])
  local asked, used = tonumber(state[4]), tonumber(state[5])
  if newest >= second then
    -- The server's clock went back. Within a minute it is waited for.
    if newest - second < 60 then return newest, requests, tokens, asked, used end
    redis.call('DEL', key)
    return second, 0, 0, 0, 0
  end
  if second - newest >= 60 then
    redis.call('DEL', key)
    return second, 0, 0, 0, 0
  end
  local fields = {}
  for passed = newest + 1, second do
    fields[#fields + 1] = 'r' .. passed % 60
    fields[#fields + 1] = 'k' .. passed % 60
  end
  local counts = redis.call('HMGET', key, unpack(fields))
  for place = 1, #fields, 2 do
    requests = requests - (tonumber(counts[place]) or 0)
    tokens = tokens - (tonumber(counts[place + 1]) or 0)
  end
  redis.call('HDEL', key, unpack(fields))
  redis.call('HSET', key, 't', second, 'r', requests, 'k', tokens)
  return second, requests, tokens, asked, used
end
