-- What all scripts know. Amounts are decimal strings of at most 19 digits: a Lua number holds only 15 of them exactly, so
-- they are compared as strings and added by HINCRBY.
--
-- headrace:live            zset  incarnation -> when it counts as dead, milliseconds
-- headrace:session         hash  incarnation -> the only session whose commands count
-- headrace:of:INCARNATION  set   the places and purses that it holds something of
-- headrace:rates:SUBJECT   hash  t newest second; r k sums; rN kN buckets, N = second % 60; q l newest with any
-- headrace:places:SUBJECT  hash  held sum; h:INCARNATION
-- headrace:purse:PURSE     hash  k copy; s settled; c corrections; p:INCARNATION parts; h:INCARNATION holds;
--                                held sum of the holds; used sum of everything

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

-- Add an amount, or with '-' as its sign take it away: -0 is no number to HINCRBY. Returns what is there then, if it was
-- any amount at all.
local function add(key, field, amount, sign)
  if amount ~= '0' then return redis.call('HINCRBY', key, field, sign .. amount) end
end

-- The same with what an incarnation holds of a key, and its sums.
local function hold(key, field, amount, sign)
  local left = add(key, field, amount, sign)
  local all = add(key, 'held', amount, sign)
  if is_purse(key) then add(key, 'used', amount, sign) end
  return left, all
end

-- Take an amount, not 0, away again: never more than is there. Returns whether the incarnation holds nothing any more.
local function release(key, field, amount)
  local left, all = hold(key, field, amount, '-')
  if left > 0 then return false end
  if left < 0 then
    -- It was lost, or some of it: put back what was never there.
    hold(key, field, string.sub(redis.call('HGET', key, field), 2), '')
    all = tonumber(redis.call('HGET', key, 'held'))
  end
  redis.call('HDEL', key, field)
  if all == 0 and not is_purse(key) then redis.call('DEL', key) end
  return true
end

-- What an incarnation settled: it only grows.
local function grow(key, incarnation, part)
  local field = 'p:' .. incarnation
  local before = redis.call('HGET', key, field) or '0'
  if is_less(before, part) then
    if #part <= 15 then
      add(key, 'used', string.format('%.0f', part - before), '')
    else
      add(key, 'used', part, '')
      add(key, 'used', before, '-')
    end
    redis.call('HSET', key, field, part)
  end
end

-- What rating entries again has changed: the newest figure counts, and either may be negative.
local function correct(key, amount)
  local before = redis.call('HGET', key, 'c') or '0'
  if before == amount then return end
  local undone = string.sub(before, 1, 1) == '-' and string.sub(before, 2) or '-' .. before
  if before ~= '0' then redis.call('HINCRBY', key, 'used', undone) end
  if amount ~= '0' then redis.call('HINCRBY', key, 'used', amount) end
  redis.call('HSET', key, 'c', amount)
end

-- Give back everything of an incarnation, `most` keys of it. Returns whether that was all.
local function clear(incarnation, most)
  local mine = 'headrace:of:' .. incarnation
  for _, key in ipairs(redis.call('SRANDMEMBER', mine, most)) do
    local field = 'h:' .. incarnation
    local held = redis.call('HGET', key, field)
    if held then release(key, field, held) end
    redis.call('SREM', mine, key)
  end
  if redis.call('EXISTS', mine) == 1 then return false end
  redis.call('ZREM', 'headrace:live', incarnation)
  redis.call('HDEL', 'headrace:session', incarnation)
  return true
end

-- Let what is older than a minute leave. Returns {t, r, k, q, l, the newest second's buckets r and k}.
local function advance(key, second)
  local slot = second % 60
  local state = redis.call('HMGET', key, 't', 'r', 'k', 'q', 'l', 'r' .. slot, 'k' .. slot)
  for place = 1, 7 do state[place] = tonumber(state[place] or 0) end
  local newest = state[1]
  if newest == second then return state end
  if newest > second and newest - second < 60 then
    -- The server's clock went back; within a minute it is waited for.
    slot = newest % 60
    local counts = redis.call('HMGET', key, 'r' .. slot, 'k' .. slot)
    state[6], state[7] = tonumber(counts[1] or 0), tonumber(counts[2] or 0)
    return state
  end
  if newest > second or second - newest >= 60 then
    redis.call('DEL', key)
    return {second, 0, 0, 0, 0, 0, 0}
  end
  local fields = {}
  for passed = newest + 1, second do
    fields[#fields + 1] = 'r' .. passed % 60
    fields[#fields + 1] = 'k' .. passed % 60
  end
  local counts = redis.call('HMGET', key, unpack(fields))
  for place = 1, #fields, 2 do
    state[2] = state[2] - (tonumber(counts[place]) or 0)
    state[3] = state[3] - (tonumber(counts[place + 1]) or 0)
  end
  redis.call('HDEL', key, unpack(fields))
  redis.call('HSET', key, 't', second, 'r', state[2], 'k', state[3])
  redis.call('EXPIRE', key, 120)
  state[1], state[6], state[7] = second, 0, 0
  return state
end

-- Write what `advance` returned, changed since.
local function store(key, state)
  local slot = state[1] % 60
  redis.call('HSET', key, 't', state[1], 'r', state[2], 'k', state[3], 'q', state[4], 'l', state[5],
    'r' .. slot, state[6], 'k' .. slot, state[7])
  if state[6] <= 1 then redis.call('EXPIRE', key, 120) end
end
