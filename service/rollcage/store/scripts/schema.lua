-- Whose data this is. An empty server becomes ours; one of another release is left alone.

local found = call('GET', key('schema'))
if not found then call('SET', key('schema'), arg.schema) end
found = found or arg.schema
if string.match(found, '^%d+') ~= string.match(arg.schema, '^%d+') then
  return refuse('schema_mismatch', found, arg.schema)
end
return {found}
