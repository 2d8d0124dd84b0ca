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
    if left < limit then return math.min((newest + passed) * 1000 - now, 60000) end
  end
  return math.min((newest + 60) * 1000 - now, 60000)
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
    local there = redis.call('HMGET', purse, 'k', 'used', 'held')
    if there[1] ~= ARGV[at + 7] then return {COPY, claim, there[1] or ''} end
    if not is_less(there[2] or '0', amount) then return {BUDGET, claim, there[2] or '0', there[3] or '0'} end
  end
  local state = advance(rates, second)
  local newest, requests, tokens = state[1], state[2], state[3]
  states[claim] = state
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
  local state, more = states[claim], tonumber(ARGV[at + 4])
  state[2], state[6], state[4] = state[2] + 1, state[6] + 1, state[1]
  if more > 0 then state[3], state[7], state[5] = state[3] + more, state[7] + more, state[1] end
  store(rates, state)
  if hold(places, own, '1', '') == 1 then redis.call('SADD', KEYS[1], places) end
  local amount = ARGV[at + 6]
  if ARGV[at + 5] ~= '' and amount ~= '0' then
    if hold(purse, own, amount, '') == tonumber(amount) then redis.call('SADD', KEYS[1], purse) end
  end
  reply[#reply + 1] = state[2]
  reply[#reply + 1] = state[3]
  reply[#reply + 1] = state[5]
end
return reply
