-- Where each of some sandboxes is in its life; empty for one nobody has heard of.

local fates = {}
for name in string.gmatch(arg.names, '%S+') do
  table.insert(fates, text(call('HGET', key('sandbox', name), 'state')))
end
return fates
