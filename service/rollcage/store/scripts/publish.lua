-- Write down all environments, for gateways, which do not ask the cluster.

local refusal = deposed()
if refusal then return refusal end
call('SET', key('environments'), arg.document)
call('PUBLISH', key('recipes'), '')
return {'published'}
