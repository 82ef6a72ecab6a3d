-- A rollout was archived: strike it off, unless its record has changed since it was taken.

if number(call('ZSCORE', key('unarchived'), arg.rollout)) == tonumber(arg.ticket) then
  call('ZREM', key('unarchived'), arg.rollout)
end
return {}
