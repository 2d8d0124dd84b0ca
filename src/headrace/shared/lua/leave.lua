-- End for good: everything is given back, `most` keys at a time.
-- ARGV: incarnation, session, most.
-- Returns 1 when that was all.

if redis.call('HGET', 'headrace:session', ARGV[1]) ~= ARGV[2] then return 1 end
return clear(ARGV[1], ARGV[3]) and 1 or 0
