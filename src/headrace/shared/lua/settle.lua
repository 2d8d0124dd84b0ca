-- The end of an exchange: its places and holds go, what it used stays.
-- KEYS: as for a claim.
-- ARGV: incarnation, session, time, the second of the claim, 1 to take back the request too, 1 to hear of the budgets;
--       for each claim the tokens still to be counted (fewer than 0: to be taken back), hold, what the incarnation settled
--       in all ('': no budget).
-- Returns {for each claim with a budget, used and held}, if that is to be heard.

local incarnation = ARGV[1]
if redis.call('HGET', 'headrace:session', incarnation) ~= ARGV[2] then return {} end
local second = math.floor(now_ms(ARGV[3]) / 1000)
local given, undone = tonumber(ARGV[4]), ARGV[5] == '1'
local own = 'h:' .. incarnation
local reply = {}

for claim = 1, (#ARGV - 6) / 3 do
  local rates, places, purse = KEYS[claim * 3 - 1], KEYS[claim * 3], KEYS[claim * 3 + 1]
  local at = 6 + (claim - 1) * 3
  local more = tonumber(ARGV[at + 1])
  if more ~= 0 or undone then
    local state = advance(rates, second)
    local same = given == state[1]
    if more > 0 then
      state[3], state[7], state[5] = state[3] + more, state[7] + more, state[1]
    elseif more < 0 and given > state[1] - 60 then
      state[3] = state[3] + more
      if same then state[7] = state[7] + more else redis.call('HINCRBY', rates, 'k' .. given % 60, more) end
    end
    if undone and given > state[1] - 60 then
      state[2] = state[2] - 1
      if same then state[6] = state[6] - 1 else redis.call('HINCRBY', rates, 'r' .. given % 60, -1) end
    end
    store(rates, state)
  end
  if release(places, own, '1') then redis.call('SREM', KEYS[1], places) end
  if ARGV[at + 3] ~= '' then
    if ARGV[at + 2] ~= '0' and release(purse, own, ARGV[at + 2]) then redis.call('SREM', KEYS[1], purse) end
    grow(purse, incarnation, ARGV[at + 3])
    if ARGV[6] == '1' then
      local state = redis.call('HMGET', purse, 'used', 'held')
      reply[#reply + 1] = state[1] or '0'
      reply[#reply + 1] = state[2] or '0'
    end
  end
end
return reply
