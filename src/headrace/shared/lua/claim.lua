-- All of an exchange's claims, or none.
-- KEYS: headrace:of:INCARNATION; for each claim rates, places, purse.
-- ARGV: incarnation, session, time ('' takes the server's), take or peek; for each claim requests_per_minute,
--       tokens_per_minute, concurrent, tokens, budget, hold, copy of the purse; '' is none.
-- Returns {0, milliseconds, for each claim requests, tokens, newest second with tokens}, or {what denies, claim, more}:
--   1 requests, 2 tokens, 3 places, each with milliseconds until there is room (-1: cannot be told);
--   4 budget, with used and held; 5 another copy of the purse, with its name ('' : there is none); 6 another session.

local REQUESTS, TOKENS, CONCURRENT, BUDGET, COPY = 1, 2, 3, 4, 5
local incarnation = ARGV[1]
if redis.call('HGET', 'headrace:session', incarnation) ~= ARGV[2] then return {STALE} end
local now = now_ms(ARGV[3])
local second = math.floor(now / 1000)
local own = 'h:' .. incarnation

local function room_in(key, letter, newest, left, limit)
  local fields = {}
  for passed = 1, 59 do fields[passed] = letter .. (newest + passed) % 60 end
  local counts = redis.call('HMGET', key, unpack(fields))
  for passed = 1, 59 do
    left = left - (tonumber(counts[passed]) or 0)
    if left < limit then return (newest + passed) * 1000 - now end
  end
  return (newest + 60) * 1000 - now
end

local states, denied = {}, nil
local function deny(what, claim, again)
  if not denied or again > denied[3] then denied = {what, claim, again} end
end

local number = (#ARGV - 4) / 7
for claim = 1, number do
  local rates, places, purse = KEYS[claim * 3 - 1], KEYS[claim * 3], KEYS[claim * 3 + 1]
  local at = 4 + (claim - 1) * 7
  local amount = ARGV[at + 5]
  if amount ~= '' then
    local state = redis.call('HMGET', purse, 'k', 'used', 'held')
    if state[1] ~= ARGV[at + 7] then return {COPY, claim, state[1] or ''} end
    local used = state[2] or '0'
    if not is_less(used, amount) then return {BUDGET, claim, used, state[3] or '0'} end
  end
  local newest, requests, tokens, asked, used = advance(rates, second)
  states[claim] = {newest, requests, tokens, asked, used}
  local limit = tonumber(ARGV[at + 1])
  if limit and requests >= limit then deny(REQUESTS, claim, room_in(rates, 'r', newest, requests, limit)) end
  limit = tonumber(ARGV[at + 2])
  if limit and tokens >= limit then deny(TOKENS, claim, room_in(rates, 'k', newest, tokens, limit)) end
  limit = tonumber(ARGV[at + 3])
  if limit and tonumber(redis.call('HGET', places, 'held') or 0) >= limit then deny(CONCURRENT, claim, -1) end
end
if denied then return denied end

local reply = {0, now}
if ARGV[4] == 'peek' then return reply end
for claim = 1, number do
  local rates, places, purse = KEYS[claim * 3 - 1], KEYS[claim * 3], KEYS[claim * 3 + 1]
  local at = 4 + (claim - 1) * 7
  local newest, requests, tokens, _, used = unpack(states[claim])
  local more = tonumber(ARGV[at + 4])
  redis.call('HINCRBY', rates, 'r' .. newest % 60, 1)
  requests = requests + 1
  if more > 0 then
    redis.call('HINCRBY', rates, 'k' .. newest % 60, more)
    tokens, used = tokens + more, newest
  end
  redis.call('HSET', rates, 't', newest, 'r', requests, 'k', tokens, 'q', newest, 'l', used)
  redis.call('EXPIRE', rates, 120)
  hold(places, own, '1', '')
  redis.call('SADD', KEYS[1], places)
  if ARGV[at + 5] ~= '' and ARGV[at + 6] ~= '0' then
    hold(purse, own, ARGV[at + 6], '')
    redis.call('SADD', KEYS[1], purse)
  end
  reply[#reply + 1] = requests
  reply[#reply + 1] = tokens
  reply[#reply + 1] = used
end
return reply
