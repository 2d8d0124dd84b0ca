-- The end of an exchange: its places and holds go, what it used stays.
-- KEYS: as for a claim.
-- ARGV: incarnation, session, time, the second of the claim, 1 to take back the request too; for each claim the tokens
--       still to be counted (fewer than 0: to be taken back), hold, what the incarnation settled in all ('': no budget).
-- Returns {for each claim with a budget, used and held}.

local incarnation = ARGV[1]
if redis.call('HGET', 'headrace:session', incarnation) ~= ARGV[2] then return {} end
local second = math.floor(now_ms(ARGV[3]) / 1000)
local given = tonumber(ARGV[4])
local own = 'h:' .. incarnation
local reply = {}

for claim = 1, (#ARGV - 5) / 3 do
  local rates, places, purse = KEYS[claim * 3 - 1], KEYS[claim * 3], KEYS[claim * 3 + 1]
  local at = 5 + (claim - 1) * 3
  local more = tonumber(ARGV[at + 1])
  if more ~= 0 or ARGV[5] == '1' then
    local newest, requests, tokens, asked, used = advance(rates, second)
    local counts = given > newest - 60
    if more > 0 then
      redis.call('HINCRBY', rates, 'k' .. newest % 60, more)
      tokens, used = tokens + more, newest
    elseif more < 0 and counts then
      redis.call('HINCRBY', rates, 'k' .. given % 60, more)
      tokens = tokens + more
    end
    if ARGV[5] == '1' and counts then
      redis.call('HINCRBY', rates, 'r' .. given % 60, -1)
      requests = requests - 1
    end
    redis.call('HSET', rates, 't', newest, 'r', requests, 'k', tokens, 'q', asked, 'l', used)
    redis.call('EXPIRE', rates, 120)
  end
  if release(places, own, '1') then redis.call('SREM', KEYS[1], places) end
  if ARGV[at + 3] ~= '' then
    if ARGV[at + 2] ~= '0' and release(purse, own, ARGV[at + 2]) then redis.call('SREM', KEYS[1], purse) end
    grow(purse, incarnation, ARGV[at + 3])
    local state = redis.call('HMGET', purse, 'used', 'held')
    reply[#reply + 1] = state[1] or '0'
    reply[#reply + 1] = state[2] or '0'
  end
end
return reply
