-- A spent sandbox is deleted: nothing is left to do for it. Its grave stays until it expires.

local refusal = deposed()
if refusal then return refusal end
call('ZREM', key('spent', arg.environment), arg.sandbox)
return {'forgotten'}
