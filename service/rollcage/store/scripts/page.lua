-- A page of rollout records from an index, after a cursor: of each the *fields*, its state first. Entries whose
-- record expired are dropped.
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

local names = {}
for name in string.gmatch(arg.fields, '%S+') do table.insert(names, name) end

local records, last = {}, ''
for i = 1, #members, 2 do
  local found = call('HMGET', key('rollout', members[i]), unpack(names))
  if found[1] then
    table.insert(records, {members[i], found})
  else
    call('ZREM', index, members[i])
  end
  last = members[i + 1]
end
return {#members / 2 < limit and '' or last, records}
