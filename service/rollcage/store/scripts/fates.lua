-- Where each of some sandboxes is in its life, and whose it is; empty for one nobody has heard of.

local fates = {}
for name in string.gmatch(arg.names, '%S+') do
  local f = call('HMGET', key('sandbox', name), 'state', 'rollout')
  table.insert(fates, text(f[1]))
  table.insert(fates, text(f[2]))
end
return fates
