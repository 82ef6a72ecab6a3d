-- A page of rollout records from an index, after a cursor. Entries whose record expired are dropped.
--
-- Scores are tickets: they never change, so a walk misses nothing that was there all the time.

local index, limit = prefix .. arg.index, tonumber(arg.limit)
local members
if arg.newest_first then
  members = call('ZREVRANGEBYSCORE', index, arg.cursor, '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
elseif arg.idle then
  members = call('ZRANGEBYSCORE', index, '-inf', tostring(now - tonumber(arg.idle)), 'WITHSCORES', 'LIMIT', 0, limit)
else
  members = call('ZRANGEBYSCORE', index, arg.cursor, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
end

local records, last = {}, ''
for i = 1, #members, 2 do
  local fields = call('HGETALL', key('rollout', members[i]))
  if #fields == 0 then
    call('ZREM', index, members[i])
  else
    table.insert(records, {members[i], fields})
  end
  last = members[i + 1]
end
return {#members / 2 < limit and '' or last, records}
